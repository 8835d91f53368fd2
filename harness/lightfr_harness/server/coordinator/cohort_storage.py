"""What a round of secure aggregation leaves in the data base while it lasts: deliveries, and what phases settled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import astuple

from lightfr_harness.server.coordinator.cohort import UPLOADING, Settled

SCHEMA = """
CREATE TABLE IF NOT EXISTS settled (
  number INTEGER PRIMARY KEY, phase INTEGER NOT NULL, entries BLOB NOT NULL, degree INTEGER NOT NULL,
  threshold INTEGER NOT NULL, roster_signature BLOB NOT NULL, included BLOB NOT NULL, survivors BLOB NOT NULL,
  survivors_signature BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
  number INTEGER NOT NULL, phase INTEGER NOT NULL, device TEXT NOT NULL, body BLOB NOT NULL,
  UNIQUE (number, phase, device));
"""


def add_delivery(connection: sqlite3.Connection, number: int, phase: int, device: str, body: bytes) -> None:
    """Keep a request. Uploads are kept with their receipts."""
    connection.execute("INSERT INTO deliveries VALUES (?, ?, ?, ?)", (number, phase, device, body))


def settle(connection: sqlite3.Connection, number: int, settled: Settled, deadline: float | None) -> None:
    """Keep what a phase settled, and when the next one ends."""
    connection.execute("INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *astuple(settled)))
    connection.execute("UPDATE rounds SET deadline = ? WHERE number = ?", (deadline, number))


def forget(connection: sqlite3.Connection, number: int) -> None:
    """Delete keys, shares and sets of a round, and who was who in its roster."""
    for table in ("deliveries", "settled"):
        connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))  # noqa: S608
    connection.execute("UPDATE places SET peer_id = x'' WHERE number = ?", (number,))


def read_settled(connection: sqlite3.Connection, number: int) -> Settled:
    """What the phases so far have settled."""
    columns = "phase, entries, degree, threshold, roster_signature, included, survivors, survivors_signature"
    query = f"SELECT {columns} FROM settled WHERE number = ?"  # noqa: S608
    row = connection.execute(query, (number,)).fetchone()
    return Settled() if row is None else Settled(*row)


def read_deliveries(connection: sqlite3.Connection, number: int, phase: int) -> Iterator[tuple[str, bytes]]:
    """Device and request of each delivery of a phase, one at a time."""
    if phase == UPLOADING:
        yield from connection.execute("SELECT device, body FROM uploads WHERE number = ?", (number,))
    else:
        query = "SELECT device, body FROM deliveries WHERE number = ? AND phase = ?"
        yield from connection.execute(query, (number, phase))
