"""Kill a process that stores without end, at random moments, and look at what is left.

    python -m tests.campaigns.kill_store --kills 200 --seed 0

Operation number i of the process is a function of i alone, so that the content after any number of them is known.
"""

import random
import sys
import tempfile
from pathlib import Path

from lightfr.keys import FileKey
from lightfr.store import Store, _store
from tests.campaigns.killing import kill_options, said_until_killed, show
from tests.campaigns.recording import write_record
from tests.sdk.store.sessions import Model, content


def operate(number, target):
    """Do operation `number` on a store, or on a model, which returns the next model."""
    draw = random.Random(number)
    kind = draw.randrange(8)
    if kind == 0:
        return target.rate([(draw.randrange(40), draw.randrange(2521)) for _ in range(30)])
    if kind == 1:
        return target.unrate(draw.randrange(40))
    if kind == 2:
        return target.update({"user": draw.randbytes(8), "pending": draw.choice([None, draw.randbytes(500)])})
    if kind == 3 and number % 5 == 0:
        return target if isinstance(target, Model) else target.rotate_key()
    return target.rate([(f"item {draw.randrange(40)}", draw.randrange(2521))])


def work(base, number, say):
    """Operate for ever, saying the number of each acknowledged operation."""
    _store._MIN_REWRITE_BYTES = 4000
    with open_store(base) as store:
        while True:
            operate(number, store)
            say(number)
            number += 1


def open_store(base):
    return Store.open(base / "store", FileKey(base / "key"))


def campaign(kills, seed=0, report=lambda line: None):
    """Kill that often; return how many operations were acknowledged. AssertionError when one is lost or torn."""
    draw = random.Random(seed)
    model, done = Model(), 0
    with tempfile.TemporaryDirectory() as name:
        for kill in range(kills):
            acknowledged = said_until_killed(work, (Path(name), done), draw.uniform(0, 0.05))[-1] + 1
            model, done = _require_kept(Path(name), model, done, acknowledged)
            report(f"kill {kill + 1} of {kills}: {done} operations kept")
    return done


def _require_kept(base, model, done, acknowledged):
    for number in range(done, acknowledged):
        model = operate(number, model)
    following = operate(acknowledged, model)
    with open_store(base) as store:
        found = content(store)
    if found == model:
        return model, acknowledged
    if found == following:
        return following, acknowledged + 1
    raise AssertionError(f"after {acknowledged} acknowledged operations the store holds something else")


def main():
    options = kill_options(__doc__)
    done = campaign(options.kills, options.seed, show)
    print(file=sys.stderr)
    write_record(options, {"operations_kept": done})
    print(f"killed {options.kills} times (seed {options.seed}): all {done} acknowledged operations kept, in order")


if __name__ == "__main__":
    main()
