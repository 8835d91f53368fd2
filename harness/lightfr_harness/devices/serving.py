"""`serve` for emulated devices: the coordinator without the arithmetic of aggregation, so that ten million rows fit.

Everything a device sees is the real thing: TLS, manifests, artifacts, rounds, receipts. The catalogue is not a list but
a number of items, whose ids are their rows, and the codes are random and stay so. What passes inside messages is
written by device to a journal beside the coordinator's folder.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr.v1 import manifest_pb2
from lightfr_harness.devices.scenario import JOURNAL
from lightfr_harness.server.coordinator import downloads, options, publishing, web
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.rule import AggregationRule

_names: dict[str, str] = {}


class UntrainedServer(CatalogueRule):
    """Codes without the memory behind them: 16 bytes a row of 128 bits instead of 1,040."""

    def __init__(self, device_counts: npt.NDArray[np.int64], code_bits: int, **how: Any) -> None:
        self.memory = np.zeros((0, code_bits), np.int32)
        self.mean_user = np.zeros(code_bits, np.int16)
        AggregationRule.__init__(self, device_counts, code_bits, **how)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Nothing to go on with: an emulation begins anew."""
        return {}

    def _start_sums(self) -> None:
        """Nothing is summed."""

    def _count(self, upload: object) -> None:
        """An upload has been checked by now, and is not needed."""

    def _apply(self, *, balanced: bool) -> None:
        """The codes stay."""


def _read_items(path: Path, *, integer_ids: bool) -> options.ItemList:
    text = path.read_text()
    ids: Any = range(int(text))
    return options.ItemList(ids, None, hashlib.sha256(text.encode()).hexdigest())


class _Journal:
    """Who sent and got how many bytes inside which message."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def write(self, request: Any, name: str, up: int, down: int) -> None:
        device = dict(part[0] for part in request.get_extra_info("peercert")["subject"])["commonName"]
        self._file.write(json.dumps([device, name, up, down]) + "\n")
        self._file.flush()


def _listen_in(journal: _Journal) -> None:
    """Note every call and download that was answered."""
    call, answer, publish = web.HttpService._call, downloads.answer, publishing.Publisher.publish

    async def noted_call(service: web.HttpService, request: Any, name: str) -> bytes:
        body = await call(service, request, name)
        journal.write(request, name, request.content_length or 0, len(body))
        return body

    async def noted_answer(request: Any, folder: Path, digest: str) -> Any:
        response, size = await answer(request, folder, digest)
        journal.write(request, _names.get(digest, "delta"), 0, size)
        return response, size

    def noted_publish(*arguments: Any) -> bytes:
        serialised = publish(*arguments)
        manifest = manifest_pb2.Manifest.FromString(serialised)
        _names.update({manifest.codes.sha256.hex(): "codes", manifest.catalogue.sha256.hex(): "catalogue"})
        return serialised

    web.HttpService._call = noted_call  # type: ignore[method-assign]
    downloads.answer = noted_answer
    publishing.Publisher.publish = noted_publish  # type: ignore[method-assign]


if __name__ == "__main__":
    from lightfr_harness.cli import app

    options.CatalogueRule = UntrainedServer  # type: ignore[misc]
    options.ItemList.read = _read_items  # type: ignore[assignment,method-assign]
    _listen_in(_Journal(Path(sys.argv[2]).with_name(JOURNAL)))
    app()
