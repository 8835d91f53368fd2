"""Every claim on a record made by hand: one figure is spoiled at a time, and only its own finding turns red."""

import json
from dataclasses import replace

import pytest

from lightfr.errors import InvalidInputError
from lightfr.secagg.noise import require_enough
from lightfr.secagg.vector import Vector, round_blocks
from lightfr.v1.model_pb2 import Noise
from lightfr_harness.audits.cost import findings, measured_bytes, secure_round
from lightfr_harness.audits.cost.formulas import Shape
from lightfr_harness.audits.cost.training_cost import fitted_exponent
from lightfr_harness.devices import load_profile
from lightfr_harness.devices.record import budget_breaches
from lightfr_harness.devices.scenario import Scenario, noise_of
from tests.harness.audits.cost.records import (
    BITS,
    CODES,
    ITEMS,
    MIB,
    breach,
    device,
    phase,
    power_law,
    profile,
    record,
    secure_device,
    secure_record,
)
from tests.harness.audits.cost.records import timing as timed


def audited(*devices, **changes):
    return findings.audit(record(*devices, **changes))


def broken(found):
    return [(finding.claim, finding.mode) for finding in found if finding.verdict == "broken"]


def verdicts(found, claim):
    return {finding.mode: finding.verdict for finding in found if finding.claim == claim}


def test_a_good_record_breaks_nothing_and_is_plain_json():
    found = audited()
    assert broken(found) == []
    assert len([finding for finding in found if finding.verdict == "holds"]) == 13
    json.dumps([finding.record() for finding in found])


def test_every_claim_and_setting_is_told_once():
    keys = [(finding.claim, finding.mode) for finding in audited(device(), device(profile=profile(name="watch")))]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(("codes", "n_broken"), [(8 * CODES, 1), (ITEMS * 8, 1), (ITEMS * 64, 4)])
def test_codes_that_take_a_byte_a_bit_or_a_row_for_each_item_break_their_bounds_and_nothing_else(codes, n_broken):
    heavy = device()
    heavy["disk_bytes"]["codes"] = codes
    found = audited(heavy)
    assert {claim for claim, _ in broken(found)} == {"storage of the codes, measured"}
    assert len(broken(found)) == n_broken


