"""Kill a device that rates, syncs and trains without end, at random moments, and audit it and its coordinator.

    python -m tests.campaigns.kill_device --kills 200 --seed 0 [--privacy secagg]

The coordinator closes a round with each upload, so versions move on all the time. In the end its finished rounds must
be exactly the rounds that the device counts: none lost, none counted twice. Ratings are numbered, so that each
acknowledged one can be looked for.

With secagg, four other devices take part without end, and rounds go on without the one that is killed. Then the device
must not count more rounds than it is in the sums of, and the coordinator must find no device at fault: whatever a
device sends again after a kill is what it sent before. It may count fewer: a device that is killed after its last step,
and comes back when the model has moved on, does not ask what became of the round.
"""

import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from lightfr import Budget, Device, FileKey
from lightfr.errors import LightFRError
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.phases import REVEALING
from tests.campaigns.killing import kill_options, said_until_killed, show, with_privacy
from tests.campaigns.recording import write_record
from tests.warm import CoordinatorProcess

ITEMS, OTHERS = 2_000, 4
CLEAR = {"goal": 1, "privacy": "clear"}
SECURE = {
    "privacy": "secagg", "goal": 1 + OTHERS, "over_selection": 1.0, "minimum": 3, "deadline_seconds": 1, "gate": 0,
    "evaluate_every": 0,
}  # fmt: skip
UNLIMITED = Budget(rounds_per_month=10**9, gate_refreshes_per_month=10**9)


def open_client(folder):
    return Device.load(folder).client(
        folder / "data", key=FileKey(folder / "key"), allow_clear_uploads=True, minimum_cohort=3, budget=UNLIMITED
    )


def work(folder, number, say):
    """Live for ever, saying the number of each acknowledged rating, after a first word."""
    client = open_client(folder)
    say(number - 1)
    while True:
        for _ in range(3):
            client.rate(number % ITEMS, 1 + number % 5)
            say(number)
            number += 1
        client.sync()
        client.recommend(5)
        time.sleep(min(client.participate().retry_after_seconds, 0.1))


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


class Revealed:
    """The rounds in which a device has taken the last step, as the coordinator's database tells before it forgets."""

    def __init__(self, database, device_id):
        self._database, self._device_id, self.rounds = database, device_id, set()

    def look(self):
        with sqlite3.connect(self._database) as connection:
            found = connection.execute(
                "SELECT round_id FROM deliveries WHERE device = ? AND phase = ?", (self._device_id, REVEALING)
            )
            self.rounds |= {round_id for (round_id,) in found}

    def require_counted(self, folder):
        """The device learns what became of its last round, and must have counted no round twice."""
        with open_client(folder) as client:
            while client.status().upload_pending:
                client.participate()
            self.look()
            counted = client.status().rounds
        if counted > len(self.rounds):
            raise AssertionError(f"the device counts {counted} rounds, the coordinator knows of {len(self.rounds)}")
        return f"{counted} of {len(self.rounds)}"


def live(folder, stop):
    """Another device of the cohort."""
    with open_client(folder) as client:
        client.rate_many([(item, 5) for item in random.sample(range(ITEMS), 40)])
        while not stop.is_set():
            try:
                stop.wait(min(client.participate().retry_after_seconds, 0.1))
            except LightFRError:
                stop.wait(0.1)


@contextmanager
def living(folders):
    stop = threading.Event()
    threads = [threading.Thread(target=live, args=(folder, stop)) for folder in folders]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def enrolled(authority, coordinator, folder):
    invited = authority.invite(coordinator.addresses["server"], coordinator.addresses["enrollment"], 600)
    invitation = folder.with_suffix(".json")
    invitation.write_text(json.dumps(invited))
    return Device.enroll(invitation, folder)


def kill_often(folder, kills, draw, longest_s, report, after=lambda: None):
    """Ratings that were acknowledged, and are kept after each kill."""
    done = 0
    for kill in range(kills):
        acknowledged = said_until_killed(work, (folder, done), draw.uniform(0, longest_s))[-1] + 1
        done = require_kept(folder, acknowledged)
        after()
        report(f"kill {kill + 1} of {kills}: {done} ratings kept")
    return done


def campaign(kills, seed=0, report=lambda line: None, privacy="clear"):
    """Kill that often; return (ratings, rounds). AssertionError when anything is lost, torn or counted twice."""
    draw, is_clear = random.Random(seed), privacy == "clear"
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        authority = Authority.init(base / "authority", ["localhost"])
        (base / "items.txt").write_text("".join(f"{item}\n" for item in range(ITEMS)))
        how = {"host": "localhost", "integer_ids": True, **(CLEAR if is_clear else SECURE)}
        with CoordinatorProcess(base / "coordinator", authority.folder, base / "items.txt", **how) as coordinator:
            folder = base / "device"
            device = enrolled(authority, coordinator, folder)
            if is_clear:
                done = kill_often(folder, kills, draw, 0.4, report)
                return done, require_rounds(folder)
            others = [base / f"other-{number}" for number in range(OTHERS)]
            for other in others:
                enrolled(authority, coordinator, other)
            revealed = Revealed(base / "coordinator" / "coordinator.sqlite", device.status().device_id)
            with living(others):
                done = kill_often(folder, kills, draw, 1.2, report, revealed.look)
                rounds = revealed.require_counted(folder)
            if '"event":"fault"' in coordinator.log:
                raise AssertionError("the coordinator found a device at fault")
            return done, rounds


def main():
    options = kill_options(__doc__, with_privacy)
    ratings, rounds = campaign(options.kills, options.seed, show, options.privacy)
    print(file=sys.stderr)
    write_record(options, {"ratings_kept": ratings, "rounds": rounds})
    print(
        f"killed {options.kills} times (seed {options.seed}): {ratings} acknowledged ratings kept in order, "
        f"{rounds} rounds counted by the device, none twice, 0 torn"
    )


if __name__ == "__main__":
    main()
