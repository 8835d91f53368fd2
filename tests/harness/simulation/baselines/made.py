"""Small made-up ratings."""

import numpy as np

from lightfr_harness.data import Ratings


def made_ratings(n_users, n_items, n_ratings, seed=0):
    """So many ratings of 1 to 5 of each user, by planted factors and noise, in a random order."""
    rng = np.random.default_rng(seed)
    taste, quality = rng.normal(0, 1, (n_users, 2)), rng.normal(0, 1, (n_items, 2))
    users = np.repeat(np.arange(n_users), n_ratings)
    items = np.concatenate([rng.choice(n_items, n_ratings, replace=False) for _ in range(n_users)])
    liking = 3.5 + (taste[users] * quality[items]).sum(axis=1) + rng.normal(0, 0.3, len(users))
    names = ([f"u{n}" for n in range(n_users)], [f"i{n}" for n in range(n_items)])
    return Ratings(users, items, np.clip(np.rint(liking), 1, 5), np.arange(len(users)), *names, 1, 5)
