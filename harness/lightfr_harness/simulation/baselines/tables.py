"""Numbers in messages and on disk: float64, little-endian."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from lightfr_harness.data.ratings import Index

from .adam import Array
from .lightfr_baselines_pb2 import ItemRows, Table
from .method import Floats


def to_table(values: Array) -> Table:
    """A matrix; a vector is one row."""
    return Table(columns=values.shape[-1], values=values.astype("<f8").tobytes())


def from_table(table: Table) -> Floats:
    return np.frombuffer(table.values, "<f8").reshape(-1, table.columns)


def to_rows(items: Index, values: Array) -> ItemRows:
    return ItemRows(item_indices=items.tolist(), rows=to_table(values))


def from_rows(message: ItemRows) -> tuple[Index, Floats]:
    return np.array(message.item_indices, np.uint32), from_table(message.rows)


def bytes_on_disk(**arrays: Array) -> int:
    """What a device stores, written to files and counted there."""
    with tempfile.TemporaryDirectory() as folder:
        for name, values in arrays.items():
            (Path(folder) / name).write_bytes(values.astype("<f8").tobytes())
        return sum(path.stat().st_size for path in Path(folder).iterdir())


def best_items(scores: Array, rated: Index, k: int) -> Index:
    """The k unrated items with the highest scores, best first."""
    scores = scores.copy()
    scores[rated] = -np.inf
    best = np.argpartition(scores, len(scores) - k)[-k:]
    return best[np.argsort(-scores[best], kind="stable")].astype(np.uint32)
