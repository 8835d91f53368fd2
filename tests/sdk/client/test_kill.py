from tests.campaigns import kill_device


def test_a_device_killed_at_any_moment_loses_nothing_and_counts_nothing_twice():
    """The small version of `make kill`."""
    ratings, rounds = kill_device.campaign(kills=8, seed=1)
    assert ratings > 0
    assert rounds > 0
