"""Real runs: a coordinator, devices in processes of their own, limits and links."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lightfr import RoundStage
from lightfr.errors import CodeLengthError, InvalidInputError, OutOfRangeError
from lightfr_harness import devices
from lightfr_harness.devices.enforcement import RLIMIT, memory_modes
from lightfr_harness.devices.profiles import MIB, load_profile
from lightfr_harness.devices.record import PHASES
from lightfr_harness.devices.session import STOCK_DEVICE

# Budgets that no machine is too slow for: what is tried here is not the clock.
PHONE = replace(
    load_profile("flagship-phone"), delay_ms=1, loss=0.0, recommend_ms=60_000, fit_ms=60_000, round_ms=60_000
)
SCENARIO = devices.Scenario(items=3000, ratings=20, bits=128, privacy="clear")
SECURE = replace(SCENARIO, privacy="secagg", cohort=6, open_rows=500)
STAGES = (*RoundStage, "finished")
QUICK = devices.Plan(fits=2, recommendations=5)
PLANTED = Path(__file__).with_name("planted.py")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Two devices at once, one of which may not keep anything on its disk."""
    file = tmp_path_factory.mktemp("run") / "folder" / "record.json"
    profiles = [PHONE, replace(PHONE, name="full", storage_mib=0.01)]
    made = devices.run(SCENARIO, profiles, plan=replace(QUICK, at_once=2), file=file)
    assert json.loads(file.read_text()) == made
    return made


def test_the_record_says_what_was_run_and_how(record):
    assert (record["format"], record["seed"], record["interrupted"]) == (1, 0, False)
    assert record["enforcement"]["memory"] == memory_modes()[0]
    sizes = {"items": 3000, "ratings": 20, "bits": 128, "cohort": 256, "open_rows": 2000}
    assert record["scenario"] == {**sizes, "dataset": "", "privacy": "clear"}
    assert [device["profile"]["name"] for device in record["devices"]] == ["flagship-phone", "full"]


def test_every_phase_of_a_device_is_measured(record):
    for device in record["devices"]:
        assert device["finished"]
        assert tuple(device["phases"]) == PHASES
        for figures in device["phases"].values():
            assert 0 < figures["cpu_seconds"] <= figures["wall_seconds"] * 2
            assert figures["peak_rss_bytes"] > 0
        # A peak is the kernel's own, so no sample lies above it.
        assert max(figures["peak_rss_bytes"] for figures in device["phases"].values()) >= device["peak_anonymous_bytes"]
        assert [len(figures["latencies_ms"]) for figures in device["phases"].values()] == [0, 0, 2, 1, 5]
        moments = [figures["ended_seconds"] for figures in device["phases"].values()]
        assert moments == sorted(moments)
        assert device["memory_timeline"][0][2] == "open"


def test_bytes_are_counted_at_the_socket_inside_messages_and_on_the_disk(record):
    # 2,000 open rows and the shared one; 12 blocks of ids without gaps, and 12 bits for the number of each.
    codes, catalogue = 2001 * 16, 16 + 4 * 13 + 8 * 12 + 3000 * 12 // 8
    for device in record["devices"]:
        assert device["message_bytes"]["codes"] == [0, codes]
        assert device["message_bytes"]["catalogue"] == [0, catalogue]
        assert (device["disk_bytes"]["codes"], device["disk_bytes"]["catalogue"]) == (codes, catalogue)
        assert 0 < device["disk_bytes"]["open_rows"] == device["message_bytes"]["open_rows"][1] < 100
        assert 0 < device["disk_bytes"]["store"] < 20_000
        sync, taken_part = device["phases"]["sync"], device["phases"]["round"]
        assert 0 < sync["down_bytes"] - codes - catalogue < 8192
        assert 0 < taken_part["up_bytes"] - device["message_bytes"]["Upload"][0] < 1024
        assert (device["phases"]["recommend"]["up_bytes"], device["phases"]["recommend"]["down_bytes"]) == (0, 0)


def rows_bytes(bits_each):
    return 500 * 128 * bits_each // 8


