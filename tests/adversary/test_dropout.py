"""Devices drop out: few at every step, many at one, nearly half. tests.campaigns.dropout has the figures."""

import pytest

from tests.campaigns.dropout import STEPS, failures

DEVICES = 512


def test_a_round_survives_that_one_in_twenty_leaves_before_every_step():
    assert failures(DEVICES, dict.fromkeys(STEPS, 0.05), rounds=2) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_round_survives_that_a_fifth_leaves_before_one_step(step):
    assert failures(DEVICES, {step: 0.2}, rounds=1) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_round_that_loses_nearly_half_of_its_devices_ends_before_anything_is_unmasked(step):
    """For want of a quorum, or in the last step because secrets lack shares."""
    (outcome,) = failures(DEVICES, {step: 0.45}, rounds=1)
    assert outcome.failed_in == step
