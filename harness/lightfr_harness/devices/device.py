"""What an emulated device does, phase by phase; run as a script of its own, so that only the SDK is loaded.

Argument: a JSON object. After each phase it prints a line of JSON and waits for a line on standard input, so that
whoever measures can look at the process from outside and set its counters back.
"""

import json
import random
import sys
import time

# Latencies of a phase: as many as wanted, but no longer than this.
_LONGEST_SECONDS = 10.0


def main(asked: dict) -> None:
    """Live one device's first session: open, sync, fit, round, recommend."""
    client = opened(asked)
    done("open")
    client.sync()
    done("sync")
    done("fit", timed(lambda: fit(client), asked["fits"]))
    taken_part = timed(lambda: take_part(client), 1)
    done("round", taken_part)
    done("recommend", timed(lambda: client.recommend(10), asked["recommendations"]))
    client.close()


def done(phase: str, latencies_ms: list[float] | None = None) -> None:
    """Say that a phase has ended and wait; without anybody who measures there is nothing to go on for."""
    print(json.dumps({"phase": phase, "latencies_ms": latencies_ms or []}), flush=True)
    if not sys.stdin.readline():
        sys.exit("nobody measures this device any more")


def opened(asked: dict):
    """Start, open the user's data, and keep the ratings. Imports are part of what opening costs."""
    from lightfr import Client, FileKey

    folder = asked["folder"]
    client = Client.open(
        f"{folder}/data",
        server=asked["server"],
        identity=f"{folder}/identity.pem",
        trust=asked["trust"],
        key=FileKey(f"{folder}/key"),
    )
    chosen = random.Random(asked["seed"])
    client.rate_many((item, chosen.randint(1, 5)) for item in chosen.sample(range(asked["items"]), asked["ratings"]))
    return client


def fit(client) -> None:
    """What an app waits for after a new rating: the user code, anew."""
    client._code_for_use = None
    client._fitted_for_use(client._require_model())


def take_part(client) -> None:
    """One round; without a place, come back when told to."""
    while not (outcome := client.participate()).took_part:
        time.sleep(outcome.retry_after_seconds)


def timed(work, times: int) -> list[float]:
    """Milliseconds of each call."""
    latencies: list[float] = []
    first = time.perf_counter()
    while len(latencies) < times and (not latencies or time.perf_counter() - first < _LONGEST_SECONDS):
        begin = time.perf_counter()
        work()
        latencies.append(1000 * (time.perf_counter() - begin))
    return latencies


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
