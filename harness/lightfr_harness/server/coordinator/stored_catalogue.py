"""A list of items that waits in the database for any of its replicas."""

from __future__ import annotations

import hashlib

from lightfr_harness.server.coordinator.storage import Storage


class StoredCatalogue:
    """What NextCatalogue is in a folder. The transaction that takes a list up deletes it, so no crash can leave one."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._taken = storage, ""
        # The SHA-256 of the list that waits, as far as this process knows; empty: none does.
        self.seen = ""

    @property
    def is_there(self) -> bool:
        return bool(self.seen)

    def is_same(self, sha256: str) -> bool:
        """Whether the list that waits has this digest."""
        return self.seen == sha256

    async def put(self, content: bytes) -> None:
        """Keep a list, durably."""
        await self._storage.offer_catalogue(content)

    async def take(self, version: int) -> bytes | None:
        """The list that waits, which shall make this version; None: another process has just taken it up."""
        content = await self._storage.read(lambda stored: stored.next_catalogue())
        self._taken = "" if content is None else hashlib.sha256(content).hexdigest()
        self.seen = self._taken
        return content

    async def drop(self) -> None:
        """Forget the list that was taken: it has made its version, or cannot."""
        await self._storage.drop_catalogue(self._taken)
        if self.seen == self._taken:
            self.seen = ""

    def recover(self, newest: int) -> None:
        """After a crash: a list that is stored waits, and one that has made its version is not stored."""
