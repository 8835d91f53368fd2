"""What methods cost: real bytes of all of them, kept once measured, in a table, a record and a page."""

from functools import partial

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.errors import CannotRunError
from lightfr_harness.paper import costs
from lightfr_harness.paper.costs import FORMULAS, CostsOptions, measure
from lightfr_harness.records import read
from lightfr_harness.simulation.baselines import ckks, fedmf, paillier


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("costs")


@pytest.fixture(scope="module")
def rows(folder):
    """By name, at Filmtrust's shape. A shorter key, so that it takes no minutes: its ciphertexts have 64 bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paillier, "generate", partial(paillier.generate, 256))
        patch.setattr(costs, "TIMING_SECONDS", 0.0)
        patch.setattr(costs, "TURNS", 1)
        record = measure(CostsOptions("filmtrust", open_rows=500), folder / "costs.jsonl", lambda label, done: None)
    return {row["name"]: row for row in record.rows}


def test_every_method_and_reading_has_a_row_with_its_formula(rows):
    assert list(rows) == list(FORMULAS)
    for name, row in rows.items():
        assert row["formula"] == FORMULAS[name].name
        assert row["storage_bytes"] > 0
        assert row["up_bytes"] > 0


def test_bytes_of_real_values_are_those_of_the_formula_but_for_framing(rows):
    for name in ("FCF", "FedRec", "PrivRec"):
        row = rows[name]
        assert row["storage_bytes"] == row["storage_formula_bytes"]
        assert 0 < row["down_bytes"] + row["up_bytes"] - row["round_formula_bytes"] < 600


def test_readings_differ_as_they_should(rows):
    table = 2_071 * 32 * 8
    assert 0 <= rows["FCF, all gradients"]["up_bytes"] - table < 10_000
    assert 0 <= rows["FedMF"]["down_bytes"] - 2_071 * 32 * 64 < 20
    assert rows["FedMF, all rows up"]["up_bytes"] == rows["FedMF"]["down_bytes"]
    assert 0 <= rows["FedMF, decrypted once"]["storage_bytes"] - table < 400
    multiplied, device = (rows[name]["down_bytes"] for name in ("MetaMF, server multiplies", "MetaMF"))
    assert abs(multiplied - device - (2_071 * 24 - 8 * 32) * 8) < 20


def test_lightfr_is_a_real_device_with_packed_codes_and_with_open_rows(rows):
    packed, opened = rows["LightFR, packed"], rows["LightFR, open rows"]
    assert packed["storage_bytes"] == packed["storage_formula_bytes"] == 2_072 * 8
    assert opened["storage_bytes"] == 502 * 8
    assert 0 < packed["down_bytes"] - 2_071 * 8 < 10_000
    assert 0 < opened["down_bytes"] - 501 * 8 < 10_000
    printed = rows["LightFR"]
    assert (printed["storage_bytes"], printed["storage_formula_bytes"]) == (2_072 * 8, 2_072 * 64)


def test_times_are_multiples_of_lightfrs_and_stand_for_the_whole_catalogue(rows):
    assert rows["LightFR, packed"]["ratio"] == rows["LightFR, packed"]["min_ratio"] == 1.0
    timed = {name for name, row in rows.items() if row["ratio"] is not None}
    assert timed == set(rows) - {"FCF, all gradients", "FedMF, all rows up", "MetaMF, server multiplies"}
    # Two of 2,071 rows were decrypted, which alone takes about a hundred times as long as a search of a plain table.
    assert rows["FedMF"]["ratio"] > 3_000 * rows["FedMF, decrypted once"]["ratio"]


def test_what_is_measured_is_kept_and_the_command_shows_it(rows, folder, monkeypatch):
    for name in ("_device", "_methods"):
        monkeypatch.setattr(costs, name, lambda *arguments: pytest.fail("it was measured again"))
    asked = ["paper", "costs", "--dataset", "filmtrust", "--open-rows", "500", "--report", str(folder)]
    result = CliRunner().invoke(app, asked, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    assert "FedMF, decrypted once" in result.output
    record = read(folder / "paper-costs.json")
    assert {row["name"]: row for row in record.rows} == rows
    page = (folder / "paper-costs.html").read_text()
    assert page.count('role="img"') == 3
    assert "The shape of filmtrust: 2,071 items" in page


def test_fedmf_says_what_encrypting_takes_and_what_a_modern_scheme_would(rows, monkeypatch):
    assert "us of CPU time to encrypt" in rows["FedMF"]["note"]
    modern = ckks.CkksCost(4096, 64.0, 0.004096, 0.002048, 0.0)
    monkeypatch.setattr(ckks, "ckks_cost", lambda seed: modern)
    key = paillier.generate(256)
    monkeypatch.setattr(fedmf, "seconds_a_number", lambda key: {"encrypt": 0.25, "add": 1e-6, "decrypt": 0.001})
    assert costs._times_of_a_number(key, 0) == (
        "One number takes 250,000 us of CPU time to encrypt, 1.0 to add to another and 1,000 to decrypt. With CKKS, "
        "4,096 numbers to a ciphertext, it would take 1.00 us to encrypt, 0.50 to decrypt, and 64 bytes in place of 64."
    )


def test_ciao_has_its_own_open_rows_and_an_unknown_shape_is_refused():
    assert CostsOptions().shape.open_rows == 4_363
    assert CostsOptions("filmtrust").shape.open_rows == 2_000
    with pytest.raises(CannotRunError, match="choose one of: ml-1m, filmtrust"):
        CostsOptions("netflix")
