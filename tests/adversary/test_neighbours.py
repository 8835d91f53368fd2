"""A server cuts one device off from its neighbours, or tries rosters until colluders surround it."""

import os
import random

from lightfr.secagg import session as sessions
from lightfr.secagg.roster import ENTRY_BYTES, Roster, least_neighbours, usual_numbers
from tests.adversary.cohort import Prepared, attack
from tests.adversary.plans import same_for_all

SPARSE = 200
VICTIM = 17


def cut_off(cohort, n_gone):
    """Everybody is told the same: that so many of the victim's neighbours dropped out after they uploaded."""
    gone = cohort.roster.neighbours(VICTIM)[:n_gone]
    alive = frozenset(range(cohort.size)).difference(gone)
    return attack(cohort, frozenset(), same_for_all(cohort.roster), dict.fromkeys(alive, alive))


def test_a_device_whose_neighbours_are_said_to_have_dropped_out_leaves(monkeypatch):
    """The set is agreed by all, and large: only the victim sees that it is meant. Without its check it is read."""
    cohort = Prepared(SPARSE)
    n_neighbours = len(cohort.roster.neighbours(VICTIM))
    spare = n_neighbours - least_neighbours(n_neighbours)
    assert VICTIM in cut_off(cohort, spare).revealed
    outcome = cut_off(cohort, spare + 1)
    assert VICTIM not in outcome.revealed
    assert outcome.read == set()
    monkeypatch.setattr(sessions, "least_neighbours", lambda _: 0)
    assert cut_off(cohort, n_neighbours).read == {VICTIM}


def test_nobody_surrounds_a_device_by_trying_rosters():
    """The order of the cycles depends on every byte of the roster; the server chooses the ids."""
    size, tries = 512, 60
    keys, seeded = [os.urandom(ENTRY_BYTES - 16) for _ in range(size)], random.Random(3)
    colluders = set(keys[: size // 5])
    victim, best = keys[-1], 0
    for _ in range(tries):
        entries = sorted(seeded.randbytes(16) + key for key in keys)
        roster = Roster(bytes(16), bytes(32), 1, *usual_numbers(size), b"".join(entries))
        at = next(i for i, entry in enumerate(entries) if entry.endswith(victim))
        best = max(best, sum(entries[i][16:] in colluders for i in roster.neighbours(at)))
    # 13 are expected of 64. 5/8 are 40: a million tries do not get near.
    assert best < 30 < least_neighbours(64)