@pytest.mark.parametrize("items", [1, 2, 40, 123, 2000])
def test_packed_codes_of_a_small_catalogue_with_the_row_that_closed_items_share_break_nothing(items):
    disk = {"codes": (items + 1) * BITS // 8, "open_rows": 0, "catalogue": 0, "store": 0, "other": 0}
    shape = Shape(items, 1, BITS, items)
    assert broken(measured_bytes.storage(shape, disk)) == []
    # A byte for each bit breaks every bound all the same.
    heavy = measured_bytes.storage(shape, {**disk, "codes": 8 * disk["codes"]})
    assert len(broken(heavy)) == 4


def test_a_larger_catalogue_of_ids_breaks_nothing():
    more = device()
    more["disk_bytes"]["catalogue"] += 5 * MIB
    more["phases"]["sync"]["down_bytes"] += 5 * MIB
    assert broken(audited(more)) == []


def test_traffic_far_above_the_open_rows_breaks_its_limit_alone():
    heavy = device()
    heavy["phases"]["round"] = phase(1_340 + 40_000, 380, [34.0])
    assert broken(audited(heavy)) == [("bytes of the first round, measured", "open rows, (|I|+open) f/8")]


def test_a_later_round_has_the_codes_and_the_round_and_no_catalogue():
    (later,) = (finding for finding in audited() if finding.claim == "bytes of a later round, measured")
    assert later.measured == CODES + 1_340 + 380


def test_an_upload_of_twice_its_rows_breaks_its_limit_alone():
    heavy = device()
    heavy["message_bytes"]["Upload"][0] *= 2
    assert broken(audited(heavy)) == [("bytes of an upload, measured", "clear, ternary rows")]


def test_what_a_second_device_stores_or_sends_too_much_is_found_as_well():
    heavy = device(number=1, profile=profile(name="watch"))
    heavy["message_bytes"]["Upload"][0] *= 2
    heavy["disk_bytes"]["codes"] = 8 * CODES
    assert broken(audited(device(), heavy)) == [
        ("storage of the codes, measured", "open rows, (1+open) f/8, watch"),
        ("bytes of an upload, measured", "clear, ternary rows, watch"),
    ]


def test_a_good_secure_round_breaks_nothing_and_tells_every_stage():
    found = findings.audit(secure_record())
    assert broken(found) == []
    for claim in ("bytes", "peak memory", "CPU time"):
        stages = verdicts(found, f"secure round, {claim} of each stage")
        assert {
            "keys_sent",
            "shares_sent",
            "included_signed",
            "uploaded",
            "survivors_signed",
            "revealed",
        } < stages.keys()
    assert "clear, ternary rows" not in verdicts(found, "bytes of an upload, measured")


@pytest.mark.parametrize("privacy", ["secagg", "secagg+dp"])
@pytest.mark.parametrize("bits", [8, 64, 128, 256, 1024])
def test_the_bytes_of_a_masked_vector_are_those_of_the_sdk_whatever_the_cohort_and_the_code(bits, privacy):
    for cohort in (2, 6, 64, 129, 256, 475, 512, 8192):
        noise = None
        if privacy == "secagg+dp":
            # So few devices would have to add more noise to so long codes than a model may ask for.
            if max(12, bits // 8) * bits**2 > 1000**2 * cohort:
                with pytest.raises(InvalidInputError, match="take a larger --cohort or fewer --bits"):
                    Scenario(2000, 10, bits, "", privacy, cohort)
                continue
            Scenario(2000, 10, bits, "", privacy, cohort)
            noise = Noise(
                **{f"{name[6:]}_thousandths": round(1000 * level) for name, level in noise_of(bits, cohort).items()}
            )
            # So much that devices take part.
            require_enough(noise, bits, cohort)
        scenario = {"cohort": cohort, "bits": bits, "open_rows": 300, "privacy": privacy}
        sent = Vector(round_blocks(300, bits, cohort, noise)).packed_bytes
        assert 0 <= sum(secure_round._upload_bytes(scenario)) - sent < 8


def test_a_secure_upload_of_twice_its_rows_breaks_its_limit():
    heavy = secure_device()
    heavy["message_bytes"]["Upload"][0] *= 2
    assert broken(findings.audit(secure_record(heavy))) == [("bytes of a secure upload, measured", "secagg")]


@pytest.mark.parametrize(
    ("message", "way", "mode", "more"),
    [
        ("AdvertiseKeys", 0, "keys up", 200),
        ("ShareKeys", 0, "shares up", 200),
        ("AcknowledgeShares", 0, "acknowledgement up", 200),
        ("SignSurvivors", 0, "signatures up", 200),
        # Beyond the shares of 48 devices more than the average.
        ("RevealShares", 0, "revealed shares up", 48 * 37 + 200),
        ("GetStep", 1, "roster, shares and signatures down", 48 * 98 + 200),
    ],
)
def test_a_message_of_a_secure_round_that_carries_more_than_it_needs_breaks_its_limit(message, way, mode, more):
    heavy = secure_device()
    heavy["message_bytes"][message][way] += more
    assert broken(findings.audit(secure_record(heavy))) == [("bytes of a secure round's messages, measured", mode)]


def test_a_secure_round_that_sends_much_beside_its_messages_breaks_the_limits_of_the_socket():
    heavy = secure_device()
    heavy["phases"]["round"]["up_bytes"] += 60_000
    assert {claim for claim, _ in broken(findings.audit(secure_record(heavy)))} == {
        "bytes of a secure round at the socket, measured",
        "bytes of the first round, measured",
    }


@pytest.mark.parametrize(
    ("told", "claim"),
    [
        (breach("memory", "fit", 256 * MIB, 257 * MIB), "budget: memory"),
        (breach("storage", "sync", 512 * MIB, 600 * MIB), "budget: storage"),
        (breach("latency", "fit", 100, 140.0), "budget: latency of fit, p95"),
        (breach("latency", "recommend", 100, 140.0), "budget: latency of recommend, p95"),
        (breach("latency", "sync", 240_000, 250_000), "budget: latency"),
        (breach("link", "sync", 0, 1), "budget: link"),
    ],
)
def test_a_breach_becomes_a_finding_with_its_moment_and_phase(told, claim):
    found = audited(device(breaches=[told], profile=profile(fit_ms=100)))
    assert broken(found) == [(claim, f"mid-phone, {told['phase']}")]
    finding = next(finding for finding in found if finding.verdict == "broken")
    assert finding.note == f"3.2 s after the start, in phase {told['phase']}"
    assert (finding.limit, finding.measured) == (told["limit"], told["actual"])


@pytest.mark.parametrize(("direction", "phase"), [("up", "round"), ("down", "sync")])
def test_a_days_traffic_is_told_by_its_direction_even_where_both_have_the_same_limit(direction, phase):
    heavy = device(profile=profile(up_mib_per_day=1, down_mib_per_day=1))
    until = list(heavy["phases"]).index(phase) + 1
    passed = sum(each[f"{direction}_bytes"] for each in list(heavy["phases"].values())[:until])
    heavy["breaches"] = [breach("traffic", phase, MIB, passed)]
    assert broken(audited(heavy)) == [(f"budget: {direction}load a day", f"mid-phone, {phase}")]


def test_a_days_traffic_that_goes_on_after_it_was_too_much_does_not_hold():
    heavy = device(profile=profile(down_mib_per_day=0.1))
    for each in heavy["phases"].values():
        each["ended_seconds"] = 1.0
    heavy["breaches"] = budget_breaches(replace(load_profile("mid-phone"), down_mib_per_day=0.1), heavy)
    assert heavy["phases"]["round"]["down_bytes"] > 0
    found = audited(heavy)
    assert broken(found) == [("budget: download a day", "mid-phone, sync")]
    assert verdicts(found, "budget: download a day") == {"mid-phone, sync": "broken"}


def test_a_device_that_was_killed_leaves_its_breach_and_no_figures():
    killed = device(finished=False, phases={"open": phase()}, breaches=[breach("memory", "sync", MIB, 2 * MIB)])
    found = audited(killed)
    assert broken(found) == [("budget: memory", "mid-phone, sync")]
    assert not [finding for finding in found if finding.claim == "storage of the codes, measured"]


def test_the_printed_formulas_of_lightfr_are_refuted_and_those_of_fcf_confirmed():
    storage, traffic = (
        verdicts(audited(), claim)
        for claim in ("storage by the paper's formula", "bytes of a round by the paper's formula")
    )
    assert (storage["FCF"], storage["LightFR"], storage["FedMF"]) == ("confirmed", "refuted", "for information")
    assert (traffic["FCF"], traffic["FCF, all gradients"]) == ("confirmed", "refuted")


def test_the_search_of_open_rows_is_told_beside_how_many_fewer_they_are():
    (search,) = (finding for finding in audited() if finding.claim == "search of open rows, times faster")
    assert (search.predicted, search.measured) == (pytest.approx(105_096 / 2001), 10.0)


def test_refuting_the_paper_breaks_nothing():
    slow = audited(inference=timed(105_096, 3.0), training={"bits": {"points": power_law(3), "note": "n"}})
    assert verdicts(slow, "inference, times faster")["than FCF, FedRec, PrivRec"] == "refuted"
    assert verdicts(slow, "training cost, exponent") == {"of the code length f": "refuted"}
    assert broken(slow) == []


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 2.7])
def test_an_exponent_is_found_from_noisy_samples(exponent):
    fitted, (low, high) = fitted_exponent(dict(power_law(exponent)))
    assert fitted == pytest.approx(exponent, abs=0.01)
    assert low <= fitted <= high
    assert high - low < 0.05


def test_a_partial_record_gives_the_findings_that_it_has():
    partial = record()
    for name in ("baselines", "training", "inference", "search", "figure_1"):
        del partial[name]
    claims = {finding.claim for finding in findings.audit(partial)}
    assert "budget: memory" in claims
    assert "training cost, exponent" not in claims
