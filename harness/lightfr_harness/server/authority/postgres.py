"""The authority's tables in PostgreSQL: in a schema of their own, which only the role that made it may read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from lightfr_harness.server.coordinator.postgres import Session, connect, in_one_line, translated

from .databases import SCHEMA
from .errors import AuthorityError, RegistryError

NAME = "lightfr_authority"
# Of the advisory lock that whoever changes something holds.
_WRITING = 0x6C666361
# In SQLite every table has a rowid, by which the oldest device comes first.
_ROWID = "rowid BIGINT GENERATED ALWAYS AS IDENTITY"


class PostgresSchema:
    """A connection, which is made anew when it was lost."""

    def __init__(self, address: str) -> None:
        self._address = address
        with _errors():
            self._session = self._connected()
            (is_there,) = self._session.execute("SELECT to_regclass('devices') IS NOT NULL").fetchone() or (False,)
        if not is_there:
            self.close()
            raise AuthorityError(
                "The database has no authority that this role may read. Restore it from a copy, or look at the address"
                " in the file `database` of the authority's folder."
            )

    @classmethod
    @contextmanager
    def creating(cls, address: str) -> Iterator[None]:
        """Make the empty tables when the block ends well."""
        schema = translated(SCHEMA.replace("INTEGER PRIMARY KEY AUTOINCREMENT", f"{_ROWID[6:]} PRIMARY KEY"))
        for table in ("devices", "renewals"):
            schema += f"ALTER TABLE {table} ADD COLUMN {_ROWID};"
        with _errors(), connect(address) as connection:
            try:
                connection.execute(f"CREATE SCHEMA {NAME}")
            except errors.DuplicateSchema as error:
                raise AuthorityError(
                    "The database holds an authority already: go on with its folder, or name another database."
                ) from error
            connection.execute(f"SET LOCAL search_path = {NAME}")
            connection.execute(schema.encode())
            yield

    def run(self, statement: str, values: Sequence[str | bytes | int] = ()) -> Sequence[tuple[Any, ...]]:
        with _errors():
            self._reconnect()
            cursor = self._session.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with _errors():
            self._reconnect()
            with self._session.transaction():
                self._session.execute("SELECT pg_advisory_xact_lock(?)", (_WRITING,))
                yield

    def close(self) -> None:
        self._session.close()

    def _connected(self) -> Session:
        return Session(connect(self._address, autocommit=True, options=f"-c search_path={NAME}"))

    def _reconnect(self) -> None:
        """Only between two transactions: within one, a lost connection ends it."""
        if self._session.connection.closed:
            self._session = self._connected()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise RegistryError(f"The authority's database failed ({in_one_line(error)}). Try again.") from error
