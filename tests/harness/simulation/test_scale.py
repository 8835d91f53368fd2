"""A simulated day: places and phases as the coordinator has them, and a herd is seen where there is one."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lightfr.errors import OutOfRangeError
from lightfr_harness.errors import CannotRunError
from lightfr_harness.simulation.scale import Scenario, Simulation
from lightfr_harness.simulation.scale_costs import Constants, answer, peak_over_hour

# Two hours in the place of a day, so that a test takes a second.
SMALL = Scenario(
    devices=60_000, period_seconds=7200, periods=1, coming=1, swing=0.5, stays_seconds=3600,
    cohorts=4, goal=64, minimum=32, deadline_seconds=20, step_seconds=2,
)  # fmt: skip
CONSTANTS = Constants()


@pytest.fixture(scope="module")
def events():
    return Simulation(SMALL).run()


def test_the_same_seed_gives_the_same_day_and_another_seed_another(events):
    again, other = Simulation(SMALL).run(), Simulation(replace(SMALL, seed=1)).run()
    assert np.array_equal(events.check_ins, again.check_ins)
    assert not np.array_equal(events.check_ins, other.check_ins)


def test_every_device_with_a_place_delivers_or_leaves(events):
    delivered = events.deliveries.sum(axis=1)
    assert events.placed >= delivered[0]
    assert (np.diff(delivered) <= 0).all()
    assert delivered[-1] == pytest.approx(0.9 * events.placed, rel=0.02)


def test_a_phase_lasts_to_its_deadline_when_a_device_leaves_and_as_long_as_the_slowest_when_none_does():
    few = replace(SMALL, devices=84, period_seconds=1, cohorts=1, step_seconds=0.5, publish_seconds=0, seconds=600)
    (_, leaving, _), (_, staying, _) = (Simulation(replace(few, dropout=share)).run().rounds[0] for share in (0.25, 0))
    assert staying < 7 * 5
    # Some three devices leave before each step, so that all seven phases wait for somebody.
    assert leaving == pytest.approx(7 * 20, abs=2)


def test_a_round_ends_when_its_cohorts_have_and_begins_no_more_after_its_deadline(events):
    cohorts = [summed for _, _, summed in events.rounds]
    assert max(cohorts) == SMALL.cohorts
    # Seven phases, and as long again for a cohort that begins just before the deadline.
    assert all(seconds <= 2 * 7 * 20 + SMALL.publish_seconds + 2 for _, seconds, _ in events.rounds)


def test_devices_without_a_place_come_back_when_they_are_told_and_others_do_not(events):
    assert events.check_ins.sum() > SMALL.devices
    roomy = Simulation(replace(SMALL, cohorts=400)).run()
    assert roomy.check_ins.sum() < events.check_ins.sum()


def test_paced_devices_are_no_herd_and_devices_that_come_back_at_once_are(events):
    herd = Simulation(SMALL, spread=lambda random, n: np.zeros(n)).run()
    # From the second hour on: before a round has ended nobody knows how long one takes.
    paced, at_once = (peak_over_hour(each.check_ins[3600:].astype(float)) for each in (events, herd))
    assert paced < 3
    assert at_once > 2 * paced


def test_costs_are_the_sum_of_what_each_event_costs(events):
    found = answer(SMALL, events, CONSTANTS)
    steps = np.array(CONSTANTS.phase_cpu_ms) @ events.deliveries.sum(axis=1)
    spent = (steps + CONSTANTS.check_in_cpu_ms * events.check_ins.sum()) / 1000
    assert found["mean_cores"] * SMALL.horizon == pytest.approx(spent)
    assert found["busiest_minute_cores"] >= found["mean_cores"]
    assert found["device_rounds"] == events.deliveries[-1].sum()


def test_an_insert_takes_as_long_as_was_measured_and_more_for_more_bytes():
    for size, rate in CONSTANTS.inserts_per_second:
        assert CONSTANTS.insert_seconds(size) == pytest.approx(1 / rate)
    assert CONSTANTS.insert_seconds(1_000_000) > CONSTANTS.insert_seconds(180_000)
    assert CONSTANTS.insert_seconds(100) > 0


def test_uploads_grow_with_the_open_rows():
    larger = CONSTANTS.of_rows(10 * CONSTANTS.open_rows, CONSTANTS.code_bits)
    assert larger.phase_bytes[4] == 10 * CONSTANTS.phase_bytes[4]
    assert larger.phase_bytes[:4] == CONSTANTS.phase_bytes[:4]


def test_constants_are_read_from_a_record_or_an_object_and_others_are_named(tmp_path):
    path = tmp_path / "constants.json"
    path.write_text(json.dumps({"constants": {"check_in_cpu_ms": 7, "phase_bytes": [1] * 7}}))
    assert Constants.read(path).check_in_cpu_ms == 7
    path.write_text(json.dumps({"check_in_cpu_mss": 7}))
    with pytest.raises(CannotRunError, match="not known: check_in_cpu_mss"):
        Constants.read(path)
    path.write_text("[1]")
    with pytest.raises(CannotRunError, match="not a JSON object of constants"):
        Constants.read(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"phase_cpu_ms": [1, 2]}, {"phase_bytes": 7}, {"check_in_cpu_ms": "3"}, {"check_in_cpu_ms": -5},
        {"check_in_cpu_ms": float("nan")}, {"phase_cpu_ms": [1e300] * 7}, {"delta_share": None}, {"open_rows": 0},
        {"inserts_per_second": []}, {"inserts_per_second": [[5, 3]]}, {"inserts_per_second": [[1, 0], [2, 3]]},
    ],
)  # fmt: skip
def test_constants_that_nothing_can_be_reckoned_with_are_refused_before_a_simulation(wrong, tmp_path):
    path = tmp_path / "constants.json"
    path.write_text(json.dumps(wrong))
    with pytest.raises(CannotRunError, match="not a JSON object of constants"):
        Constants.read(path)


def test_a_scenario_out_of_range_is_named():
    with pytest.raises(OutOfRangeError, match="dropout"):
        Scenario(dropout=2)
