"""No strategy of a lying server breaks the agreement of a small cohort; weaker rules are broken by the same search."""

from dataclasses import replace
from itertools import product
from unittest.mock import patch

import pytest

from lightfr.membership import MemberKey
from lightfr.secagg import DeviceSession, Vector, round_blocks, shamir
from lightfr.secagg.agreement import Agreement, pair_mask_key, self_mask_key
from lightfr.secagg.views import bitmap_of, included_message, quorum, survivors_message
from tests.adversary.cohort import CODE_BITS, N_ROWS, Devices, Prepared, attack, vector_of
from tests.adversary.strategies import Server

DISAGREE = "two honest devices of one roster act on different sets"
BOTH = "both secrets of one honest device are revealed"


@pytest.mark.parametrize(
    ("n", "minimum", "states", "fewest"),
    [(4, 3, 73, 3), (5, 3, 589, 3)],  # `make agreement` has six devices, and colluders
)
def test_no_strategy_gets_two_answers_or_both_secrets(n, minimum, states, fewest):
    found = Server(n, 0, minimum, most_rosters=2).search()
    assert (found.fault, found.states, found.fewest) == ("", states, fewest)


class AnswersTwice(DeviceSession):
    """Goes back to what it knew before it revealed."""

    def reveal(self, signers, signatures):
        before = self._state
        shares = super().reveal(signers, signatures)
        self._state = replace(before, next_step="sign_survivors")
        return shares


class SignsTwice(DeviceSession):
    """Signs another included set while it waits for the first one's quorum."""

    def sign_included(self, included, signature):
        if self._state.next_step == "mask":
            self._state = replace(self._state, next_step="sign_included")
        return super().sign_included(included, signature)


@pytest.mark.parametrize(("kind", "fault"), [(AnswersTwice, BOTH), (SignsTwice, DISAGREE)])
def test_a_device_that_does_a_step_twice_is_caught(kind, fault):
    claims = ["secrets"] if fault == BOTH else ["agreement"]
    assert Server(4, 0, 3, kind).search(claims).fault == fault


