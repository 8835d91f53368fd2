"""A device of the demo: a process of its own that uses the SDK as an app would, and nothing else.

Its arguments are its folder, which holds invitation.json and ratings.json, and how large a cohort must be for it to
take part. It enrols, rates, and trains until the coordinator says that training is finished. It prints what it would
recommend before and after as JSON.
"""

import json
import sys
import time
from pathlib import Path

from lightfr import Budget, Client, Device, FileKey, RatingScale

SHOWN = 10
# The server's pace spreads crowds over minutes. These are few, and somebody is watching.
LONGEST_PAUSE_SECONDS = 1.0
# What a fleet does in weeks, the demo does in a minute.
BUDGET = Budget(rounds_per_month=10_000, gate_refreshes_per_month=10_000)


def main(folder: Path, minimum_cohort: int) -> None:
    """Live one device's life."""
    device = Device.enroll(folder / "invitation.json", folder)
    given = json.loads((folder / "ratings.json").read_text())
    key, scale = FileKey(folder / "key"), RatingScale(*given["scale"])
    with device.client(folder / "data", key=key, scale=scale, minimum_cohort=minimum_cohort, budget=BUDGET) as client:
        client.rate_many((item_id, rating) for item_id, rating in given["ratings"])
        client.sync()
        before = client.recommend(SHOWN)
        train(client)
        client.sync()
        shown = {"before": before, "after": client.recommend(SHOWN)}
        named = {when: [item.item_id for item in items] for when, items in shown.items()}
        print(json.dumps({**named, "rounds": client.status().rounds}))


def train(client: Client) -> None:
    """Offer to take part, again and again."""
    while (outcome := client.participate()).reason != "training_finished":
        time.sleep(min(outcome.retry_after_seconds, LONGEST_PAUSE_SECONDS))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
