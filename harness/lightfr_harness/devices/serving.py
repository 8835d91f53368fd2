"""The coordinator of measured devices: `serve` without the arithmetic of aggregation, so that ten million rows fit.

Everything that a device sees is real: TLS, manifests, artifacts, rounds, masks, receipts. The catalogue is a number of
items, whose ids are their rows. The codes are random; a round changes a share of them to other random bits, or none:
random bits cannot be compressed, so that is what the delta of a late round costs at most. A journal beside the
coordinator's folder says how many bytes passed inside which message of which device.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr.v1 import model_pb2
from lightfr_harness.devices.scenario import JOURNAL
from lightfr_harness.server.authority import Credentials
from lightfr_harness.server.authority.keys import COORDINATOR
from lightfr_harness.server.coordinator.options import ItemList, Settings
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.serving import Addresses, serve_until_stopped
from lightfr_harness.server.rules import PRIVACY_MODES, TERNARY_ROWS, AggregationRule, CatalogueRule
from lightfr_harness.server.rules.cohorts import CohortSum, Combined

# A row is open if at least this many devices rate its item.
GATE = 10


class StandInRule(CatalogueRule):
    """Codes without the memory behind them: 16 bytes a row of 128 bits instead of 1,040."""

    by_row = ("own_codes",)

    def __init__(self, counts: npt.NDArray[np.int64], code_bits: int, *, changed: float, **options: Any) -> None:
        self.mean_user = np.zeros(code_bits, np.int16)
        self.first_counts, self.counting_devices = np.zeros(0, np.int64), np.zeros(2, np.int64)
        self._changed = changed
        AggregationRule.__init__(self, counts, code_bits, **options)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Nothing to go on with: a measurement begins anew."""
        return {}

    def set_gate(self, counts: npt.NDArray[np.int64], seed: int, devices: int = 0) -> None:
        """Open and close rows; a single refresh decides."""
        self.device_counts = np.asarray(counts, np.int64)
        self._give_rows(seed)
        self.begin_round()

    def add_cohorts(self, cohorts: Sequence[CohortSum]) -> Combined:
        """The masks are off by now, and the sums are not needed."""
        return Combined(0, (0,) * len(cohorts))

    def _start_sums(self) -> None:
        """Nothing is summed."""

    def _count(self, upload: object, rows: object) -> None:
        """An upload has been checked by now, and is not needed."""

    def _apply(self) -> None:
        if self._changed:
            n_rows, rng = len(self.own_codes), np.random.default_rng(self.n_items)
            rows = rng.choice(n_rows, round(self._changed * n_rows), replace=False)
            # Never zero in the first byte, so that each of these rows does change.
            self.own_codes[rows] ^= rng.integers(1, 256, (len(rows), self.code_bits // 8), dtype=np.uint8)


def stand_in_rule(settings: Settings, items: ItemList, *, changed: float) -> StandInRule:
    """The rule of a run; without counts the gate is off, unless devices count in secret."""
    has_gate = items.device_counts is not None or settings.is_secure
    counts = np.zeros(len(items.ids), np.int64) if items.device_counts is None else np.array(items.device_counts)
    return StandInRule(
        counts,
        settings.bits,
        changed=changed,
        upload_kind=model_pb2.UPLOAD_KIND_EXACT if settings.noise() else model_pb2.UPLOAD_KIND_TERNARY,
        gate=settings.gate if has_gate else 0,
        max_rows=TERNARY_ROWS,
        seed=settings.seed,
        privacy_mode=PRIVACY_MODES[settings.privacy],
        noise=settings.noise(),
    )


class Journal:
    """An observer that writes down who sent and got how many bytes inside which message."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def called(self, device: str, method: str, request_bytes: int, answer_bytes: int) -> None:
        self._write(device, method, request_bytes, answer_bytes)

    def downloaded(self, device: str, artifact: str, sent_bytes: int) -> None:
        self._write(device, artifact, 0, sent_bytes)

    def _write(self, *facts: str | int) -> None:
        self._file.write(json.dumps(facts) + "\n")
        self._file.flush()


def main(arguments: list[str]) -> int:
    """Serve until stopped; the options are those of `serve` that a measurement needs, and two of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("folder", type=Path)
    for name in ("authority", "catalogue"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("port", "enrollment-port", "operations-port", "bits", "seed", "goal", "minimum", "open-rows"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("over-selection", "deadline-seconds", "noise-rows", "noise-sums", "noise-counts", "changed"):
        parser.add_argument(f"--{name}", type=float, required=True)
    parser.add_argument("--privacy", required=True)
    asked = parser.parse_args(arguments)
    text = asked.catalogue.read_text()
    n_items = int(text)
    counts = [GATE] * asked.open_rows + [0] * (n_items - asked.open_rows) if asked.open_rows else None
    items = ItemList(range(n_items), counts, hashlib.sha256(text.encode()).hexdigest())
    noise = [round(1000 * level) for level in (asked.noise_rows, asked.noise_sums, asked.noise_counts)]
    settings = Settings(asked.bits, GATE, asked.seed, True, asked.privacy, *noise)
    never = 1_000_000_000
    plan = Plan(
        asked.goal, asked.over_selection, asked.minimum, asked.deadline_seconds, gate_every=never, evaluate_every=0
    )
    wanted = Addresses("127.0.0.1", asked.port, asked.operations_port, asked.enrollment_port)
    rule = partial(stand_in_rule, changed=asked.changed)
    journal = Journal(asked.folder.with_name(JOURNAL))
    serve = partial(serve_until_stopped, authority=asked.authority, make_rule=rule, observer=journal)
    shown = Credentials(asked.authority / COORDINATOR)
    is_good = asyncio.run(serve(asked.folder, shown, items, settings, plan, wanted))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
