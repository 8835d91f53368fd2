"""Made-up ratings with a truth to learn: planted tastes, a long tail, noise and drift.

A user has two home clusters and a taste vector; both drift over the user's own time, so the last
ratings say a little more about the next one. For every event a few items are proposed, by
popularity from the home cluster or from the whole catalogue, and the user takes the one that
suits the taste, with noise. The stars add the item's quality and the user's mood, and noise.
Users are made in blocks, so memory follows the number of ratings, never users times items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidOptionError
from .ratings import Index, Ratings, renumber_by_popularity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TASTE_DIMENSIONS = 8
ITEMS_PER_CLUSTER = 70
MOST_CLUSTERS = 64
POPULARITY_EXPONENT = 1.1
PROPOSALS = 4
SHARE_FROM_ANYWHERE = 0.3
ATTEMPTS_BY_TASTE = 20
EVENTS_PER_BLOCK = 250_000
SECONDS_OF_HISTORY = 200 * 86_400
FEWEST_RATINGS_PER_USER = 5
# Of users, items and ratings each: ratings of this number take some 10 GB.
MOST = 100_000_000
MOST_DIGITS = 18


@dataclass(frozen=True)
class SyntheticSize:
    """How many users, items and ratings to make."""

    n_users: int
    n_items: int
    n_ratings: int

    def __post_init__(self) -> None:
        largest = max(self.n_users, self.n_items, self.n_ratings)
        if largest > MOST:
            raise InvalidOptionError(
                f"A synthetic set of {largest:,} users, items or ratings would take days and all memory; give at most "
                f"{MOST:,} of each."
            )
        fewest = self.n_users * FEWEST_RATINGS_PER_USER
        # Half of the catalogue per user at most: beyond that nobody would have a choice left.
        most = self.n_users * (self.n_items // 2)
        if self.n_users < 1 or not fewest <= self.n_ratings <= most:
            raise InvalidOptionError(
                f"{self.n_ratings} ratings do not fit {self.n_users} users and {self.n_items} "
                f"items; give between {fewest} and {most} ratings."
            )


SIZES = {
    "tiny": SyntheticSize(64, 200, 2_500),
    "small": SyntheticSize(300, 600, 18_000),
    "filmtrust": SyntheticSize(1_508, 2_071, 35_497),
    "ml-100k": SyntheticSize(943, 1_682, 100_000),
    "ciao": SyntheticSize(7_375, 105_096, 282_619),
    "ml-1m": SyntheticSize(6_040, 3_952, 1_000_209),
    "large": SyntheticSize(100_000, 1_000_000, 10_000_000),
}


def parse_size(text: str) -> SyntheticSize:
    """A name from SIZES, or USERSxITEMSxRATINGS such as 1000x2000x50000."""
    if text in SIZES:
        return SIZES[text]
    parts = text.split("x")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) <= MOST_DIGITS for part in parts):
        raise InvalidOptionError(
            f"There is no synthetic size {text!r}. Use one of {', '.join(SIZES)}, "
            "or USERSxITEMSxRATINGS such as 1000x2000x50000."
        )
    return SyntheticSize(*(int(part) for part in parts))


def generate(size: str | SyntheticSize = "ml-100k", *, seed: int = 0) -> Ratings:
    """Ratings of 1 to 5 stars; the same size and seed give the same ratings."""
    wanted = parse_size(size) if isinstance(size, str) else size
    world = _World.make(wanted, np.random.default_rng([seed, 0]))
    activity = _activity(wanted, np.random.default_rng([seed, 1]))
    starts = np.flatnonzero(np.diff(np.cumsum(activity) // EVENTS_PER_BLOCK, prepend=-1))
    blocks = [
        _make_block(world, users, activity[users], np.random.default_rng([seed, 2, int(users[0])]))
        for users in np.split(np.arange(len(activity)), starts[1:])
    ]
    user, item, stars, time = (np.concatenate(column) for column in zip(*blocks, strict=True))
    user_ids = [f"u{number}" for number in range(wanted.n_users)]
    item_ids = [item_id(number) for number in range(wanted.n_items)]
    return renumber_by_popularity(Ratings(user, item, stars, time, user_ids, item_ids, 1.0, 5.0))


def item_clusters(size: SyntheticSize) -> Ints:
    """The cluster of taste that each item belongs to, by the number in its id; every seed has the same clusters."""
    n_clusters = int(np.clip(size.n_items // ITEMS_PER_CLUSTER, 4, MOST_CLUSTERS))
    return np.sort(np.arange(size.n_items) % n_clusters)


@dataclass(frozen=True)
class _World:
    """The items: sorted by cluster, with the running sum of their popularity."""

    cluster_starts: Ints
    cumulative_weight: Floats
    vectors: Floats
    quality: Floats

    @classmethod
    def make(cls, size: SyntheticSize, generator: np.random.Generator) -> _World:
        cluster = item_clusters(size)
        n_clusters = int(cluster[-1]) + 1
        centres = generator.normal(size=(n_clusters, TASTE_DIMENSIONS))
        offsets = generator.normal(size=(size.n_items, TASTE_DIMENSIONS))
        rank = generator.permutation(size.n_items)
        weight = (rank + 10.0) ** -POPULARITY_EXPONENT
        return cls(
            np.searchsorted(cluster, np.arange(n_clusters + 1)),
            np.concatenate(([0.0], np.cumsum(weight))),
            (centres[cluster] + offsets) / np.sqrt(2 * TASTE_DIMENSIONS),
            # Popular items are a little better liked, as everywhere.
            generator.normal(scale=0.4, size=size.n_items) - 0.08 * np.log(rank + 1.0),
        )

    @property
    def n_items(self) -> int:
        return len(self.quality)

    @property
    def n_clusters(self) -> int:
        return len(self.cluster_starts) - 1

    def propose(self, cluster: Ints, generator: np.random.Generator) -> Ints:
        """PROPOSALS items for each event, by popularity: most from the cluster, some from all."""
        shape = (len(cluster), PROPOSALS)
        anywhere = generator.random(shape) < SHARE_FROM_ANYWHERE
        low = np.where(anywhere, 0, self.cluster_starts[cluster][:, None])
        high = np.where(anywhere, self.n_items, self.cluster_starts[cluster + 1][:, None])
        floor, ceiling = self.cumulative_weight[low], self.cumulative_weight[high]
        point = floor + generator.random(shape) * (ceiling - floor)
        found = np.searchsorted(self.cumulative_weight, point, side="right") - 1
        return np.clip(found, low, high - 1)  # Rounding may land just outside the range.


@dataclass(frozen=True)
class _Tastes:
    """The users of one block; `late` is where a taste has drifted to at the end."""

    early: Floats
    late: Floats
    home: Ints
    next_home: Ints
    mood: Floats

    @classmethod
    def make(cls, world: _World, n_users: int, generator: np.random.Generator) -> _Tastes:
        shape = (n_users, TASTE_DIMENSIONS)
        early = generator.normal(size=shape)
        late = 0.5 * early + 0.85 * generator.normal(size=shape)
        homes = generator.integers(world.n_clusters, size=(2, n_users))
        return cls(early, late, homes[0], homes[1], generator.normal(scale=0.4, size=n_users))

    def at(self, user: Ints, when: Floats) -> Floats:
        return self.early[user] * (1 - when[:, None]) + self.late[user] * when[:, None]

    def cluster_at(self, user: Ints, when: Floats, generator: np.random.Generator) -> Ints:
        # Squared, so that most of the move to the next home happens near the end.
        moved_on = generator.random(len(user)) < 0.1 + 0.8 * when**2
        return np.where(moved_on, self.next_home[user], self.home[user])


@dataclass(frozen=True)
class _Events:
    """Who takes what when; `when` runs from 0 to 1 through the user's own history."""

    user: Ints
    item: Ints
    when: Floats


