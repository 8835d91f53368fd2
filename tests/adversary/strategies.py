"""Every strategy of a server that lies to a small cohort, by enumeration. Devices decide by the SDK's own sessions.

The server tells each device one of at most two rosters, then an included set, then a survivor set, or nothing more.
It shows any signers, with true signatures and false ones, and tries to get a second signature. `Decisions` asks the
sessions what they answer to each of these. Then three facts make the rest small, and lose nothing:

- Whatever a device sends, the server may ignore. So it gives a device its quorum whenever it can, and passes every
  share on.
- A device that is told a set and gets no quorum for it does nothing more. It might as well have been told nothing.
- Devices differ in their names only. Of strategies that are the same under other names one is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import NamedTuple

from lightfr.errors import PrivacyError
from lightfr.membership import MemberKey
from lightfr.secagg import DeviceSession
from lightfr.secagg.views import bitmap_of, included_message, survivors_message
from tests.adversary.cohort import Devices, remembered_signatures, twin_of, vector_of


def subsets(of, least=0):
    """All subsets with so many elements or more, the small ones first."""
    ordered = sorted(of)
    for size in range(least, len(ordered) + 1):
        yield from map(frozenset, combinations(ordered, size))


class Answer(NamedTuple):
    """What a device does about a set that it has signed: `enough` are the least true signatures for which it acts.

    When the set is of survivors, it then reveals shares of these owners' secrets.
    """

    enough: list[frozenset[int]]
    seeds: frozenset[int] = frozenset()
    mask_keys: frozenset[int] = frozenset()


class Decisions:
    """What each device of a complete roster answers to everything that a server can say. Sets are of roster indices."""

    @remembered_signatures()
    def __init__(self, size, minimum, kind=DeviceSession):
        devices = Devices(size, minimum=minimum, kind=kind)
        self._server = lru_cache(None)(devices.server.sign)
        self._roster, sessions = devices.acknowledged(range(size))
        self._keys = [MemberKey.from_private(session.state.member_private) for session in sessions]
        self._sign = lru_cache(None)(lambda index, message: self._keys[index].sign(message))
        self.size, self.threshold = size, self._roster.threshold
        # By device and included set; by device, included set and survivor set.
        self.uploads, self.reveals = {}, {}
        # How many included and how many survivor sets a device signs: 1 unless a second one was signed too.
        self.most_included = self.most_survivors = 1
        for index, session in enumerate(sessions):
            self._ask_included(index, session)

    def _ask_included(self, index, session):
        messages = {told: included_message(self._roster.digest, self._bits(told)) for told in subsets(range(self.size))}
        for told, message in messages.items():
            signed = self._signed(session, "sign_included", told, message)
            if signed is None:
                continue
            enough, uploaded, _ = self._acts(signed, "mask", message)
            self.uploads[index, told] = Answer(enough)
            after = [signed, *([uploaded] if uploaded else [])]
            if any(self._signed(one, "sign_included", other, messages[other]) for one in after for other in messages):
                self.most_included = 2
            if uploaded:
                self._ask_survivors(index, told, uploaded)

    def _ask_survivors(self, index, included, session):
        digest, bits = self._roster.digest, self._bits(included)
        messages = {told: survivors_message(digest, bits, self._bits(told)) for told in subsets(range(self.size))}
        for told, message in messages.items():
            signed = self._signed(session, "sign_survivors", told, message)
            if signed is None:
                continue
            enough, revealed, shares = self._acts(signed, "reveal", message)
            owners = [_owners(records) for records in shares or (b"", b"")]
            self.reveals[index, included, told] = Answer(enough, *owners)
            after = [signed, *([revealed] if revealed else [])]
            if any(self._signed(one, "sign_survivors", other, messages[other]) for one in after for other in messages):
                self.most_survivors = 2

    def _signed(self, session, step, told, message):
        """The session when it has signed this set; None when it refuses."""
        trial = twin_of(session)
        try:
            getattr(trial, step)(self._bits(told), self._server(message))
        except PrivacyError:
            return None
        return trial

    def _acts(self, session, step, message):
        """The least true signatures for which a device acts; its session then, and what it sends.

        Every set of claimed signers is tried with every set of true signatures; the others are of something else.
        """
        enough, after, sent = [], None, None
        for true in subsets(range(self.size)):
            if any(less <= true for less in enough):
                continue
            for more in subsets(frozenset(range(self.size)) - true):
                claimed = sorted(true | more)
                signatures = b"".join(self._sign(i, message if i in true else b"something else") for i in claimed)
                vector = [vector_of(0, self.size)] if step == "mask" else []
                trial = twin_of(session)
                try:
                    sent = getattr(trial, step)(*vector, self._bits(claimed), signatures)
                except PrivacyError:
                    continue
                enough.append(true)
                after = trial
                break
        return enough, after, sent

    def _bits(self, told):
        return bitmap_of(told, self.size)


def _owners(records):
    """The owners of revealed shares: an index of 4 bytes is before each share of 33."""
    return frozenset(int.from_bytes(records[at : at + 4], "little") for at in range(0, len(records), 37))


class View(NamedTuple):
    """A set that some devices were told and act on: `included`, and `survivors` once that is what it is about."""

    roster: frozenset[int]
    actors: frozenset[int]
    included: frozenset[int]
    survivors: frozenset[int] | None = None


@dataclass
class Found:
    """What an enumeration found: how many states, the fewest honest devices in a sum, and the first state at fault."""

    fewest: int
    states: int = 0
    fault: str = ""
    uploads: list[View] = field(default_factory=list)
    reveals: list[View] = field(default_factory=list)


class Server:
    """A server with all its strategies, and with the last `n_colluders` devices of the cohort."""

    def __init__(self, n, n_colluders, minimum, kind=DeviceSession, most_rosters=1):
        everybody = frozenset(range(n))
        self.n, self.honest = n, frozenset(range(n - n_colluders))
        self.colluders, self.most_rosters = everybody - self.honest, most_rosters
        # A fifth of a roster may collude: of smaller ones nothing is promised.
        fair = [told for told in subsets(everybody, minimum) if 5 * len(told & self.colluders) <= len(told)]
        self.rosters = fair if most_rosters == 2 else [everybody]
        self.decisions = {size: Decisions(size, minimum, kind) for size in {len(roster) for roster in self.rosters}}

    def search(self, claims=("agreement", "secrets")):
        """Walk through all states until one is at fault."""
        found = Found(fewest=len(self.honest))
        for told, uploads, reveals in self._states():
            found.states += 1
            found.fault, sums = self._judge(told, uploads, reveals, claims)
            found.fewest = min([found.fewest, *map(len, sums)])
            if found.fault:
                found.uploads, found.reveals = uploads, reveals
                break
        return found

    def _states(self):
        """What each device was told for a roster, who uploads on which view, and who reveals on which."""
        sharing, uploading, revealing = set(), set(), set()
        for told in self._rosters_told():
            for uploads in self.uploads(told) if not self._is_known(sharing, told) else ():
                if not self._is_known(uploading, told, uploads):
                    for reveals in self.reveals(uploads):
                        if not self._is_known(revealing, told, uploads, reveals):
                            yield told, uploads, reveals

    def strategies(self):
        """How many there are, without the choice of signers: two sets, or nothing, for each device of a roster."""
        return sum(prod((2 ** len(roster) + 1) ** 2 for roster in told.values()) for told in self._rosters_told())

    def _rosters_told(self):
        """Each honest device's roster, in every way, with at most two of them at a time."""
        for number, one in enumerate(self.rosters):
            for other in self.rosters[number:]:
                for second in subsets(one & other & self.honest) if one != other else [frozenset()]:
                    yield {d: one if d in one - second else other for d in (one | other) & self.honest}

    def _is_known(self, seen, told, *views):
        """Whether the same state was there under other names. Who is in the same sets has the same name."""
        rosters = sorted(set(told.values()), key=sorted)
        flat = [view for some in views for view in some]
        sets = [*rosters, *(frozenset(d for d in told if told[d] == roster) for roster in rosters)]
        sets += [part for view in flat for part in (view.roster, view.actors, view.included, view.survivors or ())]
        names = sorted((d in self.honest, *(d in part for part in sets)) for d in range(self.n))
        key = (*names, *(view.survivors is None for view in flat))
        return key in seen or seen.add(key) is not None

    def uploads(self, told):
        """Every way to have devices upload."""
        options = []
        for roster in sorted(set(told.values()), key=sorted):
            decisions, places = self._of(roster)
            for included in subsets(roster):
                answers = self._answers(decisions.uploads, places, [d for d in told if told[d] == roster], included)
                options.append((View(roster, frozenset(), included), answers, decisions.most_included))
        return self._ways(options, {})

    def reveals(self, uploads):
        """Every way to have those devices reveal."""
        options = []
        for view in uploads:
            decisions, places = self._of(view.roster)
            for survivors in subsets(view.roster):
                answers = self._answers(decisions.reveals, places, view.actors, view.included, survivors)
                options.append((view._replace(survivors=survivors), answers, decisions.most_survivors))
        return self._ways(options, {})

    def _of(self, roster):
        """What devices of a roster of this size decide, and the place of each device in it."""
        return self.decisions[len(roster)], {device: place for place, device in enumerate(sorted(roster))}

    @staticmethod
    def _answers(table, places, devices, *told):
        """What each device answers that signs what it is told."""
        there = tuple(frozenset(map(places.__getitem__, some)) for some in told)
        by_place = {d: table.get((places[d], *there)) for d in devices}
        names = {place: device for device, place in places.items()}
        named = {}
        for device, answer in by_place.items():
            if answer is not None:
                named[device] = [frozenset(map(names.__getitem__, less)) for less in answer.enough]
        return named

    def _ways(self, options, signed):
        """Yield every list of views on each of which somebody acts. `signed` says how often a device has signed."""
        yield []
        for number, (view, answers, most) in enumerate(options):
            willing = [d for d in answers if signed.get(d, 0) < most]
            for group in subsets(willing, 1):
                signers = group | self.colluders
                actors = frozenset(d for d in group if any(less <= signers for less in answers[d]))
                if actors:
                    more = signed | {d: signed.get(d, 0) + 1 for d in group}
                    for rest in self._ways(options[number + 1 :], more):
                        yield [view._replace(actors=actors), *rest]

    def _judge(self, told, uploads, reveals, claims):
        """What is wrong with a state, if anything, and the sums that the server can read, as sets of honest devices."""
        seeds, mask_keys = self._known(told, reveals)
        rosters = [view.roster for view in uploads], [view.roster for view in reveals]
        if "agreement" in claims and any(len(set(some)) < len(some) for some in rosters):
            return "two honest devices of one roster act on different sets", []
        if "secrets" in claims and seeds & mask_keys:
            return "both secrets of one honest device are revealed", []
        return "", self._sums(uploads, seeds, mask_keys)

    def _known(self, told, reveals):
        """Whose seeds and whose mask keys the server can put together: honest devices with enough revealed shares."""
        holders = {}
        for view in reveals:
            decisions, places = self._of(view.roster)
            names = {place: device for device, place in places.items()}
            there = [frozenset(map(places.__getitem__, some)) for some in (view.included, view.survivors)]
            for device in view.actors:
                answer = decisions.reveals[places[device], *there]
                for what in ("seeds", "mask_keys"):
                    # A share that was dealt in another roster does not open, and so is held by nobody in this one.
                    for owner in map(names.__getitem__, getattr(answer, what)):
                        if told.get(owner) == view.roster:
                            holders.setdefault((what, owner), set()).add(device)
        return tuple(
            frozenset(
                owner
                for owner, roster in told.items()
                if len(holders.get((what, owner), set()) | (self.colluders & roster)) >= self._of(roster)[0].threshold
            )
            for what in ("seeds", "mask_keys")
        )

    def _sums(self, uploads, seeds, mask_keys):
        """The least sums of honest vectors from which all masks come off.

        A pair mask that nobody can take off cancels only where both of its devices uploaded and count each other in:
        then they are in the same sum. Where one of them did not, the other one's vector stays masked.
        """
        included = {device: view.included for view in uploads for device in view.actors}
        sums = []
        for first in sorted(included):
            group, waiting, is_masked = set(), [first], False
            while waiting:
                device = waiting.pop()
                if device in group:
                    continue
                group.add(device)
                is_masked |= device not in seeds
                for other in (included[device] & self.honest) - {device}:
                    if device in mask_keys or other in mask_keys:
                        continue
                    is_masked |= device not in included.get(other, ())
                    waiting += [other] if other in included else []
            if not is_masked and group not in sums:
                sums.append(group)
        return sums
