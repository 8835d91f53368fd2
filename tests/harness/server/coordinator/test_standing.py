"""Devices at fault get no places for a while, and one that spoils sums is found by leaving out half of the suspects."""

import random

from lightfr_harness.server.coordinator.standing import (
    CLEARING_SUMS,
    CONFIRMING_SUMS,
    MOST_FAULTS,
    PAUSE_SECONDS,
    Fault,
    Faults,
    Suspects,
)

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


def round_of(suspects, everybody, round_id):
    return [device for device in everybody if not suspects.keeps_out(device, round_id)]


def search(everybody, liar, chance, seed, limit=400):
    """The devices that are named until the liar is, which lies with a chance, and the number of rounds."""
    suspects, rng, named = Suspects(), random.Random(seed), []
    for number in range(limit):
        present = round_of(suspects, everybody, rng.randbytes(16))
        if liar not in present or rng.random() >= chance:
            suspects.good(present)
        elif (found := suspects.spoilt(present)) is not None:
            named.append(found)
            if found == liar:
                return named, number + 1
    return named, limit


def test_a_device_that_spoils_every_sum_is_named_and_nobody_else_is():
    for seed in range(50):
        everybody = [f"{seed}-{i}" for i in range(random.Random(seed).randint(3, 600))]
        named, rounds = search(everybody, liar := random.Random(seed).choice(everybody), 1, seed)
        assert named == [liar]
        assert rounds <= 40


def test_a_device_that_lies_now_and_then_is_named_and_others_seldom():
    everybody = [f"d{i}" for i in range(24)]
    found = [search(everybody, "d5", 0.5, seed)[0] for seed in range(200)]
    assert all("d5" in named for named in found)
    # When one good sum cleared a device and one spoilt sum named the last, there were 585.
    assert sum(len(named) - 1 for named in found) < 60


def test_the_last_suspect_gets_a_place_by_chance_and_a_spoilt_sum_without_it_clears_it():
    suspects = Suspects()
    suspects.spoilt(["a"])
    assert [suspects.keeps_out("a", bytes([first]) * 16) for first in (0, 1)] == [True, False]
    assert suspects.spoilt(["b", "c"]) is None
    assert not suspects.keeps_out("a", bytes(16))


def test_the_last_suspect_is_named_by_spoilt_sums_and_cleared_by_good_ones():
    suspects = Suspects()
    suspects.spoilt(["a"])
    assert [suspects.spoilt(["a", "b"]) for _ in range(CONFIRMING_SUMS)] == [None] * (CONFIRMING_SUMS - 1) + ["a"]
    suspects.spoilt(["a"])
    for left in reversed(range(CLEARING_SUMS)):
        suspects.good(["a", "b"])
        assert len(suspects) == (left > 0)


def test_half_of_the_suspects_get_a_place_and_all_others():
    suspects = Suspects()
    assert suspects.spoilt([f"s{i}" for i in range(11)]) is None
    present = round_of(suspects, [f"s{i}" for i in range(11)] + ["new"], bytes([1]) * 16)
    assert len(present) == 7
    assert "new" in present


def test_a_round_with_too_few_devices_lifts_the_suspicion_once():
    suspects, everybody = Suspects(), [f"d{i}" for i in range(10)]
    suspects.spoilt(everybody)
    suspects.too_few()
    assert round_of(suspects, everybody, bytes([1]) * 16) == everybody
    suspects.too_few()
    assert len(round_of(suspects, everybody, bytes([2]) * 16)) == 5


def test_suspects_that_were_kept_are_left_out_named_and_lifted_as_before():
    everybody = [f"d{i}" for i in range(10)]
    for rounds in range(1, 6):
        suspects, rng = Suspects(), random.Random(rounds)
        for _ in range(rounds):
            suspects.spoilt(["liar", *rng.sample(everybody, 5)])
            suspects.good(rng.sample(everybody, 5))
            if rng.random() < 0.3:
                suspects.too_few()
        kept = Suspects(suspects.as_json())
        ids = [bytes([first]) * 16 for first in range(4)]
        assert [round_of(kept, everybody, one) for one in ids] == [round_of(suspects, everybody, one) for one in ids]
        assert kept.as_json() == suspects.as_json()
        assert kept.spoilt(["liar"]) == suspects.spoilt(["liar"])
    assert Suspects().as_json() == ""


def test_a_spoilt_sum_of_others_begins_the_search_anew():
    suspects = Suspects()
    suspects.spoilt(["a", "b"])
    assert suspects.spoilt(["c", "d", "e"]) is None
    assert len(suspects) == 3
