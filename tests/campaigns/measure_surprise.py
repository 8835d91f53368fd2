"""PMF and SVD++ beside those of scikit-surprise: the error of predicted ratings on the same fifth of the ratings.

    python -m tests.campaigns.measure_surprise --data "$(lightfr-harness data fetch ml-100k)"

Both have the same constants, factors and passes. Theirs goes through the ratings in the order of users, one at a time;
ours in batches of 512 (PMF), or with 16 users side by side (SVD++).
"""

import argparse
from pathlib import Path

import numpy as np

from lightfr_harness.data import load
from lightfr_harness.errors import errors_as_messages, import_package
from lightfr_harness.simulation.baselines.method import FACTORS
from lightfr_harness.simulation.baselines.pmf import Pmf, PmfOptions
from lightfr_harness.simulation.baselines.svdpp import Svdpp, SvdppOptions

PASSES = 20
PMF = PmfOptions(learning_rate=0.01, regularization=0.05)
SVDPP = SvdppOptions(learning_rate=0.007, bias_regularization=0.005, factor_regularization=0.015)


def their_methods(surprise, seed):
    shared = {"n_factors": FACTORS, "n_epochs": PASSES, "random_state": seed, "init_std_dev": 0.1}
    pmf = surprise.SVD(biased=False, lr_all=PMF.learning_rate, reg_all=PMF.regularization, **shared)
    factor, bias = SVDPP.factor_regularization, SVDPP.bias_regularization
    return {
        "PMF": pmf,
        "SVD++": surprise.SVDpp(lr_all=SVDPP.learning_rate, reg_all=factor, reg_bu=bias, reg_bi=bias, **shared),
    }


def their_rmse(surprise, method, train, test):
    reader = surprise.Reader(rating_scale=(train.rating_min, train.rating_max))
    rows = zip(train.user_index.tolist(), train.item_index.tolist(), train.rating.tolist(), strict=True)
    method.fit(surprise.Dataset(reader).construct_trainset([(*row, None) for row in rows]))
    pairs = zip(test.user_index.tolist(), test.item_index.tolist(), strict=True)
    return rmse(test, np.array([method.predict(user, item).est for user, item in pairs]))


def rmse(test, predicted):
    """Predictions are cut to the scale, as surprise does it."""
    errors = np.clip(predicted, test.rating_min, test.rating_max) - test.rating
    return float(np.sqrt(np.mean(errors**2)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="ratings of MovieLens-100K")
    parser.add_argument("--format", default="ml-100k")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    with errors_as_messages():
        surprise = import_package("surprise", "scikit-surprise", "This comparison")
        ratings = load(options.data, options.format)
    for seed in range(options.seeds):
        in_test = np.random.default_rng([seed, 59]).random(len(ratings)) < 0.2
        train, test = ratings.subset(~in_test), ratings.subset(in_test)
        theirs = their_methods(surprise, seed)
        for name, method in {"PMF": Pmf(PMF), "SVD++": Svdpp(SVDPP)}.items():
            method.fit(train, seed, PASSES)
            ours = rmse(test, method.scores(test.user_index, test.item_index))
            error = their_rmse(surprise, theirs[name], train, test)
            print(f"seed {seed}, {name}: RMSE {ours:.4f}, surprise {error:.4f}")


if __name__ == "__main__":
    main()
