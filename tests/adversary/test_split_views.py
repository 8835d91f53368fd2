"""A server tells devices different sets, so that it would collect both secrets behind somebody's masks."""

import pytest

from tests.adversary.cohort import Prepared
from tests.adversary.plans import colluders_of, split_included, split_survivors
from tests.campaigns.lying_server import deceived, outcomes

# Devices, colluders, the set that differs: how many vectors are read when devices believe every quorum. In a complete
# graph more than half of all devices must reveal to give a secret back, so that few colluders gain nothing there.
SPARSE, COMPLETE = 130, 40  # 130 is the smallest cohort whose graph is not complete
WITHOUT_THE_CHECK = {
    (COMPLETE, 0, "included"): 0,
    (COMPLETE, 0, "survivors"): 0,
    (COMPLETE, 8, "included"): 7,
    (COMPLETE, 8, "survivors"): 20,
    (SPARSE, 0, "included"): 1,
    (SPARSE, 0, "survivors"): 29,
    (SPARSE, 26, "included"): 3,
    (SPARSE, 26, "survivors"): 64,
}


@pytest.mark.parametrize("size", [COMPLETE, SPARSE])
def test_no_vector_is_read_and_no_device_acts_on_a_set_that_no_quorum_was_told(size):
    """Without the check the same attacks read vectors: they are real."""
    cohort = Prepared(size)
    for n, n_colluders, name in WITHOUT_THE_CHECK:
        if n == size:
            checked, unchecked, n_victims = outcomes(cohort, n_colluders, name)
            assert (checked.read, deceived(checked, name, n_victims, n - n_colluders)) == (set(), 0)
            assert len(unchecked.read) == WITHOUT_THE_CHECK[n, n_colluders, name]


def test_the_plans_tell_different_things_and_leave_devices_no_other_reason_to_refuse():
    """Each set has the device itself, and is large enough."""
    roster = Prepared(COMPLETE).roster
    colluders = colluders_of(roster, 8)
    for plan, which in ((split_included, 0), (split_survivors, 1)):
        told = plan(roster, colluders)[which]
        assert len(set(told.values())) > 1
        assert all(
            index in said and len(said) >= roster.threshold for index, said in told.items() if index not in colluders
        )
