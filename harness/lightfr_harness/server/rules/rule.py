"""What every aggregation rule has in common: the rows of the item codes, the gate, and the model message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import ItemCodes
from lightfr.errors import InvalidInputError
from lightfr.open_rows import OpenRows
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules.bits import pack_signs, unpack_signs
from lightfr_harness.server.rules.uploads import Upload, UploadReader


class AggregationRule(ABC):
    """The codes of one catalogue and the round that is being collected for it.

    Items that are open, or were once, have a row of their own, by ascending index. Behind these stands the row that all
    closed items share. Whatever is kept by row has these rows only: most items of a large catalogue are closed.
    """

    # The names of what is kept by row, of what is kept by item, and of the rest of the state.
    by_row: tuple[str, ...] = ("own_codes",)
    by_item: tuple[str, ...] = ("device_counts", "has_own_row", "removed")
    by_rule: tuple[str, ...] = ()

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
        """Start from random codes. `device_counts[i]` is how many devices rate item i; below `gate` an item is closed.

        Closed items share one code: they tie, and a tie goes to the more popular item. A gate of 1 or less is none.
        """
        self.code_bits = code_bits
        self.upload_kind = upload_kind
        self.max_rows = max_rows
        self.gate = gate
        self.privacy_mode, self.noise = privacy_mode, noise
        self.device_counts = np.asarray(device_counts, np.int64)
        self.removed = np.zeros(self.n_items, np.bool_)
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 256, (self.n_items, code_bits // 8), dtype=np.uint8)
        self.has_own_row = self.open_rows
        shared = rng.integers(0, 256, code_bits // 8, dtype=np.uint8)
        self.own_codes = np.vstack([codes[self.has_own_row], shared])
        self.begin_round()

    def set_codes(self, codes: npt.NDArray[np.uint8]) -> None:
        """Start from these codes, one row for each item; closed items take that of the first of them."""
        closed = np.flatnonzero(~self.open_rows)
        shared = codes[closed[0]] if len(closed) else self.own_codes[-1]
        self.own_codes = np.vstack([codes[self.has_own_row], shared])

    @property
    def n_items(self) -> int:
        """Items of the catalogue, those that left among them while they keep their indices."""
        return len(self.device_counts)

    @property
    def open_rows(self) -> npt.NDArray[np.bool_]:
        """By item, whether it is open: devices upload its row, and it is published."""
        return (self.device_counts >= self.gate) & ~self.removed if self.gate > 1 else ~self.removed

    @property
    def has_shared_row(self) -> bool:
        """Whether items can be closed, so that the published codes end with the row of these."""
        return self.gate > 1 or bool(self.removed.any())

    @property
    def awaits_refresh(self) -> bool:
        """Whether one gate refresh is in, and another, of other devices, must follow before rows open or close."""
        return False

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """What is published: a row for each open item, and the shared row if there is one."""
        rows = self._row_is_open.copy()
        rows[-1] = self.has_shared_row
        return self.own_codes[rows]

    def published_items(self) -> npt.NDArray[np.int64]:
        """The item of each published row; -1 is the shared row."""
        return np.append(np.flatnonzero(self.open_rows), [-1] * self.has_shared_row).astype(np.int64)

    def item_codes(self) -> ItemCodes:
        """The published codes, as a device maps them."""
        bitmap = self.open_rows_bitmap()
        return ItemCodes(self.codes.tobytes(), self.code_bits, OpenRows(bitmap, self.n_items) if bitmap else None)

    def signs(self) -> npt.NDArray[np.int8]:
        """D, which has a row for each item: what the published codes say, written out for audits."""
        rows = np.full(self.n_items, len(self.own_codes) - 1)
        rows[self.open_rows] = np.flatnonzero(self._row_is_open)
        return unpack_signs(self.own_codes[rows], (self.n_items, self.code_bits))

    def model(self) -> model_pb2.RoundModel:
        """The RoundModel of the current codes."""
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
        """The gate, a bit for each item; empty when every item is open."""
        return np.packbits(self.open_rows, bitorder="little").tobytes() if self.has_shared_row else b""

    def begin_round(self) -> None:
        """Forget what was collected and publish the model anew."""
        self._own_items = np.flatnonzero(self.has_own_row)
        # By row, whether it is that of an open item.
        self._row_is_open = np.append(self.open_rows[self._own_items], np.False_)
        self._reader = UploadReader(self.model(), self.open_rows_bitmap())
        self._start_sums()

    def add(self, message: bytes) -> None:
        """Count one device's upload; raises UploadError and counts nothing when it is not what the round asked for."""
        upload = self._reader.read(message)
        self._count(upload, np.searchsorted(self._own_items, upload.item_indices).astype(np.uint32))

    def finish_round(self) -> None:
        """Move the codes by what was collected."""
        self._apply()
        self.begin_round()

    def change_items(
        self,
        old_index_of_new: npt.NDArray[np.int64],
        removed: npt.NDArray[np.bool_],
        device_counts: npt.NDArray[np.int64],
        seed: int,
    ) -> None:
        """Go over to another catalogue, and begin a round. -1 as the old index says that an item joins.

        Rows move with their items and keep every bit. Those of items that are removed or have no new index are gone.
        Items that the new counts open for the first time get random codes.
        """
        old = np.asarray(old_index_of_new, np.int64)
        known = old[old >= 0]
        if not len(old) == len(removed) == len(device_counts):
            raise InvalidInputError("old indices, removed items and counts must be as many as the new catalogue has")
        if len(np.unique(known)) != len(known) or old.min(initial=0) < -1 or old.max(initial=-1) >= self.n_items:
            raise InvalidInputError("each old index must be that of another item of the old catalogue, or -1")
        has_own_row = (old >= 0) & ~removed & self.has_own_row[old]
        rows = np.append(np.searchsorted(self._own_items, old[has_own_row]), -1)
        for name in self.by_row:
            setattr(self, name, getattr(self, name)[rows])
        self.removed, self.has_own_row = np.array(removed, np.bool_), has_own_row
        self.device_counts = np.where(removed, 0, device_counts).astype(np.int64)
        self._give_rows(seed)
        self.begin_round()

    def _give_rows(self, seed: int) -> None:
        """Give items that are open for the first time random codes and an empty memory."""
        fresh = self.open_rows & ~self.has_own_row
        if not fresh.any():
            return
        random = np.random.default_rng(seed).integers(0, 256, (self.n_items, self.code_bits // 8), dtype=np.uint8)
        places = np.searchsorted(np.flatnonzero(self.has_own_row), np.flatnonzero(fresh))
        for name in self.by_row:
            values = random[fresh] if name == "own_codes" else 0
            setattr(self, name, np.insert(getattr(self, name), places, values, axis=0))
        self.has_own_row = self.has_own_row | fresh

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything a later process needs to go on after the last finished round."""
        return {name: getattr(self, name) for name in (*self.by_row, *self.by_item, *self.by_rule)}

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Take up a state. Raises InvalidInputError, and changes nothing, unless its parts fit each other."""
        expected = {*self.by_row, *self.by_item, *self.by_rule}
        if set(state) != expected:
            raise InvalidInputError(f"the state must have exactly the parts {', '.join(sorted(expected))}")
        n_rows = int(np.count_nonzero(state["has_own_row"])) + 1
        for name in self.by_row:
            _require_shape(name, state[name], n_rows, getattr(self, name))
        for name in self.by_item:
            _require_shape(name, state[name], len(state["device_counts"]), getattr(self, name))
        for name in self.by_rule:
            _require_shape(name, state[name], len(state[name]), getattr(self, name))
        for name, values in state.items():
            setattr(self, name, values)
        self.begin_round()

    @abstractmethod
    def _model_fields(self) -> dict[str, Any]: ...

    @abstractmethod
    def _start_sums(self) -> None: ...

    @abstractmethod
    def _count(self, upload: Upload, rows: npt.NDArray[np.uint32]) -> None: ...

    @abstractmethod
    def _apply(self) -> None: ...

    def _set_codes_by_sign(self, votes: npt.NDArray[np.int64]) -> None:
        """D = sign(votes), by row; a zero vote keeps the old bit."""
        self.own_codes = pack_signs(np.where(votes == 0, unpack_signs(self.own_codes, votes.shape), votes))


def _require_shape(name: str, values: npt.NDArray[Any], length: int, like: npt.NDArray[Any]) -> None:
    shape = (length, *like.shape[1:])
    if (values.shape, values.dtype) != (shape, like.dtype):
        raise InvalidInputError(
            f"{name} of the state has the shape {values.shape} of {values.dtype}, expected {shape} of {like.dtype}"
        )
