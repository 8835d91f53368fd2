"""What becomes of a case, for people and for programs."""

import io
import json

import pytest
from rich.console import Console

from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance import output
from lightfr_harness.conformance.client import Hanging, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected, expect_between, expect_equal
from lightfr_harness.conformance.registry import Case
from lightfr_harness.conformance.runner import Outcome, require_testable, run_all
from lightfr_harness.errors import CannotRunError

PLACE = "docs/protocol.md#tls"


def good(world):
    pass


def bad(world):
    expect_equal("model_version", 3, 2)


def surprised(world):
    raise NoAnswer("no answer (ConnectionResetError)")


def made(id, run):
    return Case(id, f"Why {id} matters.", PLACE, ("clear",), run)


CASES = [made("a.good", good), made("a.bad", bad), made("b.surprised", surprised), made("b.good", good)]


def outcomes(known=()):
    return {result.case.id: result.outcome for result in run_all(CASES, None, set(known))}


def test_one_case_that_fails_does_not_stop_the_others():
    assert outcomes() == {
        "a.good": Outcome.PASSED,
        "a.bad": Outcome.FAILED,
        "b.surprised": Outcome.FAILED,
        "b.good": Outcome.PASSED,
    }


def test_a_server_that_hangs_is_not_waited_for_in_every_case():
    tried = []

    def hang(world):
        tried.append(world)
        raise Hanging("no answer from GetStep within 20 s")

    results = list(run_all([made(f"a.case-{i}", hang) for i in range(10)], None, set()))
    assert len(tried) == 3
    assert [result.outcome for result in results] == [Outcome.FAILED] * 10
    assert [result.case.id for result in results] == [f"a.case-{i}" for i in range(10)]
    assert "not tried" in results[3].got


def test_known_failing_cases_run_and_an_unexpected_pass_is_noticed():
    got = list(run_all(CASES, None, {"a.bad", "b.good"}))
    assert [result.outcome for result in got] == [Outcome.PASSED, Outcome.KNOWN, Outcome.FAILED, Outcome.FIXED]
    assert [result.is_good for result in got] == [True, True, False, False]


def test_a_finding_says_what_was_expected_and_what_came():
    results = {result.case.id: result for result in run_all(CASES, None, set())}
    assert (results["a.bad"].expected, results["a.bad"].got) == ("model_version = 2", "3")
    assert results["b.surprised"].got == "NoAnswer: no answer (ConnectionResetError)"
    assert "Traceback" in results["b.surprised"].traceback
    assert results["a.good"].expected == ""


def shown(known=()):
    text = io.StringIO()
    output.show(Console(file=text, width=100), list(run_all(CASES, None, set(known))))
    return text.getvalue()


def test_people_see_the_id_the_reason_and_the_place_but_no_traceback():
    text = shown()
    for part in ("a.bad", "Why a.bad matters.", "expected  model_version = 2", "got       3", f"see {PLACE}"):
        assert part in text
    assert "2 of 4 cases are not as they should be." in text
    assert "Traceback" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_people_are_told_to_take_a_fixed_case_off_the_list():
    assert "remove it from the known-failing list" in shown(["a.good"])
    assert "All 4 cases are as they should be, 2 of them known to fail." in shown(["a.bad", "b.surprised"])


def test_programs_get_json():
    results = list(run_all(CASES, None, {"b.surprised"}))
    report = json.loads(output.as_json(results, "https://localhost:1", "clear"))
    assert report["counts"] == {"passed": 2, "failed": 1, "known": 1, "fixed": 0}
    assert report["is_good"] is False
    assert [one["id"] for one in report["cases"]] == [one.id for one in CASES]
    bad_one = report["cases"][1]
    assert (bad_one["outcome"], bad_one["expected"], bad_one["got"]) == ("failed", "model_version = 2", "3")
    assert "Traceback" in bad_one["traceback"]
    assert "got" not in report["cases"][0]


def test_bytes_that_differ_are_shown_where_they_differ():
    with pytest.raises(Unexpected, match=r"codes with 09 04 from byte 2 on, got 03 04 \(1 of 4 bytes differ\)"):
        expect_equal("codes", bytes([1, 2, 3, 4]), bytes([1, 2, 9, 4]))
    with pytest.raises(Unexpected, match="codes of 3 bytes, got 2 bytes"):
        expect_equal("codes", bytes(2), bytes(3))
    with pytest.raises(Unexpected, match="deadline_ms from 1 to 3000, got 0"):
        expect_between("deadline_ms", 0, 1, 3000)


class At:
    """A world whose server is at some version."""

    server = enrollment = "https://localhost:1"

    def __init__(self, version):
        self._version = version

    def signed_manifest(self):
        manifest = manifest_pb2.Manifest(model_version=self._version)
        return manifest_pb2.SignedManifest(manifest=manifest.SerializeToString())


def test_only_a_fresh_server_can_be_followed():
    require_testable(At(1))
    with pytest.raises(CannotRunError, match=r"at model version 7, .* Make a new kit"):
        require_testable(At(7))
