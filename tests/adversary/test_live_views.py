"""A coordinator tells clients different things, over TLS: real identities, real memberships, the SDK as apps use it."""

import pytest

from lightfr.errors import PrivacyError
from lightfr.secagg.views import is_signed, survivors_message
from lightfr.views import imported
from tests.adversary.live import lie_to
from tests.adversary.plans import split_included, split_survivors, victims_of

N = 24
N_COLLUDERS = N // 5
N_HONEST = N - N_COLLUDERS


def refusals(outcomes):
    return [outcome for outcome in outcomes if isinstance(outcome, PrivacyError)]


def test_clients_that_are_told_different_survivors_all_leave_and_hold_a_proof(monkeypatch, authority, tmp_path):
    cohort, outcomes, exported = lie_to(monkeypatch, authority, tmp_path, N, N_COLLUDERS, split_survivors)
    assert len(refusals(outcomes)) == N_HONEST
    assert cohort.revealed() == {}
    assert cohort.read() == set()
    views = [view for path in exported for view in imported(path.read_bytes()) if view.survivors]
    assert {len(views), len({view.round_id for view in views})} == {N_HONEST, 1}
    # Two sets of one round, both signed by the server.
    assert len({view.survivors for view in views}) == 2
    for view in views:
        message = survivors_message(view.roster_digest, view.included, view.survivors)
        assert is_signed(view.server_key, view.survivors_signature, message)


def test_clients_that_are_told_another_included_set_leave_before_they_upload(monkeypatch, authority, tmp_path):
    cohort, outcomes, _ = lie_to(monkeypatch, authority, tmp_path, N, N_COLLUDERS, split_included)
    victims = victims_of(cohort.included)
    assert len(victims) == 3
    assert victims.isdisjoint(cohort.uploaded())
    # The others upload. What they are told next lacks the signatures of those who left.
    assert len(cohort.uploaded()) == N_HONEST - len(victims)
    assert cohort.revealed() == {}
    assert cohort.read() == set()
    assert len(refusals(outcomes)) == len(victims) + len(cohort.survivors.keys() - cohort.colluders)


@pytest.mark.parametrize(("plan", "n_read"), [(split_survivors, 12), (split_included, 3)])
@pytest.mark.usefixtures("without_quorum")
def test_clients_that_believe_every_quorum_are_read(monkeypatch, authority, tmp_path, plan, n_read):
    """The attacks are real: each reads vectors, number for number, and the clients report success."""
    cohort, outcomes, _ = lie_to(monkeypatch, authority, tmp_path, N, N_COLLUDERS, plan)
    assert len(cohort.read()) == n_read
    assert refusals(outcomes) == []
