"""What a session, a round and a day take of a battery, estimated from a device's own figures."""

import pytest

from lightfr_harness.audits.cost import energy, findings
from lightfr_harness.devices import load_profile
from lightfr_harness.devices.profiles import profile_names
from tests.harness.audits.cost.records import device, phase, profile, record, secure_device, secure_record

# 2 W on a core half as fast as the machine's; 3 J and 1 J for a MB; 5 J to wake; a battery of 1 kJ.
FIGURES = {
    "relative_speed": 0.5,
    "core_watts": 2.0,
    "up_joules_per_mb": 3.0,
    "down_joules_per_mb": 1.0,
    "wake_joules": 5.0,
    "battery_wh": 1000 / 3600,
}


def phases(**changes):
    made = {"sync": phase(1_000_000, 2_000_000), "fit": phase(), "round": phase(2_000_000, 0)}
    return {name: {**each, "cpu_seconds": 0.25} for name, each in {**made, **changes}.items()}


def estimated(**changes):
    return energy.estimates([device(profile=profile(**FIGURES), phases=phases(**changes))])["mid-phone"]


def test_a_round_is_its_cpu_seconds_on_the_devices_own_core_its_bytes_and_one_wake_up():
    round_ = estimated()["round"]
    assert {part: round_[part] for part in energy.PARTS} == {"cpu_joules": 1.0, "radio_joules": 6.0, "wake_joules": 5.0}
    assert round_["joules"] == 12.0
    assert round_["battery_share"] == pytest.approx(0.012)


def test_a_session_is_all_phases_and_those_without_bytes_do_not_wake_the_radio():
    assert estimated()["session"]["joules"] == 3 * 1.0 + 3.0 + 2.0 + 6.0 + 2 * 5.0


def test_a_day_has_as_much_of_a_round_as_the_budget_of_rounds_grants():
    spent = estimated()
    without = spent["session"]["joules"] - spent["round"]["joules"]
    assert spent["day"]["joules"] == pytest.approx(without + 12 / 30 * spent["round"]["joules"])


def test_each_stage_of_a_secure_round_wakes_the_radio_once():
    made = secure_device(profile=profile(**FIGURES))
    stages = made["phases"]["round"]["stages"]
    assert energy.estimates([made])["mid-phone"]["round"]["wake_joules"] == 5.0 * len(stages)
    assert len(stages) == 9


def test_without_a_battery_there_is_no_share_and_the_finding_says_so():
    made = device(profile=profile(battery_wh=0))
    found = energy.audit(energy.estimates([made]))
    assert energy.estimates([made])["mid-phone"]["day"]["battery_share"] is None
    assert all("no battery" in finding.note for finding in found)


def test_a_device_that_did_not_finish_is_not_estimated():
    assert energy.estimates([device(finished=False)]) == {}


def test_findings_are_estimates_beside_which_nothing_was_measured_and_break_nothing():
    found = [each for each in findings.audit(secure_record()) if each.claim.startswith("energy")]
    assert [each.claim for each in found] == [
        f"energy of a {span}, an estimate" for span in ("session", "round", "day")
    ]
    assert all(each.measured is None and each.verdict == "for information" for each in found)
    assert findings.audit(record(energy={})) != []


@pytest.mark.parametrize("name", profile_names())
def test_every_constant_of_ours_says_that_it_is_an_estimate_or_that_there_is_no_battery(name):
    sources = load_profile(name).sources
    for figure in ("core_watts", "up_joules_per_mb", "down_joules_per_mb", "wake_joules", "battery_wh"):
        assert sources[figure].startswith(("estimate: ", "it has none: "))
