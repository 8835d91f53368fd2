"""Whom a server tells what, so that it would collect both secrets behind somebody's masks."""

import random

from lightfr.secagg.roster import least_neighbours
from lightfr.secagg.views import quorum


def colluders_of(roster, n_colluders):
    """Any devices: who they are does not matter, since nobody chooses neighbours or holders."""
    return frozenset(random.Random(n_colluders).sample(range(roster.size), n_colluders))


def same_for_all(roster):
    return dict.fromkeys(range(roster.size), frozenset(range(roster.size)))


def split_survivors(roster, colluders):
    """(included, survivors): one included set; two groups, each told that some devices of the other dropped out.

    Of those devices the one group reveals the mask keys and the other, in which they are, the seeds.
    """
    size, everybody = roster.size, frozenset(range(roster.size))
    honest = sorted(everybody - colluders)
    random.Random(7).shuffle(honest)
    groups = honest[::2], honest[1::2]
    # Not so many that devices leave because too few of their neighbours are left.
    most = size // 4
    told = {}
    for group, other in (groups, groups[::-1]):
        told |= dict.fromkeys(group, everybody - frozenset(other[:most]))
    return same_for_all(roster), told


def split_included(roster, colluders):
    """(included, survivors): a victim masks with colluders and with devices that the others call dropped out.

    Everybody else is told the whole cohort, so that the others are a quorum, and reveal the victim's seed and the mask
    keys of those who "dropped out".
    """
    everybody = frozenset(range(roster.size))
    dropped, victims = _dropped_around_victims(roster, colluders)
    included = dict.fromkeys(everybody - victims, everybody)
    for victim in victims:
        included[victim] = everybody - frozenset(roster.neighbours(victim)) | dropped | colluders | {victim}
    survivors = dict.fromkeys(everybody - victims - dropped, everybody - dropped)
    return included, survivors


def victims_of(included):
    """Those who are told that less than everybody is included."""
    most = max(map(len, included.values()))
    return {index for index, told in included.items() if len(told) < most}


def _dropped_around_victims(roster, colluders):
    """Victims, and as few devices as possible that must be called dropped out to read them."""
    dropped, victims = set(), set()
    around = [roster.neighbours(i) for i in range(roster.size)]
    if roster.is_complete:
        needed, left = roster.threshold - 1, roster.threshold
    else:
        needed, left = None, quorum(roster.size)

    def lacking(victim):
        neighbours = around[victim]
        wanted = least_neighbours(len(neighbours)) if needed is None else needed
        return max(wanted - len((dropped | colluders).intersection(neighbours)), 0)

    while candidates := set(range(roster.size)) - colluders - victims - dropped:
        victim = min(candidates, key=lambda i: (lacking(i), i))
        more = [i for i in around[victim] if i not in dropped | colluders | victims][: lacking(victim)]
        if len(more) < lacking(victim) or roster.size - len(dropped) - len(more) - len(victims) - 1 < left:
            break
        dropped |= set(more)
        victims.add(victim)
    return frozenset(dropped), frozenset(victims)
