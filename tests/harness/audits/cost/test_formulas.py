"""The paper's cost table, worked out by hand for Ciao, and what it says of itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.audits.cost import cost_table, formulas
from lightfr_harness.audits.cost.formulas import DATASETS, METHODS, Shape

CIAO = Shape(105_096, 38)


@pytest.mark.parametrize(
    ("name", "storage", "communication"),
    [
        ("FCF", 105_097 * 256, 105_134 * 256),
        ("FedMF", 105_097 * 4096, 105_134 * 4096),
        ("FedRec", 105_097 * 256, (38 * 4 + 105_096) * 256),
        ("MetaMF", (105_096 + 16) * 256, (105_096 * 32 + 32 + 256 + 8 * 105_096) * 8),
        ("PrivRec", 105_097 * 256, 105_134 * 256),
        ("LightFR", 105_097 * 64, 105_134 * 64),
        ("LightFR, packed", 105_097 * 8, 105_134 * 8),
    ],
)
def test_each_method_costs_what_the_table_says(name, storage, communication):
    method = next(method for method in METHODS if method.name == name)
    assert (method.storage(CIAO), method.communication(CIAO)) == (storage, communication)


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.sampled_from([8, 64, 128, 1024]))
def test_packed_codes_take_an_eighth_of_the_printed_formula(items, ratings, bits):
    shape = Shape(items, ratings, bits)
    assert 8 * formulas.PACKED.storage(shape) == formulas.LIGHTFR.storage(shape)
    assert 8 * formulas.PACKED.communication(shape) == formulas.LIGHTFR.communication(shape)


def test_the_data_sets_have_the_shapes_of_the_paper():
    assert DATASETS["ciao"] == (105_096, 38)
    assert DATASETS["ml-1m"] == (3_952, 166)
    assert set(DATASETS) == {"ml-1m", "filmtrust", "douban", "ciao"}


def test_the_texts_percentages_are_refuted_by_its_own_formulas():
    shares = {finding.mode: finding for finding in cost_table.text_percentages()}
    assert {finding.verdict for finding in shares.values()} == {"refuted"}
    assert shares["of FCF"].measured == pytest.approx(0.25)
    assert shares["of FedMF"].measured == pytest.approx(1 / 64)
    assert shares["of MetaMF"].measured == pytest.approx(0.25, rel=1e-3)


def test_ten_million_items_are_160_megabytes_and_not_more_than_a_gigabyte():
    found = {finding.mode: finding for finding in cost_table.ten_million_items(CIAO, None)}
    assert found["real values"].verdict == "confirmed"
    assert (found["codes"].measured, found["codes"].verdict) == (160_000_016, "refuted")
    assert found["codes on disk"].measured is None
    big = cost_table.ten_million_items(Shape(10_000_000, 64, 128), {"codes": 160_000_000})
    assert (big[-1].measured, big[-1].verdict) == (160_000_000, "refuted")