@pytest.mark.parametrize(
    ("replaced", "weaker"),
    [
        ("lightfr.secagg.views.quorum", lambda size: size // 2),
        ("lightfr.secagg.session.require_quorum", lambda *_: None),
        ("lightfr.secagg.views.require_signature", lambda *_: None),
    ],
    ids=["half is a quorum", "nobody counts signatures", "nobody checks signatures"],
)
def test_a_weaker_quorum_is_caught(replaced, weaker):
    with patch(replaced, weaker):
        assert Server(4, 0, 3).search().fault == DISAGREE


class IgnoresItsMinimum(DeviceSession):
    """Takes part among any two."""

    def __init__(self, *arguments, minimum_cohort, **how):
        super().__init__(*arguments, minimum_cohort=2, **how)


def test_a_device_that_ignores_its_minimum_is_caught():
    assert [Server(4, 0, 4, kind).search().fewest for kind in (DeviceSession, IgnoresItsMinimum)] == [4, 3]


def test_the_short_cuts_lose_nothing():
    """Telling each of four devices every set that it signs, or nothing, comes to the same states without them."""
    server, everybody = Server(4, 0, 3), frozenset(range(4))
    decisions = server.decisions[4]

    def acting(table, told):
        """Who acts on which set, when each device is told this: those whose set is signed by enough of them."""
        signers = {said: frozenset(d for d in told if told[d] == said) for said in told.values()}
        return frozenset(
            (d, said)
            for d, said in told.items()
            if said and any(less <= signers[said] for less in table[d, *said].enough)
        )

    def every_telling(table, before):
        """Each way to tell devices a set that they sign, with what they were told before, or nothing."""
        choices = {d: [None, *(key[1:] for key in table if key[: len(said) + 1] == (d, *said))] for d, said in before}
        return (dict(zip(choices, told, strict=True)) for told in product(*choices.values()))

    plain = set()
    for included in every_telling(decisions.uploads, [(d, ()) for d in range(4)]):
        uploads = acting(decisions.uploads, included)
        for survivors in every_telling(decisions.reveals, uploads):
            plain.add((uploads, acting(decisions.reveals, survivors)))
    searched = set()
    for uploads in server.uploads(dict.fromkeys(range(4), everybody)):
        uploaded = frozenset((d, (view.included,)) for view in uploads for d in view.actors)
        for reveals in server.reveals(uploads):
            revealed = ((d, (view.included, view.survivors)) for view in reveals for d in view.actors)
            searched.add((uploaded, frozenset(revealed)))
    assert len(plain) == 31
    assert searched == plain


def test_two_quorums_share_an_honest_device_in_every_cohort_but_those_of_five_and_seven():
    """docs/secagg.md says so. A fifth of the devices signs whatever the server likes."""
    assert [n for n in range(2, 8193) if 2 * quorum(n) <= n + n // 5] == [5, 7]


def test_one_colluder_of_five_reads_a_vector_and_the_search_finds_how():
    """The exception is real: what the search finds is done with real masks."""
    found = Server(5, 1, 4).search(claims=["secrets"])
    assert found.fault == BOTH
    included = {d: view.included for view in found.uploads for d in view.actors}
    survivors = {d: view.survivors for view in found.reveals for d in view.actors}
    assert attack(Prepared(5, minimum=4), frozenset({4}), included, survivors).read


def agreed(devices, roster, sessions, included, survivors):
    """Uploads and revealed shares, when all these sessions are told the same sets: by roster index."""
    bits, size = [bitmap_of(said, roster.size) for said in (included, survivors)], roster.size
    keys = {i: MemberKey.from_private(session.state.member_private) for i, session in sessions.items()}
    first, second = included_message(roster.digest, bits[0]), survivors_message(roster.digest, *bits)
    quorums = [
        (bitmap_of(keys, size), b"".join(keys[i].sign(message) for i in sorted(keys))) for message in (first, second)
    ]
    uploads, revealed = {}, {}
    for i, session in sessions.items():
        session.sign_included(bits[0], devices.server.sign(first))
        uploads[i] = session.mask(vector_of(i, 3), *quorums[0])
        session.sign_survivors(bits[1], devices.server.sign(second))
        revealed[i] = session.reveal(*quorums[1])
    return uploads, revealed


def secret_of(owner, revealed, what):
    """The secret of an owner, put together of what the holders revealed."""
    shares = {}
    for holder, fields in revealed.items():
        records = getattr(fields, what)
        for at in range(0, len(records), 4 + shamir.SHARE_BYTES):
            if int.from_bytes(records[at : at + 4], "little") == owner:
                shares[holder + 1] = records[at + 4 : at + 4 + shamir.SHARE_BYTES]
    return shamir.join(shares)


def test_with_two_rosters_a_sum_can_have_as_few_devices_as_a_quorum_though_the_minimum_is_more():
    """docs/secagg.md says so. Devices 0 and 1 take device 2 for a survivor; in its own roster it has dropped out."""
    devices = Devices(6, minimum=3)
    roster, sessions = devices.acknowledged([0, 1, 2])
    uploads, revealed = agreed(devices, roster, dict(enumerate(sessions[:2])), range(3), range(3))
    other, others = devices.acknowledged([2, 3, 4, 5])
    _, told = agreed(devices, other, {i: others[i] for i in (1, 2, 3)}, range(4), [1, 2, 3])
    agreement = Agreement(secret_of(0, told, "mask_keys"))
    total = Vector(round_blocks(N_ROWS, CODE_BITS, 3))
    for i, upload in uploads.items():
        own, dropped = roster.entry(i), roster.entry(2)
        total.add_packed(upload)
        seed = secret_of(i, revealed, "seeds")
        total.mask(self_mask_key(seed, roster.round_id, own.peer_id), subtract=True)
        key = pair_mask_key(agreement.with_peer(own.mask_key), roster.round_id, own.peer_id, dropped.peer_id)
        total.mask(key, subtract=True)
    plain = Vector(round_blocks(N_ROWS, CODE_BITS, 3))
    for i in uploads:
        plain.add_packed(vector_of(i, 3).pack())
    assert total.pack() == plain.pack()
