"""Devices at fault get no places for a while, and one that spoils sums is found by leaving out half of the suspects."""

import random

from lightfr_harness.server.coordinator.standing import MOST_FAULTS, PAUSE_SECONDS, Fault, Faults, Suspects

DAY = PAUSE_SECONDS


def test_after_three_faults_a_device_pauses_for_a_day_and_then_has_one_more_chance():
    faults = Faults([])
    for count in range(1, MOST_FAULTS + 1):
        assert not faults.is_paused("a", now=100.0)
        assert faults.note("a", "false shares", now=100.0).count == count
    assert faults.is_paused("a", now=99 + DAY)
    assert not faults.is_paused("a", now=100 + DAY)
    faults.note("a", "false shares", now=100 + DAY)
    assert faults.is_paused("a", now=101 + DAY)


def test_faults_that_were_kept_still_count_and_say_when():
    faults = Faults([Fault("a", 2, "false shares", 50.0)])
    assert not faults.is_paused("a", now=60.0)
    assert faults.note("a", "complaints", now=60.0) == Fault("a", 3, "complaints", 60.0)
    assert faults.is_paused("a", now=60.0)
    faults.note("b", "complaints", now=70.0)
    assert [fault.device for fault in faults.newest_first()] == ["b", "a"]


def test_a_fault_without_weight_is_named_and_does_not_count():
    faults = Faults([])
    for _ in range(5):
        faults.note("a", "refused", now=1.0, weight=0)
    assert faults.newest_first() == [Fault("a", 0, "refused", 1.0)]
    assert not faults.is_paused("a", now=1.0)


def test_a_pause_ends_a_day_later_also_when_the_clock_was_set_back():
    faults = Faults([Fault("a", 3, "false shares", 1_000_000.0)])
    assert faults.is_paused("a", now=5.0)
    assert not faults.is_paused("a", now=1_000_000.0 + DAY)


def round_of(suspects, everybody, number):
    round_id = number.to_bytes(16, "little")
    return [device for device in everybody if not suspects.keeps_out(device, round_id)]


def rounds_until_named(everybody, liar, limit=40):
    suspects = Suspects()
    for number in range(limit):
        present = round_of(suspects, everybody, number)
        if liar not in present:
            suspects.good(present)
        elif (named := suspects.spoilt(present)) is not None:
            return named, number + 1
    return None, limit


def test_a_device_that_spoils_every_sum_is_named_and_nobody_else_is():
    for seed in range(50):
        everybody = [f"{seed}-{i}" for i in range(random.Random(seed).randint(3, 600))]
        named, rounds = rounds_until_named(everybody, liar := random.Random(seed).choice(everybody))
        assert named == liar
        assert rounds <= 30


def test_half_of_the_suspects_get_a_place_and_all_others():
    suspects = Suspects()
    assert suspects.spoilt([f"s{i}" for i in range(11)]) is None
    present = round_of(suspects, [f"s{i}" for i in range(11)] + ["new"], 1)
    assert len(present) == 7
    assert "new" in present


def test_a_round_with_too_few_devices_lifts_the_suspicion_once():
    suspects, everybody = Suspects(), [f"d{i}" for i in range(10)]
    suspects.spoilt(everybody)
    suspects.too_few()
    assert round_of(suspects, everybody, 1) == everybody
    suspects.too_few()
    assert len(round_of(suspects, everybody, 2)) == 5


def test_a_spoilt_sum_of_others_begins_the_search_anew():
    suspects = Suspects()
    suspects.spoilt(["a", "b"])
    assert suspects.spoilt(["c", "d", "e"]) is None
    assert len(suspects) == 3
    suspects.good(["c", "d", "e"])
    assert len(suspects) == 0
