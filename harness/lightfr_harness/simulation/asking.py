"""What the devices of a fleet are asked in a round, and what their answers add up to.

A question holds the published model as bytes, so that it can travel to where devices live. Each device has a random
stream of its own, from the seed, the round and its number, and answers are integers that are added up. So the sum is
the same, bit for bit, whoever asks which device, in which order and in which process.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr import ItemCodes, _wire
from lightfr.evaluation import evaluation_vector
from lightfr.open_rows import OpenRows
from lightfr.rankings import Rankings
from lightfr.secagg import gate_vector
from lightfr.secagg.contribution import vector_without_noise
from lightfr.secagg.vector import evaluation_blocks
from lightfr.training import PublishedModel, RowUpdate
from lightfr.training.constants import LEAST_CATALOGUE_RATINGS
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import AggregationRule, UploadReader
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.simulation.fleet import SimulatedDevice, stream

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Asked = Iterable[tuple[int, SimulatedDevice]]


@dataclass(frozen=True)
class ModelBytes:
    """A published model as it is downloaded."""

    codes: npt.NDArray[np.uint8]
    open_rows: bytes
    message: bytes

    @classmethod
    def of(cls, server: AggregationRule) -> ModelBytes:
        return cls(server.codes, server.open_rows_bitmap(), server.model().SerializeToString())

    def published(self) -> PublishedModel:
        """The model as a device has it after download: decoded and checked."""
        message = _wire.decode_round_model(self.message)
        open_rows = OpenRows(self.open_rows, message.item_count) if self.open_rows else None
        return PublishedModel(ItemCodes(self.codes.tobytes(), message.code_bits, open_rows), message)


@dataclass(frozen=True)
class Share:
    """What some devices add up to. `up_bytes` are those of their uploads, `cpu_seconds` what computing them took."""

    sums: dict[str, Numbers]
    devices: int = 0
    up_bytes: int = 0
    cpu_seconds: float = 0.0

    def plus(self, other: Share) -> Share:
        return Share(
            {name: numbers + other.sums[name] for name, numbers in self.sums.items()},
            self.devices + other.devices,
            self.up_bytes + other.up_bytes,
            self.cpu_seconds + other.cpu_seconds,
        )


@dataclass(frozen=True)
class Question(ABC):
    """What devices are asked. `devices` is how many are, those that drop out included."""

    model: ModelBytes
    seed: int
    round_index: int
    devices: int

    def nothing(self) -> Share:
        """The share of no devices."""
        return self.answer(self.model.published(), ())

    def stream(self, user: int) -> Callable[[int], bytes]:
        """What is random for one device in this round."""
        return stream(type(self).__name__, self.seed, self.round_index, user)

    @abstractmethod
    def answer(self, model: PublishedModel, asked: Asked) -> Share:
        """What these devices, each with its number, add up to."""


@dataclass(frozen=True)
class Training(Question):
    """Fit, and say what to move. Devices that drop out fit as well, and are not heard."""

    dropped: frozenset[int]

    def answer(self, model: PublishedModel, asked: Asked) -> Share:
        started = time.process_time()
        total = _DenseSum(model, self.devices) if model.noise else _RowSum(model, self.model)
        # All fits, then all sums: a tenth faster than one device after the other, as code stays in the caches.
        updates = [(user, device.update(model, self.stream(user))) for user, device in asked]
        heard = [update for user, update in updates if user not in self.dropped]
        for update in heard:
            total.add(update)
        return Share(total.sums(), len(heard), total.up_bytes, time.process_time() - started)


class _RowSum:
    """The sum of uploads, each written and read as the wire has it. It has numbers for open rows only."""

    def __init__(self, model: PublishedModel, source: ModelBytes) -> None:
        message = model_pb2.RoundModel.FromString(source.message)
        self._reader, self._f = UploadReader(message, source.open_rows), model.code_bits
        is_open = np.unpackbits(np.frombuffer(source.open_rows, np.uint8), bitorder="little")
        self._items = np.flatnonzero(is_open) if source.open_rows else np.arange(model.n_items)
        # A device adds at most 1 to a ternary element, and there are fewer than 2^31 devices.
        dtype = np.int32 if model.upload_kind == model_pb2.UPLOAD_KIND_TERNARY else np.int64
        self._rows = np.zeros((len(self._items), self._f), dtype)
        self._has_users = model.objective == model_pb2.OBJECTIVE_CATALOGUE
        self._codes: list[bytes] = []
        self._weights: list[int] = []
        self.up_bytes = 0

    def add(self, update: RowUpdate) -> None:
        message = _wire.encode_update(update)
        upload = self._reader.read(message)
        self.up_bytes += len(message)
        upload.add_to(self._rows, np.searchsorted(self._items, upload.item_indices).astype(np.uint32))
        self._codes.append(upload.rows.user_code)
        self._weights.append(max(len(upload.item_indices), LEAST_CATALOGUE_RATINGS))

    def sums(self) -> dict[str, Numbers]:
        rows: dict[str, Numbers] = {"rows": self._rows.reshape(-1)}
        if not self._has_users:
            return rows
        weights = np.array(self._weights, np.int64)
        signs = unpack_signs(b"".join(self._codes), (len(weights), self._f)).astype(np.int64)
        return {**rows, "user_sum": weights @ signs, "weight": weights.sum(keepdims=True)}


class _DenseSum:
    """The sum of clipped gradients, as mode secagg+dp has them. No bytes are counted."""

    up_bytes = 0

    def __init__(self, model: PublishedModel, devices: int) -> None:
        self._model, self._devices = model, devices
        self._sums: dict[str, Numbers] = {
            "rows": np.zeros(model.n_open * model.code_bits, np.int64),
            "user_sum": np.zeros(model.code_bits, np.int64),
        }

    def add(self, update: RowUpdate) -> None:
        vector = vector_without_noise(self._model, update, self._devices)
        for name, numbers in self._sums.items():
            numbers += np.asarray(vector[name])

    def sums(self) -> dict[str, Numbers]:
        return self._sums


@dataclass(frozen=True)
class Evaluation(Question):
    """Say how well each candidate ranks."""

    rankings: Rankings
    roster_digest: bytes

    def answer(self, model: PublishedModel, asked: Asked) -> Share:
        started = time.process_time()
        (block,) = evaluation_blocks(len(self.rankings.candidates), self.devices, model.noise)
        hits, heard = np.zeros(block.count, np.int64), 0
        for user, device in asked:
            vector = evaluation_vector(
                model, self.rankings, device.interactions, device.code,
                self.roster_digest, self.devices, self.stream(user),
            )  # fmt: skip
            hits += np.asarray(vector["hits"])
            heard += 1
        return Share({"hits": hits}, heard, cpu_seconds=time.process_time() - started)


@dataclass(frozen=True)
class Counting(Question):
    """Count who rates what, with noise."""

    def answer(self, model: PublishedModel, asked: Asked) -> Share:
        started, counts, heard = time.process_time(), np.zeros(model.n_items, np.int64), 0
        for user, device in asked:
            taught = device.interactions.to_teach()
            counts += np.asarray(gate_vector(model, taught, self.devices, self.stream(user))["counts"])
            heard += 1
        return Share({"counts": counts}, heard, cpu_seconds=time.process_time() - started)
