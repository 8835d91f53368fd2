"""What every aggregation rule has in common: the item matrix, the gate, the model message and the new-item rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import ItemCodes
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules.bits import pack_signs, unpack_signs
from lightfr_harness.server.rules.uploads import Upload, UploadReader


class AggregationRule(ABC):
    """One item matrix and the round that is being collected for it."""

    # The parts of state() that have one row per item.
    by_row: tuple[str, ...] = ("codes",)

    def __init__(
        self,
        device_counts: npt.NDArray[np.int64],
        code_bits: int,
        *,
        upload_kind: int,
        gate: int,
        max_rows: int,
        seed: int,
        privacy_mode: int = model_pb2.PRIVACY_MODE_CLEAR,
        noise: model_pb2.Noise | None = None,
    ) -> None:
        """Start from random codes. `device_counts[i]` is how many devices rate item i; below `gate` a row is closed.

        Closed rows all start from one code: they then tie, and a tie goes to the more popular item.
        """
        self.code_bits = code_bits
        self.upload_kind = upload_kind
        self.max_rows = max_rows
        self.gate = gate
        self.privacy_mode, self.noise = privacy_mode, noise
        self.device_counts = np.asarray(device_counts, np.int64)
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(0, 256, (self.n_items, code_bits // 8), dtype=np.uint8)
        self.codes[~self.open_rows] = rng.integers(0, 256, code_bits // 8, dtype=np.uint8)
        self.begin_round()

    @property
    def n_items(self) -> int:
        return len(self.device_counts)

    @property
    def open_rows(self) -> npt.NDArray[np.bool_]:
        return self.device_counts >= self.gate

    @property
    def upload_rows(self) -> npt.NDArray[np.bool_]:
        """Rows that devices may upload: what they read in the bitmap of open rows, or all without one."""
        return self.open_rows if self.gate > 1 else np.ones(self.n_items, np.bool_)

    @property
    def awaits_refresh(self) -> bool:
        """Whether one gate refresh is in, and another, of other devices, must follow before rows open or close."""
        return False

    def item_codes(self) -> ItemCodes:
        """The published matrix, as a device maps it."""
        return ItemCodes(self.codes.tobytes(), self.code_bits)

    def signs(self) -> npt.NDArray[np.int8]:
        return unpack_signs(self.codes, (self.n_items, self.code_bits))

    def model(self) -> model_pb2.RoundModel:
        """The RoundModel of the current matrix."""
        return model_pb2.RoundModel(
            code_bits=self.code_bits,
            item_count=self.n_items,
            upload_kind=self.upload_kind,  # type: ignore[arg-type]
            max_rows=self.max_rows,
            privacy_mode=self.privacy_mode,  # type: ignore[arg-type]
            noise=self.noise,
            **self._model_fields(),
        )

    def open_rows_bitmap(self) -> bytes:
        """The gate as devices get it; empty when it is off."""
        return np.packbits(self.open_rows, bitorder="little").tobytes() if self.gate > 1 else b""

    def begin_round(self) -> None:
        """Forget what was collected and publish the model anew."""
        self._reader = UploadReader(self.model(), self.open_rows_bitmap())
        self._start_sums()

    def add(self, message: bytes) -> None:
        """Count one device's upload; raises UploadError and counts nothing when it is not what the round asked for."""
        self._count(self._reader.read(message))

    def finish_round(self, only: npt.NDArray[np.bool_] | None = None) -> None:
        """Move the matrix by what was collected. `only`: rows that may move, for items added since training."""
        before = {name: value.copy() for name, value in self.state().items()} if only is not None else {}
        self._apply(balanced=only is None)
        if only is not None:
            self._undo(before, ~only)
        self.begin_round()

    def _undo(self, before: dict[str, npt.NDArray[Any]], rows: npt.NDArray[np.bool_]) -> None:
        """Put back these rows, and all that is not by row."""
        after = self.state()
        for name in self.by_row:
            before[name][~rows] = after[name][~rows]
        self.restore(before)

    def add_items(self, device_counts: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.bool_]:
        """Append rows for new items, with random codes; return which rows are new, for finish_round(only=...)."""
        fresh = np.random.default_rng(seed).integers(0, 256, (len(device_counts), self.code_bits // 8), dtype=np.uint8)
        is_new = np.arange(self.n_items + len(device_counts)) >= self.n_items
        self.codes = np.concatenate([self.codes, fresh])
        self.device_counts = np.concatenate([self.device_counts, device_counts])
        self._grow(len(device_counts))
        self.begin_round()
        return is_new

    @abstractmethod
    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything a later process needs to go on after the last finished round."""

    @abstractmethod
    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Take up a state."""

    @abstractmethod
    def _model_fields(self) -> dict[str, Any]: ...

    @abstractmethod
    def _start_sums(self) -> None: ...

    @abstractmethod
    def _count(self, upload: Upload) -> None: ...

    @abstractmethod
    def _apply(self, *, balanced: bool) -> None: ...

    @abstractmethod
    def _grow(self, n_new: int) -> None: ...

    def _set_codes_by_sign(self, votes: npt.NDArray[np.int64]) -> None:
        """D = sign(votes); a zero vote keeps the old bit."""
        self.codes = pack_signs(np.where(votes == 0, self.signs(), votes))
