"""The small version of `make soak`, and what its verdict finds."""

import pytest

from tests.campaigns.soak import MOST_SPOILT, run, verdict

STEADY = {
    "rss_bytes": 200e6, "descriptors": 500, "disk_bytes": 40e6, "p99_ms": 400.0, "abandoned": 3, "spoilt": 3
}  # fmt: skip


def looks(**changed):
    """An hour of looks; what is changed has another value in the last sixth."""
    made = [{**STEADY, "rounds": 2 * minute} for minute in range(60)]
    return [{**one, **changed} if minute >= 50 else one for minute, one in enumerate(made)]


def test_an_hour_in_which_nothing_grows_is_good():
    assert verdict(looks()) == []


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"rss_bytes": 230e6}, "rss_bytes grew"),
        ({"descriptors": 600}, "descriptors grew"),
        ({"disk_bytes": 50e6}, "disk_bytes grew"),
        ({"p99_ms": 700.0}, "p99_ms grew"),
        ({"abandoned": 4}, "4 rounds were lost, of which a lie explains 3"),
        ({"abandoned": 30, "spoilt": MOST_SPOILT + 1}, "a liar spoilt 17 sums"),
        ({"rounds": 20}, "no rounds finished any more"),
    ],
)
def test_what_grows_or_is_lost_is_found(changed, found):
    assert any(found in one for one in verdict(looks(**changed)))


def test_kept_devices_take_part_again_and_again(tmp_path):
    """A liar among them may spoil a sum or two, and rounds finish all the same."""
    is_enough = {"until": lambda look: look["rounds"] >= 2}
    seen = run(200, 24, tmp_path, lambda line: None, seconds=0.5, deadline_seconds=3, **is_enough)
    assert seen[-1]["rounds"] >= 2
    assert sum(one["uploads"] for one in seen) > 8
    assert seen[-1]["descriptors"] > 24