def _activity(size: SyntheticSize, generator: np.random.Generator) -> Ints:
    """How much each user rates: long-tailed, at least a few, at most half of the catalogue."""
    most = size.n_items // 2
    share = generator.lognormal(sigma=0.9, size=size.n_users)
    spare = size.n_ratings - size.n_users * FEWEST_RATINGS_PER_USER
    counts: Ints = FEWEST_RATINGS_PER_USER + (share / share.sum() * spare).astype(np.int64)
    counts = np.minimum(counts, most)
    while (missing := size.n_ratings - int(counts.sum())) > 0:
        open_users = np.flatnonzero(counts < most)
        counts[generator.permutation(open_users)[:missing]] += 1
    return counts


def _make_block(
    world: _World, users: Ints, activity: Ints, generator: np.random.Generator
) -> tuple[Index, Index, Floats, Ints]:
    tastes = _Tastes.make(world, len(users), generator)
    events = _distinct_events(world, tastes, activity, generator)
    stars = _stars(world, tastes, events, generator)
    first_seen = generator.integers(SECONDS_OF_HISTORY, size=len(users))
    time = first_seen[events.user] + (events.when * SECONDS_OF_HISTORY).astype(np.int64)
    order = np.lexsort((time, events.user))
    # Half of the bytes: all blocks are held together at the end.
    return users[events.user[order]].astype(np.uint32), events.item[order].astype(np.uint32), stars[order], time[order]


def _distinct_events(world: _World, tastes: _Tastes, activity: Ints, generator: np.random.Generator) -> _Events:
    """Draw until every user has enough different items: repeats are dropped and drawn again."""
    pair, when = np.empty(0, dtype=np.int64), np.empty(0)
    missing, attempt = activity, 0
    while missing.any():
        user = np.repeat(np.arange(len(activity)), missing)
        new_when = generator.random(len(user))
        if attempt < ATTEMPTS_BY_TASTE:
            item = _choose(world, tastes, user, new_when, generator)
        else:  # Who has seen the best of the home clusters starts to look around.
            item = generator.integers(world.n_items, size=len(user))
        pair = np.append(pair, user * world.n_items + item)
        pair, first = np.unique(pair, return_index=True)
        when = np.append(when, new_when)[first]
        missing = activity - np.bincount(pair // world.n_items, minlength=len(activity))
        attempt += 1
    return _Events(pair // world.n_items, pair % world.n_items, when)


def _choose(world: _World, tastes: _Tastes, user: Ints, when: Floats, generator: np.random.Generator) -> Ints:
    proposed = world.propose(tastes.cluster_at(user, when, generator), generator)
    appeal = np.einsum("ed,epd->ep", tastes.at(user, when), world.vectors[proposed])
    # Adding Gumbel noise and taking the largest is a draw from the softmax of the appeal.
    best = np.argmax(2.0 * appeal + generator.gumbel(size=appeal.shape), axis=1)
    chosen: Ints = proposed[np.arange(len(user)), best]
    return chosen


def _stars(world: _World, tastes: _Tastes, events: _Events, generator: np.random.Generator) -> Floats:
    taste = tastes.at(events.user, events.when)
    appeal = np.einsum("ed,ed->e", taste, world.vectors[events.item])
    noise = generator.normal(scale=0.7, size=len(appeal))
    liking = 3.7 + world.quality[events.item] + tastes.mood[events.user] + 0.5 * appeal + noise
    stars: Floats = np.clip(np.rint(liking), 1, 5)
    return stars


def item_id(number: int) -> str:
    """The id of a generated item; numbers begin at 0."""
    return f"i{number}"
