"""What a real device does, phase by phase; run as a script of its own, so that only the SDK is loaded.

Arguments: folder, server, identity, trust, number of ratings, popular items that half of them are of, least cohort.
After each phase it prints a line of JSON and waits for a line on standard input, so that whoever measures can look at
the process from outside.
"""

import json
import os
import sys

from lightfr import Client, FileKey


def pause(phase: str, **facts: object) -> None:
    """Say that a phase has ended and wait."""
    print(json.dumps({"phase": phase, **facts}), flush=True)
    sys.stdin.readline()


def main() -> None:
    """Open, rate, sync; then a round, in the clear or among others, as the server's model says."""
    folder, server, identity, trust, n_ratings, popular, minimum_cohort = sys.argv[1:]
    pause("start")
    client = Client.open(
        f"{folder}/data",
        server=server,
        identity=identity,
        trust=trust,
        key=FileKey(f"{folder}/key"),
        minimum_cohort=int(minimum_cohort),
    )
    pause("open")
    client.rate_many((_item(number, int(popular)), 5) for number in range(int(n_ratings)))
    pause("rate")
    client.sync()
    pause("sync", catalogue_bytes=client._model.manifest.message.catalogue.size_bytes)
    from lightfr.v1 import model_pb2

    is_clear = client._model.manifest.message.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR
    (_in_the_clear if is_clear else _among_others)(client)


def _item(number: int, popular: int) -> int:
    drawn = int.from_bytes(os.urandom(2), "little")
    return drawn * 7 if number % 2 else drawn % popular


def _in_the_clear(client: Client) -> None:
    """Take part, sync the delta, recommend."""
    from lightfr._wire import coordinator

    assignment = coordinator.check_in(client._channel, 1, client._privacy_modes())
    pause("check-in")
    client._begun(assignment)
    request = client._store.get("pending_upload")
    update = coordinator.coordinator_pb2.UploadRequest.FromString(request).row_update
    pause("train", payload_bytes=update.ByteSize())
    client.participate()
    pause("upload")
    while not client.sync():
        pause("sync-unchanged")
    pause("delta sync")
    _recommend(client)


def _among_others(client: Client) -> None:
    """Recommend first, so that the codes are in memory; then take part with secure aggregation."""
    _recommend(client)
    _pause_around_calls()
    pause("round", took_part=client.participate().took_part, loaded=_loaded())


def _recommend(client: Client) -> None:
    recommended = client.recommend(10)
    pause("recommend", items=len(recommended), loaded=_loaded())


def _loaded() -> list[str]:
    suspects = ("numpy", "grpc", "aiohttp", "sqlite3", "asyncio", "cryptography.x509")
    return [name for name in suspects if name in sys.modules]


def _pause_around_calls() -> None:
    """From now on every call is a phase, and so is what comes before it: work, and downloads."""
    from lightfr._wire.channel import Channel

    call = Channel.call

    def watched(channel: Channel, method: str, request: bytes, limit_bytes: int) -> bytes:
        name = method.partition("/")[2]
        pause(f"before {name}")
        answer = call(channel, method, request, limit_bytes)
        pause(name, request_bytes=len(request), answer_bytes=len(answer))
        return answer

    Channel.call = watched  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
