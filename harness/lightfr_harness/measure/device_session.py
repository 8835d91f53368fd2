"""What a real device does, phase by phase; run as a script of its own, so that only the SDK is loaded.

Arguments: folder, server, identity, trust, number of ratings. After each phase it prints a line of JSON and waits for a
line on standard input, so that whoever measures can look at the process from outside.
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
    """Open, rate, sync, take part, sync the delta, recommend."""
    folder, server, identity, trust, n_ratings = sys.argv[1:]
    pause("start")
    client = Client.open(f"{folder}/data", server=server, identity=identity, trust=trust, key=FileKey(f"{folder}/key"))
    pause("open")
    client.rate_many((int.from_bytes(os.urandom(2), "little") * 7, 5) for _ in range(int(n_ratings)))
    pause("rate")
    client.sync()
    pause("sync", catalogue_bytes=client._model.manifest.message.catalogue.size_bytes)
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
    recommended = client.recommend(10)
    suspects = ("numpy", "grpc", "aiohttp", "sqlite3", "asyncio")
    loaded = [name for name in suspects if name in sys.modules]
    pause("recommend", items=len(recommended), loaded=loaded)


if __name__ == "__main__":
    main()
