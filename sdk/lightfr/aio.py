"""The client for apps that run an event loop: the same calls, awaited; each runs in a thread of the loop's pool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lightfr.client import Client, Participation, Recommendation, Status

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self


class AsyncClient:
    """A Client whose calls do not block the loop. Cancelling an await does not stop work that has begun."""

    def __init__(self, client: Client) -> None:
        """Wrap a client; AsyncClient.open makes both."""
        self._client = client

    @classmethod
    async def open(cls, *where: Any, **how: Any) -> AsyncClient:
        """Open as Client.open does."""
        return cls(await asyncio.to_thread(Client.open, *where, **how))

    async def rate(self, item_id: str | int, rating: float) -> None:
        """Keep a rating."""
        await asyncio.to_thread(self._client.rate, item_id, rating)

    async def rate_many(self, ratings: Iterable[tuple[str | int, float]]) -> None:
        """Keep several ratings at once."""
        await asyncio.to_thread(self._client.rate_many, ratings)

    async def unrate(self, item_id: str | int) -> bool:
        """Forget the rating of an item."""
        return await asyncio.to_thread(self._client.unrate, item_id)

    async def recommend(self, k: int = 10, *, exclude_rated: bool = True) -> list[Recommendation]:
        """Return the k best items."""
        return await asyncio.to_thread(self._client.recommend, k, exclude_rated=exclude_rated)

    async def sync(self) -> bool:
        """Fetch the newest model."""
        return await asyncio.to_thread(self._client.sync)

    async def participate(self) -> Participation:
        """Offer to take part in a round."""
        return await asyncio.to_thread(self._client.participate)

    async def status(self) -> Status:
        """Say how things stand."""
        return await asyncio.to_thread(self._client.status)

    async def export_my_data(self) -> dict[str, Any]:
        """Return all that is kept about this user."""
        return await asyncio.to_thread(self._client.export_my_data)

    async def forget(self) -> None:
        """Destroy the key and all data."""
        await asyncio.to_thread(self._client.forget)

    async def rotate_key(self) -> None:
        """Encrypt the store anew."""
        await asyncio.to_thread(self._client.rotate_key)

    async def close(self) -> None:
        """Close the client."""
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()
