"""Kill a device that rates, syncs and trains without end, at random moments, and audit it and its coordinator.

    python -m tests.campaigns.kill_device --kills 200 --seed 0

The coordinator closes a round with each upload, so versions move on all the time. In the end its finished rounds must
be exactly the rounds that the device counts: none lost, none counted twice. Ratings are numbered, so that each
acknowledged one can be looked for.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lightfr import Device, FileKey
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.campaigns.kill_store import kill_options, show

ROOT = Path(__file__).parents[2]
ITEMS = 2_000


def open_client(folder):
    return Device.load(folder).client(folder / "data", key=FileKey(folder / "key"), allow_clear_uploads=True)


def work(folder, number):
    """Live for ever, printing the number of each acknowledged rating."""
    client = open_client(folder)
    print("open", flush=True)
    while True:
        for _ in range(3):
            client.rate(number % ITEMS, 1 + number % 5)
            print(number, flush=True)
            number += 1
        client.sync()
        client.recommend(5)
        client.participate()


def kill_once(folder, number, delay_s):
    """Start with rating `number`, kill after a while; return the number after the last acknowledged rating."""
    command = [sys.executable, "-m", "tests.campaigns.kill_device", "--work", str(folder), "--start", str(number)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        if not process.stdout.readline():
            raise AssertionError("the device ended before it was killed")
        time.sleep(delay_s)
        if process.poll() is not None:
            raise AssertionError("the device ended by itself")
        process.kill()
        numbers = process.stdout.read().split("\n")[:-1]
    return int(numbers[-1]) + 1 if numbers else number


def require_kept(folder, acknowledged):
    """Every acknowledged rating is there, in order, and at most one more; return how many are there."""
    with open_client(folder) as client:
        ratings = {entry["item_id"]: entry["rating"] for entry in client.export_my_data()["ratings"]}
        if client.status().model_version:
            client.recommend(5)
    for total in (acknowledged, acknowledged + 1):
        wanted = {number % ITEMS: 1.0 + number % 5 for number in range(max(0, total - ITEMS), total)}
        if ratings == wanted and list(ratings) == list(wanted):
            return total
    raise AssertionError(f"after {acknowledged} acknowledged ratings the store holds something else")


def require_rounds(folder):
    """Finish what is pending; then device and coordinator must count the same rounds."""
    with open_client(folder) as client:
        while client.status().upload_pending:
            client.participate()
        rounds = client.status().rounds
        deadline = time.monotonic() + 20
        while client.status().model_version != rounds + 1 and time.monotonic() < deadline:
            client.sync()
            time.sleep(0.05)
        finished = client.status().model_version - 1
    if finished != rounds:
        raise AssertionError(f"the device counts {rounds} rounds, the coordinator finished {finished}")
    return rounds


def campaign(kills, seed=0, report=lambda line: None):
    """Kill that often; return (ratings, rounds). AssertionError when anything is lost, torn or counted twice."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        authority = Authority.init(base / "authority", ["localhost"])
        (base / "items.txt").write_text("".join(f"{item}\n" for item in range(ITEMS)))
        how = {"host": "localhost", "goal": 1, "integer_ids": True, "privacy": "clear"}
        with CoordinatorProcess(base / "coordinator", authority.folder, base / "items.txt", **how) as coordinator:
            folder, done = base / "device", 0
            invited = authority.invite(coordinator.addresses["server"], coordinator.addresses["enrollment"], 600)
            (base / "invitation.json").write_text(json.dumps(invited))
            Device.enroll(base / "invitation.json", folder)
            for kill in range(kills):
                acknowledged = kill_once(folder, done, draw.uniform(0, 0.4))
                done = require_kept(folder, acknowledged)
                report(f"kill {kill + 1} of {kills}: {done} ratings kept")
            rounds = require_rounds(folder)
        authority.close()
    return done, rounds


def main():
    options = kill_options(__doc__)
    if options.work:
        work(options.work, options.start)
    ratings, rounds = campaign(options.kills, options.seed, show)
    print(file=sys.stderr)
    print(
        f"killed {options.kills} times (seed {options.seed}): {ratings} acknowledged ratings kept in order, "
        f"{rounds} rounds counted alike by device and coordinator, 0 lost, 0 twice, 0 torn"
    )


if __name__ == "__main__":
    main()
