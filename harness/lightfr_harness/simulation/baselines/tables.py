"""Numbers in messages and on disk: float64, little-endian. And the best of a device's scores."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from lightfr.errors import ProtocolError
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.adam import Array
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import ItemRows, Table
from lightfr_harness.simulation.baselines.method import Floats

AnyMessage = TypeVar("AnyMessage", bound=Message)


def to_table(values: Array) -> Table:
    """A matrix; a vector is one row."""
    return Table(columns=values.shape[-1], values=values.astype("<f8", copy=False).tobytes())


def from_table(table: Table) -> Floats:
    if not table.columns or len(table.values) % (8 * table.columns):
        raise ProtocolError(f"{len(table.values)} bytes are no rows of {table.columns} numbers of 8 bytes.")
    return np.frombuffer(table.values, "<f8").reshape(-1, table.columns)


def to_rows(items: Index, values: Array) -> ItemRows:
    return ItemRows(item_indices=items.tolist(), rows=to_table(values))


def from_rows(message: ItemRows) -> tuple[Index, Floats]:
    """The items, and one row for each."""
    items, rows = np.array(message.item_indices, np.uint32), from_table(message.rows)
    require_rows(len(items), len(rows))
    return items, rows


def require_rows(n_items: int, n_rows: int) -> None:
    if n_items != n_rows:
        raise ProtocolError(f"An upload has {n_items} items and {n_rows} rows; it must have one row for each item.")


def encode_table(values: Array) -> bytes:
    return to_table(values).SerializeToString()


def decode_table(message: bytes) -> Floats:
    return from_table(parsed(Table(), message))


def encode_rows(items: Index, rows: Array) -> bytes:
    return to_rows(items, rows).SerializeToString()


def decode_rows(message: bytes) -> tuple[Index, Floats]:
    return from_rows(parsed(ItemRows(), message))


def parsed(empty: AnyMessage, message: bytes) -> AnyMessage:
    """The message read into an empty one of its kind."""
    try:
        empty.ParseFromString(message)
    except DecodeError as error:
        raise ProtocolError(f"A message is no {type(empty).__name__}.") from error
    return empty


def stored_bytes(*parts: bytes | Array) -> int:
    """Bytes on disk, when each part is written to a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part if isinstance(part, bytes) else part.astype("<f8").tobytes())
        return sum(file.stat().st_size for file in files)


def best_unrated(scores: Array, rated: Index, k: int) -> Index:
    """The k items with the highest scores, best first, without the rated ones."""
    scores = scores.copy()
    scores[rated] = -np.inf
    best = np.argpartition(scores, len(scores) - k)[-k:]
    return best[np.argsort(-scores[best], kind="stable")].astype(np.uint32)
