from tests.campaigns.kill_store import campaign


def test_a_killed_process_loses_nothing_that_it_acknowledged():
    """The small version of `python -m tests.campaigns.kill_store`."""
    assert campaign(kills=15, seed=1) >= 15
