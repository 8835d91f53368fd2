from tests.campaigns import kill_device


def test_a_device_killed_at_any_moment_loses_nothing_and_counts_nothing_twice():
    """The small version of `make kill`."""
    for seed in (1, 2, 3):
        ratings, rounds = kill_device.campaign(kills=8, seed=seed)
        assert ratings > 0
        # On a busy machine every kill may come before a round is done.
        if rounds > 0:
            return
    raise AssertionError("no round was ever finished")


def test_a_device_killed_in_secure_rounds_sends_the_same_again_and_counts_nothing_twice():
    ratings, _ = kill_device.campaign(kills=5, seed=1, privacy="secagg")
    assert ratings > 0
