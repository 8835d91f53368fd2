"""Findings: the verdict follows from the measured figure and the limit, and from nothing else."""

import json

import pytest

from lightfr_harness.audits.finding import Measurement, at_least, at_most, broken, for_information


def measured(value):
    return Measurement(0.1, value, (value - 0.05, value + 0.05), "a note")


@pytest.mark.parametrize(("value", "verdict"), [(0.11, "holds"), (0.12, "holds"), (0.1200001, "broken")])
def test_an_upper_limit_holds_up_to_and_with_the_limit(value, verdict):
    assert at_most("claim", "source", measured(value), "share", 0.12).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(1.0, "holds"), (0.99, "holds"), (0.9899, "broken")])
def test_a_lower_limit_holds_from_the_limit_on(value, verdict):
    assert at_least("claim", "source", measured(value), "share", 0.99).verdict == verdict


def test_what_has_no_limit_is_never_broken():
    finding = for_information("claim", "source", measured(1.0), "share")
    assert (finding.limit, finding.verdict) == (None, "for information")
    assert broken([finding]) == []


def test_a_record_is_plain_json_with_every_field():
    record = json.loads(json.dumps(at_most("claim", "source", measured(0.5), "share", 0.2, "secagg").record()))
    assert record["predicted"] == 0.1
    assert record["interval"] == [0.45, 0.55]
    assert (record["mode"], record["verdict"], record["note"]) == ("secagg", "broken", "a note")
