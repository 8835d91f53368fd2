"""The baseline is the train count, and nothing else."""

import numpy as np

from lightfr_harness.data.ratings import ratings_from_ids
from lightfr_harness.data.splits import leave_last_out
from lightfr_harness.data.evaluation import popularity_of_candidates, popularity_scores


def test_popularity_counts_train_ratings_only():
    users, items = list("uuuuvvvv"), list("abczdbcz")
    split = leave_last_out(ratings_from_ids(users, items, np.full(8, 1.0), None, (0.0, 1.0)))
    counts = dict(zip(split.train.item_ids, popularity_scores(split.train).tolist(), strict=True))
    assert counts == {"a": 1, "b": 2, "c": 2, "d": 1, "z": 0}


def test_popularity_of_candidates_is_aligned_with_them():
    users, items = list("uuuuvvvv"), list("abczdbcz")
    split = leave_last_out(ratings_from_ids(users, items, np.full(8, 1.0), None, (0.0, 1.0)))
    scores = popularity_of_candidates(split.train, split.test)
    assert scores.shape == split.test.item_index.shape
    assert scores[split.test.offsets[:-1]].tolist() == [0, 0]
