"""The client for apps that run an event loop: the same calls, awaited; each runs in a thread of the loop's pool."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from lightfr.client import Client
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from lightfr.budget import Budget
    from lightfr.interactions import RatingScale
    from lightfr.keys import KeyProvider
    from lightfr.participation import Participation, RoundStage
    from lightfr.results import ExportedData, Recommendation, Status


class AsyncClient:
    """A Client whose calls do not block the loop.

    Cancelling an awaited participate() makes the device leave its round. Other work that has begun goes on.
    """

    def __init__(self, client: Client) -> None:
        """Wrap a client; AsyncClient.open makes both."""
        self._client = client

    @classmethod
    async def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        server: str,
        identity: str | os.PathLike[str],
        trust: str | os.PathLike[str],
        key: KeyProvider,
        scale: RatingScale | None = None,
        minimum_cohort: int = DEFAULT_MINIMUM_COHORT,
        allow_clear_uploads: bool = False,
        budget: Budget | None = None,
        require_dp: float | None = None,
    ) -> AsyncClient:
        """Open as Client.open does."""
        client = await asyncio.to_thread(
            Client.open,
            folder,
            server=server,
            identity=identity,
            trust=trust,
            key=key,
            scale=scale,
            minimum_cohort=minimum_cohort,
            allow_clear_uploads=allow_clear_uploads,
            budget=budget,
            require_dp=require_dp,
        )
        return cls(client)

    async def rate(self, item_id: str | int, rating: float) -> None:
        """Keep a rating."""
        await asyncio.to_thread(self._client.rate, item_id, rating)

    async def rate_many(self, ratings: Iterable[tuple[str | int, float]]) -> None:
        """Keep several ratings at once."""
        await asyncio.to_thread(self._client.rate_many, ratings)

    async def like(self, item_id: str | int) -> None:
        """Keep that the user likes an item."""
        await asyncio.to_thread(self._client.like, item_id)

    async def dislike(self, item_id: str | int) -> None:
        """Keep that the user dislikes an item."""
        await asyncio.to_thread(self._client.dislike, item_id)

    async def seen(self, item_id: str | int) -> None:
        """Keep an event that is no rating."""
        await asyncio.to_thread(self._client.seen, item_id)

    async def hide(self, item_id: str | int) -> None:
        """Never recommend an item again."""
        await asyncio.to_thread(self._client.hide, item_id)

    async def unrate(self, item_id: str | int) -> bool:
        """Forget the rating of an item."""
        return await asyncio.to_thread(self._client.unrate, item_id)

    async def ratings(self) -> list[tuple[str | int, float]]:
        """Return what the user rated."""
        return await asyncio.to_thread(self._client.ratings)

    async def recommend(
        self,
        k: int = 10,
        *,
        exclude_rated: bool = True,
        exclude: Iterable[str | int] = (),
        among: Iterable[str | int] | None = None,
    ) -> list[Recommendation]:
        """Return the k best items."""
        return await asyncio.to_thread(
            self._client.recommend, k, exclude_rated=exclude_rated, exclude=exclude, among=among
        )

    async def score(self, item_id: str | int) -> Recommendation:
        """Return one item as recommend() would."""
        return await asyncio.to_thread(self._client.score, item_id)

    async def similar(self, item_id: str | int, k: int = 10) -> list[Recommendation]:
        """Return the k items that are most like an item."""
        return await asyncio.to_thread(self._client.similar, item_id, k)

    async def explain(self, item_id: str | int, k: int = 3) -> list[Recommendation]:
        """Return the k liked items that are most like an item."""
        return await asyncio.to_thread(self._client.explain, item_id, k)

    async def sync(self) -> bool:
        """Fetch the newest model."""
        return await asyncio.to_thread(self._client.sync)

    async def participate(
        self, progress: Callable[[RoundStage], None] | None = None, cancel: threading.Event | None = None
    ) -> Participation:
        """Offer to take part in a round. `progress` is called in the event loop."""
        cancel, loop = cancel or threading.Event(), asyncio.get_running_loop()

        def report(stage: RoundStage) -> None:
            if progress is not None:
                loop.call_soon_threadsafe(progress, stage)

        try:
            return await asyncio.to_thread(self._client.participate, report, cancel)
        except asyncio.CancelledError:
            cancel.set()
            raise

    async def status(self) -> Status:
        """Say how things stand."""
        return await asyncio.to_thread(self._client.status)

    async def export_my_data(self) -> ExportedData:
        """Return all that is kept about this user."""
        return await asyncio.to_thread(self._client.export_my_data)

    async def export_views(self, path: str | os.PathLike[str]) -> int:
        """Write what the server told in the last rounds."""
        return await asyncio.to_thread(self._client.export_views, path)

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
