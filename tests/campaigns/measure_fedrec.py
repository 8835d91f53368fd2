"""FedRec's error on ML-100K with its authors' constants, beside what the authors' own logs say.

    python -m tests.campaigns.measure_fedrec ml-100k.inter [--seeds 5]

Ratings are split at random, 80 to 20; predictions are cut to the scale of 1 to 5, as the authors cut theirs.
"""

import argparse
import time

import numpy as np

from lightfr_harness.data import load
from lightfr_harness.simulation.baselines.fedrec import ENTRY

# Means of the authors' five logs, without virtual ratings and with hybrid filling.
PUBLISHED = {0: 0.9424, 3: 0.9431}


def error(ratings, rho, seed):
    """RMSE on the fifth that was not trained on."""
    in_train = np.random.default_rng([seed, 1]).permutation(len(ratings)) < 0.8 * len(ratings)
    train, test = ratings.subset(in_train), ratings.subset(~in_train)
    method = ENTRY.make({**ENTRY.authors, "rho": rho})
    method.fit(train, seed, ENTRY.authors_steps)
    predicted = np.clip(method.scores(test.user_index, test.item_index), ratings.rating_min, ratings.rating_max)
    return float(np.sqrt(np.mean((predicted - test.rating) ** 2)))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("file")
    arguments.add_argument("--seeds", type=int, default=5)
    asked = arguments.parse_args()
    ratings = load(asked.file, "inter", rating_min=1, rating_max=5)
    for rho, published in PUBLISHED.items():
        started = time.process_time()
        errors = [error(ratings, rho, seed) for seed in range(asked.seeds)]
        seconds = (time.process_time() - started) / asked.seeds
        each = " ".join(f"{value:.4f}" for value in errors)
        print(
            f"rho {rho}: RMSE {np.mean(errors):.4f} ({each}), the authors' logs {published}, {seconds:.0f} CPU s each"
        )


if __name__ == "__main__":
    main()