# Six devices add up to at most 12 with their noise: five bits with the sign. Gradients, and their noise, need more.
@pytest.mark.parametrize(("privacy", "least", "most"), [("secagg", 4, 6), ("secagg+dp", 12, 15)])
def test_a_device_under_limits_takes_part_in_a_secure_round_that_is_measured_stage_by_stage(privacy, least, most):
    profiles = [PHONE, replace(PHONE, name="other")]
    made = devices.run(replace(SECURE, privacy=privacy), profiles, plan=replace(QUICK, at_once=2))
    assert made["scenario"]["privacy"] == privacy
    for device in made["devices"]:
        assert (device["finished"], device["breaches"], device["loaded"]) == (True, [], [])
        taken_part = device["phases"]["round"]
        assert tuple(taken_part["stages"]) == STAGES
        for figures in taken_part["stages"].values():
            assert figures["cpu_seconds"] > 0
            assert 0 < figures["peak_rss_bytes"] <= taken_part["peak_rss_bytes"]
        for figure in ("up_bytes", "down_bytes"):
            assert sum(figures[figure] for figures in taken_part["stages"].values()) == taken_part[figure]
        messages = device["message_bytes"]
        assert rows_bytes(least) < messages["Upload"][0] < rows_bytes(most) + 16_384
        assert messages["Upload"][0] < taken_part["stages"]["uploaded"]["up_bytes"] < messages["Upload"][0] + 1200
        assert device["message_counts"]["RevealShares"] == 1
        # The wait for the fleet is not the device's own time.
        assert taken_part["latencies_ms"][0] <= 1000 * taken_part["wall_seconds"]


def test_a_device_that_dies_in_its_secure_round_is_named_and_the_run_ends():
    greedy = replace(QUICK, script=Path(__file__).with_name("greedy.py"))
    [caught] = devices.run(SECURE, [replace(PHONE, memory_mib=96)], plan=greedy)["devices"]
    assert (caught["finished"], caught["ended"]) == (False, "memory")
    assert [(breach["kind"], breach["phase"]) for breach in caught["breaches"]] == [("memory", "round")]
    assert tuple(caught["phases"]) == PHASES[:3]


def test_a_breached_limit_is_a_finding_of_its_device_alone(record):
    usual, full = (device["breaches"] for device in record["devices"])
    assert usual == []
    assert [(breach["kind"], breach["phase"]) for breach in full] == [("storage", "recommend")]


def test_a_device_loads_the_sdk_and_nothing_of_the_harness():
    program = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("device", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
import lightfr.client
print([name for name in ("lightfr_harness", "numpy", "asyncio", "sqlite3") if name in sys.modules])
"""
    loaded = subprocess.run([sys.executable, "-c", program, str(STOCK_DEVICE)], capture_output=True, text=True)
    assert loaded.stdout == "[]\n"


@pytest.mark.parametrize("mode", memory_modes())
def test_four_mib_less_than_needed_are_caught_and_named_by_phase(mode):
    plan = replace(QUICK, memory=mode, script=PLANTED)
    [free] = devices.run(SCENARIO, [PHONE], plan=plan)["devices"]
    needed = free["peak_data_bytes" if mode == RLIMIT else "peak_charged_bytes"]
    assert free["finished"]
    [caught] = devices.run(SCENARIO, [replace(PHONE, memory_mib=needed / MIB - 4)], plan=plan)["devices"]
    assert (caught["finished"], caught["ended"]) == (False, "memory")
    [breach] = caught["breaches"]
    assert (breach["kind"], breach["phase"], breach["limit"]) == ("memory", "round", needed - 4 * MIB)
    assert tuple(caught["phases"]) == PHASES[:3]


def test_an_interrupted_run_is_a_record_that_can_be_gone_on_with(tmp_path):
    file, profiles = tmp_path / "record.json", [PHONE, replace(PHONE, name="other")]

    def interrupt(what, share):
        # While the second device runs, once.
        if share > 0.5 and len(told) == 0:
            told.append(share)
            raise KeyboardInterrupt

    told = []
    begun = devices.run(SCENARIO, profiles, interrupt, QUICK, file=file)
    assert begun["interrupted"]
    assert json.loads(file.read_text()) == begun
    first = begun["devices"][0]
    assert (first["finished"], [device["finished"] for device in begun["devices"][1:]]) in ((True, [False]), (True, []))
    done = devices.run(SCENARIO, profiles, plan=QUICK, resume=json.loads(file.read_text()))
    assert (done["interrupted"], [device["finished"] for device in done["devices"]]) == (False, [True, True])
    assert done["devices"][0] == first


def test_only_the_same_run_is_gone_on_with(record):
    with pytest.raises(InvalidInputError, match="seed"):
        devices.run(SCENARIO, [PHONE], plan=replace(QUICK, seed=1), resume=record)
    with pytest.raises(InvalidInputError, match="profiles"):
        devices.run(SCENARIO, [PHONE], plan=QUICK, resume=record)


def test_a_run_that_makes_no_sense_is_a_typed_error():
    with pytest.raises(InvalidInputError, match="at least one profile"):
        devices.run(SCENARIO, [])
    with pytest.raises(OutOfRangeError):
        devices.Scenario(items=10, ratings=11)
    with pytest.raises(CodeLengthError):
        devices.Scenario(bits=12)
    with pytest.raises(OutOfRangeError):
        devices.Plan(at_once=0)
