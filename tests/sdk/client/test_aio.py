"""The same calls with await, and what cancelling one does."""

import asyncio
import inspect
import threading

import pytest

from lightfr import AsyncClient, Client, FileKey
from tests.sdk.client.publisher import random_codes


def test_the_async_face_does_the_same(coordinator, enrolled):
    device = enrolled(coordinator)
    folder = device.identity.parent

    async def session():
        how = {"server": device.server, "identity": device.identity, "trust": device.trust, "allow_clear_uploads": True}
        async with await AsyncClient.open(folder / "data", key=FileKey(folder / "key"), **how) as client:
            await client.sync()
            await client.rate("item 1", 5)
            await client.rate_many([("item 2", 4)])
            await client.unrate("item 2")
            await client.seen("item 3")
            await client.dislike("item 4")
            await client.hide("item 5")
            await client.like("item 6")
            assert await client.ratings() == [("item 1", 5.0), ("item 3", 3.0), ("item 4", 1.0), ("item 6", 5.0)]
            found = await client.recommend(3)
            assert len(found) == 3
            assert await client.score(found[0].item_id) == found[0]
            assert await client.similar("item 7", 4) == client._client.similar("item 7", 4)
            assert {item.item_id for item in await client.explain("item 7")} == {"item 1", "item 3", "item 6"}
            status, exported = await client.status(), await client.export_my_data()
            assert (status.rating_count, status.ranked_by, exported["hidden"]) == (4, "unknown", ["item 5"])
            assert (await client.participate()).took_part
            assert (await client.export_my_data())["rounds"] == 1
            assert await client.export_views(folder / "views.json") == 0
            await client.rotate_key()
            await client.forget()

    asyncio.run(session())


def test_the_async_face_has_every_call_of_the_blocking_one():
    def public(kind):
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(AsyncClient) == public(Client)


def test_an_async_client_has_the_signatures_of_the_client():
    calls = [name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")]
    assert len(calls) > 10
    for name in [*calls, "open"]:
        plain, awaited = (inspect.signature(getattr(kind, name)).parameters for kind in (Client, AsyncClient))
        assert plain == awaited, name


def test_cancelling_an_awaited_participate_makes_the_device_leave_its_round(publisher, open_device):
    publisher.publish(1, random_codes(1))
    publisher.assignment()
    asked, go_on = threading.Event(), threading.Event()

    def hold(body):
        asked.set()
        go_on.wait(30)
        return 503, {}, b""

    publisher.answers["Upload"] = hold
    device = open_device()
    stages = []

    async def begin_and_cancel():
        running = asyncio.create_task(AsyncClient(device).participate(stages.append))
        await asyncio.to_thread(asked.wait, 20)
        assert device.status().upload_pending
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(begin_and_cancel())
    assert not go_on.is_set()
    go_on.set()
    with device._network:
        assert not device.status().upload_pending
    assert stages == ["placed"]
