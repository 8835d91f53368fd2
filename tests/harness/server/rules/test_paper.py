"""The paper's rule, by what all devices say together."""

import numpy as np

from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import PaperRule
from tests.harness.server.rules.full_matrix import FullMatrix

F = 16


def test_sums_of_the_open_rows_move_the_codes_as_the_printed_rule_says():
    counts = np.array([9, 0, 7, 9])
    rule = PaperRule(
        counts, F, regularization=0.01, upload_kind=model_pb2.UPLOAD_KIND_EXACT, gate=5, max_rows=0, seed=7
    )
    full, rng = FullMatrix(counts, F, 5, 7), np.random.default_rng(1)
    for _ in range(3):
        rows = 100 * rng.integers(-2000, 2001, (3, F))
        rule.add_sums(rows.ravel())
        rule.finish_round()
        full.agg_grad(rows, rule.balance)
        assert (rule.signs() == full.published()).all()
