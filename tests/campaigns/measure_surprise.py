"""PMF and SVD++ beside those of scikit-surprise: the error of predicted ratings on the same random fifth of the ratings.

    python -m tests.campaigns.measure_surprise --data ml-100k.inter

Both have the same constants, factors and passes. Theirs goes through the ratings in the order of users, one at a time;
ours in batches of 512 (PMF) or 16 users side by side (SVD++).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lightfr_harness.data import Ratings, load
from lightfr_harness.errors import MissingPackageError, errors_as_messages, import_package
from lightfr_harness.simulation.baselines.method import FACTORS, Method
from lightfr_harness.simulation.baselines.pmf import Pmf, PmfOptions
from lightfr_harness.simulation.baselines.svdpp import Svdpp, SvdppOptions

PASSES = 20
SVDPP = SvdppOptions(learning_rate=0.007, bias_regularization=0.005, factor_regularization=0.015)
PMF = PmfOptions(learning_rate=0.01, regularization=0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="ratings of MovieLens-100K")
    parser.add_argument("--format", default="ml-100k")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    with errors_as_messages():
        surprise = import_package("surprise", "scikit-surprise", "This comparison")
        ratings = load(options.data, options.format)
        if not isinstance(ratings, Ratings):
            raise MissingPackageError("ratings", "This comparison, which cannot use a prepared split,")
        for seed in range(options.seeds):
            in_test = np.random.default_rng([seed, 59]).random(len(ratings)) < 0.2
            train, test = ratings.subset(~in_test), ratings.subset(in_test)
            theirs = _their_methods(surprise, seed)
            ours: dict[str, Method] = {"PMF": Pmf(PMF), "SVD++": Svdpp(SVDPP)}
            for name, method in ours.items():
                method.fit(train, seed, PASSES)
                error = _rmse(test, method.scores(test.user_index, test.item_index))
                print(f"seed {seed}  {name:6}  RMSE ours {error:.4f}  surprise {_their_rmse(surprise, theirs[name], train, test):.4f}")


def _their_methods(surprise: Any, seed: int) -> dict[str, Any]:
    shared = {"n_factors": FACTORS, "n_epochs": PASSES, "random_state": seed, "init_std_dev": 0.1}
    pmf = surprise.SVD(biased=False, lr_all=PMF.learning_rate, reg_all=PMF.regularization, **shared)
    factor, bias = SVDPP.factor_regularization, SVDPP.bias_regularization
    svdpp = surprise.SVDpp(lr_all=SVDPP.learning_rate, reg_all=factor, reg_bu=bias, reg_bi=bias, **shared)
    return {"PMF": pmf, "SVD++": svdpp}


def _their_rmse(surprise: Any, method: Any, train: Ratings, test: Ratings) -> float:
    import pandas

    rows = {"user": train.user_index, "item": train.item_index, "rating": train.rating}
    reader = surprise.Reader(rating_scale=(train.rating_min, train.rating_max))
    data = surprise.Dataset.load_from_df(pandas.DataFrame(rows), reader)
    method.fit(data.build_full_trainset())
    pairs = zip(test.user_index.tolist(), test.item_index.tolist(), strict=True)
    return _rmse(test, np.array([method.predict(user, item).est for user, item in pairs]))


def _rmse(test: Ratings, predicted: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Predictions are cut to the scale, as surprise does it."""
    errors = np.clip(predicted, test.rating_min, test.rating_max) - test.rating
    return float(np.sqrt(np.mean(errors**2)))


if __name__ == "__main__":
    main()
