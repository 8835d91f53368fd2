"""What the tests of methods share: users of two groups, and slopes by finite differences."""

import numpy as np

from lightfr_harness.data import Ratings


def two_groups(n_users=40, n_items=40, each=8, seed=5):
    """Users of even and odd numbers rate items of the first and the second half."""
    rng, half = np.random.default_rng(seed), n_items // 2
    items = np.concatenate([half * (user % 2) + rng.choice(half, each, replace=False) for user in range(n_users)])
    users = np.repeat(np.arange(n_users), each)
    names = ([f"u{user}" for user in range(n_users)], [f"i{item}" for item in range(n_items)])
    return Ratings(users, items, np.full(len(items), 5.0), np.arange(len(items)), *names, 1.0, 5.0)


def share_of_own_half(method, train):
    """How often an unrated item of the own half scores higher than one of the other half."""
    users, items = np.divmod(np.arange(train.n_users * train.n_items), train.n_items)
    scores = method.scores(users.astype(np.uint32), items.astype(np.uint32)).reshape(train.n_users, -1)
    rated = np.zeros(scores.shape, bool)
    rated[train.user_index, train.item_index] = True
    shares = []
    for user, row in enumerate(scores):
        own = np.arange(train.n_items) // (train.n_items // 2) == user % 2
        shares.append((row[own & ~rated[user]][:, None] > row[~own]).mean())
    return np.mean(shares)


def slope(loss, values, place, step=1e-6):
    """The slope of `loss()` by one number of an array, by finite differences from both sides."""
    kept = values[place]
    values[place] = kept + step
    above = loss()
    values[place] = kept - step
    below = loss()
    values[place] = kept
    return (above - below) / (2 * step)
