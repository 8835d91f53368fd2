"""Claims about all six federated methods: which figures confirm them, which refute them, and by how much."""

from lightfr_harness.audits.cost import methods
from lightfr_harness.audits.cost.cost_table import COMMUNICATION, STORAGE
from lightfr_harness.audits.cost.speed import CLAIM as FASTER
from tests.harness.record_examples import EXAMPLES
from tests.harness.record_examples.papers import SHAPE


def audited(**changes):
    """Findings by claim and mode; rows are as the formulas have them, but for changes of one method."""
    name = changes.pop("name", None)
    rows = [{**row, **(changes if row["name"] == name else {})} for row in EXAMPLES["paper-costs"].rows]
    return {(each.claim, each.mode): each for each in methods.audit(SHAPE, rows)}


def test_figures_of_the_formulas_confirm_every_formula():
    found = audited()
    table = [each for (claim, _), each in found.items() if claim in (STORAGE, COMMUNICATION)]
    assert {each.verdict for each in table} == {"confirmed", "for information"}
    assert sum(each.verdict == "confirmed" for each in table) == 7 + 9
    assert all(each.note == "1 times the formula's" for each in table if each.verdict == "confirmed")


def test_a_ciphertext_of_twice_the_length_refutes_fedmf_with_the_factor_and_the_reason():
    formula = SHAPE.items * 32 * 128
    found = audited(name="FedMF", storage_bytes=2 * formula, down_bytes=2 * formula, up_bytes=0)
    for claim in (STORAGE, COMMUNICATION):
        assert found[claim, "FedMF"].verdict == "refuted"
        assert found[claim, "FedMF"].note.startswith(("2 times the formula's", "1.999 times the formula's"))
        assert "2,048 bits" in found[claim, "FedMF"].note
    growth = found[methods.GROWTH_CLAIM, "FedMF"]
    assert (growth.predicted, growth.measured, growth.verdict) == (8.0, 32.0, "refuted")


def test_readings_are_judged_only_by_what_they_change():
    modes = {claim: {mode for each, mode in audited() if each == claim} for claim in (STORAGE, COMMUNICATION)}
    assert "FedMF, decrypted once" in modes[STORAGE] - modes[COMMUNICATION]
    assert {"FCF, all gradients", "FedMF, all rows up"} <= modes[COMMUNICATION] - modes[STORAGE]


def test_shares_of_the_text_are_held_against_files():
    """The packed codes are 3.1 % of a table of real values, and the text says so of FedMF."""
    real = (1 + SHAPE.items) * 32 * 8
    found = audited(name="FedMF, decrypted once", storage_bytes=real)
    assert found[methods.SHARE_CLAIM, "of FedMF, decrypted once"].verdict == "confirmed"
    assert found[methods.SHARE_CLAIM, "of FCF"].measured == 0.03125
    assert "0.3906 times the text" in found[methods.SHARE_CLAIM, "of FCF"].note


def test_a_method_that_is_not_so_much_slower_refutes_the_text():
    found = audited()
    verdicts = {mode: found[FASTER, f"than {mode}"].verdict for mode in ("FCF", "FedMF", "MetaMF")}
    assert verdicts == {"FCF": "confirmed", "FedMF": "confirmed", "MetaMF": "refuted"}
    assert "0.6 times the text's factor" in found[FASTER, "than MetaMF"].note


def test_no_reading_of_fedmf_has_both_the_storage_and_the_speed_of_the_paper():
    claim = methods.ONE_FEDMF_CLAIM
    assert audited()[claim, "FedMF"].verdict == "confirmed"
    once = {"name": "FedMF, decrypted once", "storage_bytes": (1 + SHAPE.items) * 32 * 8}
    slow = {"name": "FedMF", "ratio": 1e8}
    rows = EXAMPLES["paper-costs"].rows
    for change in (once, slow):
        rows = [{**row, **(change if row["name"] == change["name"] else {})} for row in rows]
    [found] = [each for each in methods.audit(SHAPE, rows) if each.claim == claim]
    assert (found.mode, found.measured, found.verdict) == ("FedMF, decrypted once", 16.0, "refuted")


def test_a_tick_needs_half_of_what_fcf_costs():
    found = audited()
    ticks = {mode: each.verdict for (claim, mode), each in found.items() if claim.startswith("Table 1: memory")}
    assert (ticks["LightFR, packed"], ticks["FCF"], ticks["MetaMF"]) == ("confirmed", "confirmed", "refuted")
    sent = {mode: each.verdict for (claim, mode), each in found.items() if claim.startswith("Table 1: communication")}
    assert (sent["MetaMF"], sent["PrivRec"]) == ("refuted", "refuted")
    small = audited(name="MetaMF", down_bytes=6.7e6)
    assert (
        next(
            each
            for (claim, mode), each in small.items()
            if "communication" in claim and mode == "MetaMF" and "Table 1" in claim
        ).verdict
        == "confirmed"
    )
