"""What an audit prints first."""

from pathlib import Path

from lightfr_harness.audits.summary_cli import MOST_LINES, print_summary
from tests.harness.record_examples import EXAMPLES


def finding(verdict, number=0):
    limit = 0.2 if verdict in ("holds", "broken") else None
    figures = {"predicted": 0.1, "measured": 0.5, "unit": "share", "limit": limit, "at_least": False, "interval": []}
    return {"claim": f"claim {number}", "mode": "secagg", "verdict": verdict, **figures}


def printed(capsys, findings, json_file=None, report=None):
    print_summary(EXAMPLES["privacy"], findings, json_file, report)
    return capsys.readouterr().out.splitlines()


def test_broken_limits_are_named_and_the_page_and_the_record_are_said(capsys):
    findings = [finding("holds"), finding("broken", 7), finding("refuted"), finding("for information")]
    count, broken, claims, kept, record = printed(capsys, findings, "all.json", Path("out"))
    assert count == "1 of our 2 limits hold, 1 are broken:"
    assert broken.startswith("  claim 7, secagg: ")
    assert claims == "Of the paper's claims, 0 are confirmed and 1 refuted."
    assert kept == f"Page: {Path('out/privacy.html')}   record: {Path('out/privacy.json')}"
    assert record == "Record: all.json"


def test_the_summary_fits_on_one_screen_however_much_is_broken(capsys):
    lines = printed(capsys, [finding("broken", number) for number in range(50)])
    assert len(lines) < 24
    assert f"  and {50 - MOST_LINES} more" in lines


def test_without_limits_and_without_a_place_for_the_report_that_is_said(capsys):
    assert printed(capsys, [finding("for information")]) == [
        "No limit was tried.",
        "Nothing was kept: --report FOLDER writes a page and a record.",
    ]
