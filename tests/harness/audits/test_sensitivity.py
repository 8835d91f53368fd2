"""What the paper's text says of its Figures 4 to 6, held against curves."""

from lightfr_harness.audits import sensitivity
from lightfr_harness.audits.sensitivity import BITS, LAMBDA, SHARE


def verdicts(panel, curve):
    """Of the two claims about a panel, with one seed for each place of the curve."""
    points = [{"panel": panel, "line": "paper", "x": str(x), "hr": hr} for x, hr in curve.items()]
    return [each.verdict for each in sensitivity.audit({"data": "made", "points": points})]


def test_a_curve_that_rises_and_flattens_confirms_figure_4():
    assert verdicts(BITS, {8: 0.2, 16: 0.3, 32: 0.35, 64: 0.36}) == ["confirmed", "confirmed"]
    assert verdicts(BITS, {8: 0.2, 16: 0.21, 32: 0.25, 64: 0.4}) == ["confirmed", "refuted"]
    assert verdicts(BITS, {8: 0.4, 16: 0.35, 32: 0.3, 64: 0.2}) == ["refuted", "confirmed"]


def test_only_the_lambdas_of_the_paper_count_in_figure_5():
    hump = {0.0: 0.5, 0.2: 0.30, 0.4: 0.32, 0.6: 0.33, 0.8: 0.32, 1.0: 0.31}
    assert verdicts(LAMBDA, hump) == ["confirmed", "confirmed"]
    assert verdicts(LAMBDA, hump | {1.0: 0.4}) == ["refuted", "refuted"]
    assert verdicts(LAMBDA, dict.fromkeys(hump, 0.19)) == ["confirmed", "refuted"]


def test_figure_5_says_what_no_term_would_give():
    points = [{"panel": LAMBDA, "line": "paper", "x": x, "hr": hr} for x, hr in (("0.0", 0.35), ("0.2", 0.1))]
    points += [{**points[1], "x": x} for x in ("0.6", "1.0")]
    assert "without the term HR@10 is 0.3500" in sensitivity.audit({"data": "made", "points": points})[0].note


def test_a_share_that_is_flat_at_the_end_confirms_figure_6():
    assert verdicts(SHARE, {0.2: 0.3, 0.6: 0.4, 0.8: 0.45, 1.0: 0.451}) == ["confirmed", "confirmed"]
    assert verdicts(SHARE, {0.2: 0.3, 0.6: 0.4, 0.8: 0.45, 1.0: 0.5}) == ["confirmed", "refuted"]
    assert verdicts(SHARE, {0.2: 0.3, 0.6: 0.4, 0.8: 0.45, 1.0: 0.4}) == ["confirmed", "refuted"]


def test_seeds_are_averaged():
    curve = {8: 0.2, 16: 0.3, 32: 0.35, 64: 0.36}
    points = [
        {"panel": BITS, "line": "paper", "x": str(x), "hr": hr + sign * 0.1}
        for x, hr in curve.items()
        for sign in (-1, 1)
    ]
    found = sensitivity.audit({"data": "made", "points": points})
    assert round(found[0].measured, 6) == 0.16
