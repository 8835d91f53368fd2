"""A server gives one device a round of its own: another model, another question, or the same question twice."""

from dataclasses import replace

import pytest

from lightfr.errors import PrivacyError
from lightfr.secagg import DeviceSession
from lightfr.secagg.views import bitmap_of, included_message, roster_message, survivors_message
from tests.adversary.cohort import Devices, Prepared, attack, forged_quorum, vector_of
from tests.adversary.plans import same_for_all

N, VICTIM = 24, 7
ALL = frozenset(range(N))
FOR_THE_VICTIM = {"manifest_sha256": b"\1" * 32, "kind": 2}


@pytest.mark.parametrize("field", FOR_THE_VICTIM)
def test_a_device_with_another_model_or_question_than_its_cohort_finds_no_quorum(field):
    """It is told a roster that fits its own assignment; the others, who sign, are told theirs."""
    devices = Devices(N)
    roster, vouchers, signature = devices.roster()
    victim = devices.sessions[VICTIM]
    victim._state = replace(victim.state, **{field: FOR_THE_VICTIM[field]})
    with pytest.raises(PrivacyError, match="another round"):
        victim.share(roster, vouchers, signature)
    for_victim = replace(roster, **{field: FOR_THE_VICTIM[field]})
    sealed = victim.share(for_victim, vouchers, devices.server.sign(roster_message(for_victim.digest)))
    # Shares that the others sealed for the cohort's round do not open in this one.
    others = [session for session in devices.sessions if session is not victim]
    inbox = [(session.state.peer_id, session.share(roster, vouchers, signature)) for session in others]
    mine = sorted((roster.index_of(peer), dict(records)[VICTIM]) for peer, records in inbox)
    assert victim.acknowledge(mine) == bitmap_of(ALL - {VICTIM}, N)
    everybody, message = bitmap_of(ALL, N), included_message(for_victim.digest, bitmap_of(ALL, N))
    own = victim.sign_included(everybody, devices.server.sign(message))
    with pytest.raises(PrivacyError, match="of the included set does not fit"):
        victim.mask(vector_of(VICTIM, N), *forged_quorum(N, ALL, {VICTIM: own}))
    assert len(sealed) == N - 1


@pytest.fixture(scope="module")
def cohort():
    return Prepared(N)


def up_to_reveal(cohort, survivors=ALL):
    """A session that has uploaded and signed the survivors, and what it needs to reveal."""
    digest, everybody, alive = cohort.roster.digest, bitmap_of(ALL, N), bitmap_of(survivors, N)
    sessions = {i: cohort.session(i) for i in ALL}
    included, chosen = included_message(digest, everybody), survivors_message(digest, everybody, alive)
    signed = {i: session.sign_included(everybody, cohort.server.sign(included)) for i, session in sessions.items()}
    agreed = forged_quorum(N, ALL, signed)
    for i, session in sessions.items():
        session.mask(cohort.vector(i), *agreed)
    confirmed = {i: sessions[i].sign_survivors(alive, cohort.server.sign(chosen)) for i in survivors}
    return sessions, agreed, forged_quorum(N, survivors, confirmed)


def test_a_device_answers_every_step_once_whatever_it_is_told_next(cohort):
    """With a second answer the server would have both secrets, or two vectors under one mask."""
    sessions, agreed, confirmed = up_to_reveal(cohort)
    victim, others = sessions[VICTIM], bitmap_of(ALL - {3}, N)
    message = survivors_message(cohort.roster.digest, bitmap_of(ALL, N), others)
    second = (
        lambda: victim.sign_included(others, cohort.server.sign(included_message(cohort.roster.digest, others))),
        lambda: victim.mask(cohort.vector(VICTIM), *agreed),
        lambda: victim.sign_survivors(others, cohort.server.sign(message)),
    )
    for again in second:
        with pytest.raises(PrivacyError, match="each is done once and in order"):
            again()
    assert victim.reveal(*confirmed)
    for again in (*second, lambda: victim.reveal(*confirmed)):
        with pytest.raises(PrivacyError, match="each is done once and in order"):
            again()
    # Nor does what it stored say more.
    with pytest.raises(PrivacyError, match="each is done once and in order"):
        DeviceSession.from_bytes(victim.to_bytes()).reveal(*confirmed)


def test_signatures_of_one_step_or_round_do_not_count_in_another(cohort):
    """The server keeps all signatures that it ever got: those of the included set are no survivors' signatures."""
    sessions, agreed, _ = up_to_reveal(cohort)
    with pytest.raises(PrivacyError, match="of the survivor set does not fit"):
        sessions[VICTIM].reveal(*agreed)
    other_round = Prepared(N, seed=2)
    _, elsewhere, _ = up_to_reveal(other_round)
    victim, everybody = cohort.session(VICTIM), bitmap_of(ALL, N)
    victim.sign_included(everybody, cohort.server.sign(included_message(cohort.roster.digest, everybody)))
    with pytest.raises(PrivacyError, match="of the included set does not fit"):
        victim.mask(cohort.vector(VICTIM), *elsewhere)


def test_two_devices_under_one_peer_id_are_not_both_in_a_roster():
    """The server would show each the other's messages as its own."""
    roster, _, _ = Devices(N).roster()
    twin = roster.entries[:16] + roster.entries[128:224]
    with pytest.raises(PrivacyError, match="strictly ascending"):
        replace(roster, entries=roster.entries[:112] + twin + roster.entries[224:])


def test_an_honest_server_reads_no_vector(cohort):
    """The tools of these tests find nothing where there is nothing."""
    everybody = same_for_all(cohort.roster)
    outcome = attack(cohort, frozenset(), everybody, everybody)
    assert (len(outcome.revealed), outcome.read, outcome.refusals) == (N, set(), {})
