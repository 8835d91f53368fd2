"""What the servers of other methods learn: each is run for some rounds, watched by its own server, and attacked.

All exchanges are encoded messages, seen by the name of the device. Attacks on one exchange take the last round
(`method_attacks`); which items come up again and again takes all rounds. 5 % of the devices collude: they make the
guesses better, and in FedMF one of them gives the server the key. Constants are those of the methods' authors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lightfr_harness.audits.privacy.method_attacks import (
    NEAR,
    NOTHING,
    Read,
    read_fcf,
    read_fedrec,
    read_metamf,
    read_pfedrec,
    read_walk,
)
from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.fcf import Fcf, FcfOptions
from lightfr_harness.simulation.baselines.fedmf import FedMF, FedMFOptions
from lightfr_harness.simulation.baselines.fedrec import FedRec, FedRecOptions
from lightfr_harness.simulation.baselines.item_factors import ItemFactorMethod
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import GeneratedModelGradient
from lightfr_harness.simulation.baselines.metamf import Metamf, PrivateModel
from lightfr_harness.simulation.baselines.metamf import make as make_metamf
from lightfr_harness.simulation.baselines.method import Floats
from lightfr_harness.simulation.baselines.pfedrec import Pfedrec
from lightfr_harness.simulation.baselines.pfedrec import make as make_pfedrec
from lightfr_harness.simulation.baselines.privrec import PrivRec, PrivRecDevice, PrivRecOptions
from lightfr_harness.simulation.baselines.registry import METHODS
from lightfr_harness.simulation.baselines.sealing import FixedPoint, Sealing
from lightfr_harness.simulation.baselines.tables import best_unrated, decode_rows, decode_table, parsed

# From what was sent, what came back, and the number of the round, from 0, to what is read of the device.
Attack = Callable[[bytes, bytes, int], Read]
# What can be watched: of each it is known where a device's own factors stand.
Watchable = ItemFactorMethod | Metamf | Pfedrec
LIST = 10


@dataclass(frozen=True)
class Subject:
    """A method to watch, and the attacks on it, by what the server has beside its messages."""

    title: str
    method: Watchable
    attacks: dict[str, Attack]
    items_of: Callable[[bytes], Index] | None
    """The items that an upload names; None where it has a row for every item."""
    tick: bool | None = None
    """What the paper's Table 1 says of its privacy, if it is there."""


def items_of_rows(upload: bytes) -> Index:
    return decode_rows(upload)[0]


def watched_fcf(train: Ratings, options: FcfOptions | None = None) -> Subject:
    options = options or FcfOptions(**METHODS["fcf"].authors)
    bottom, span = train.rating_min, train.rating_max - train.rating_min
    places = (np.unique(train.rating) - bottom) / span

    def attack(download: bytes, upload: bytes, number: int) -> Read:
        read = read_fcf(decode_table(download), decode_table(upload), options, places)
        ratings = None if read.ratings is None else bottom + span * read.ratings
        return Read(read.items, ratings, read.vector, read.scores)

    return Subject("FCF", Fcf(options), {"": attack}, None, tick=False)


def watched_fedmf(
    train: Ratings,
    *,
    full: bool,
    options: FedMFOptions | None = None,
    on_server: Sealing | None = None,
    on_devices: Sealing | None = None,
) -> Subject:
    """By default on the multiples that decryption gives: a run on ciphertexts has the same numbers and takes days.

    So the attack without the key must not look at any number, and does not.
    """
    options = options or FedMFOptions(**METHODS["fedmf"].authors, full=full)
    public, private, levels = on_server or FixedPoint(), on_devices or FixedPoint(), np.unique(train.rating)

    def without_key(download: bytes, upload: bytes, number: int) -> Read:
        return NOTHING if full else Read(public.decode_rows(upload)[0])

    def with_key(download: bytes, upload: bytes, number: int) -> Read:
        table = private.opened(private.decode_table(download))
        if full:
            changes = private.opened(private.decode_table(upload))
            # A row of zeros is an item without a rating. The others are in the order of items, not of the walk.
            items = np.flatnonzero(changes.any(axis=1)).astype(np.uint32)
            changes = changes[items]
        else:
            items, cells = private.decode_rows(upload)
            changes = private.opened(cells)
        if not len(items):
            return NOTHING
        ratings, p = read_walk(table[items], changes, 2 * options.step_size, options.regularization, levels)
        return Read(items, ratings, p, table @ p)

    return Subject(
        f"FedMF, {'full' if full else 'part'}",
        FedMF(options, public, private),
        {"": without_key, "with a user's key": with_key},
        None if full else lambda upload: public.decode_rows(upload)[0],
        tick=True,
    )


def watched_fedrec(train: Ratings, options: FedRecOptions | None = None) -> Subject:
    options = options or FedRecOptions(**METHODS["fedrec"].authors)
    levels = np.unique(train.rating)

    def attack(download: bytes, upload: bytes, number: int) -> Read:
        items, gradients = decode_rows(upload)
        table = decode_table(download)
        return read_fedrec(table, items, gradients, options, number, levels) if len(items) else NOTHING

    return Subject("FedRec", FedRec(options), {"": attack}, items_of_rows, tick=True)


def watched_metamf(train: Ratings) -> Subject:
    levels = np.unique(train.rating)
    return Subject(
        "MetaMF",
        make_metamf(METHODS["metamf"].authors),
        {"": lambda download, upload, number: read_metamf(download, upload, levels)},
        lambda upload: np.array(parsed(GeneratedModelGradient(), upload).items.item_indices, np.uint32),
        tick=False,
    )


def watched_privrec(train: Ratings, options: PrivRecOptions | None = None) -> Subject:
    options = options or PrivRecOptions(**METHODS["privrec"].authors)
    levels = np.unique(train.rating)

    def attack(download: bytes, upload: bytes, number: int) -> Read:
        table, (items, changes) = decode_table(download), decode_rows(upload)
        # What was shortened was shortened by an unknown factor: the items stand there, the ratings are left alone.
        if not len(items) or np.linalg.norm(changes) > options.clip * (1 - NEAR):
            return Read(items)
        ratings, p = read_walk(table[items], changes, options.step_size, options.regularization, levels)
        device = PrivRecDevice(items, ratings, options, np.random.default_rng(0))
        device.user_factors = p
        x = device.factors(table)
        return Read(items, ratings, x, table @ x)

    return Subject("PrivRec, reconstructed", PrivRec(options), {"": attack}, items_of_rows, tick=True)


def watched_pfedrec(train: Ratings) -> Subject:
    def attack(download: bytes, upload: bytes, number: int) -> Read:
        items, moves = decode_rows(upload)
        return read_pfedrec(decode_table(download), items, moves) if len(items) else NOTHING

    return Subject("PFedRec", make_pfedrec(METHODS["pfedrec"].authors), {"": attack}, items_of_rows)


WATCHED: dict[str, Callable[[Ratings], Subject]] = {
    "fcf": watched_fcf,
    "fedmf-part": lambda train: watched_fedmf(train, full=False),
    "fedmf-full": lambda train: watched_fedmf(train, full=True),
    "fedrec": watched_fedrec,
    "metamf": watched_metamf,
    "privrec": watched_privrec,
    "pfedrec": watched_pfedrec,
}


@dataclass(frozen=True, repr=False)
class Own:
    """What a device of the last round keeps to itself: its factors, if any, and its list, without rated items."""

    vector: Floats | None
    best: Index


@dataclass(repr=False)
class Watch:
    """What was seen of a whole run. `own` is no part of that: it is for scoring."""

    subject: Subject
    rated: list[Index]
    last: int
    """The number of the last round, from 0."""
    reads: dict[str, dict[int, Read]] = field(default_factory=lambda: defaultdict(dict))
    uploads: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """By device, in how many of its uploads each item was named."""
    own: dict[int, Own] = field(default_factory=dict)

    def see(self, device: int, download: bytes, upload: bytes) -> None:
        number = len(self.subject.method.rounds)
        if self.subject.items_of is not None:
            self.uploads[device].update(self.subject.items_of(upload).tolist())
        if number == self.last:
            for name, attack in self.subject.attacks.items():
                self.reads[name][device] = attack(download, upload, number)
            vector, scores = own_scores(self.subject.method, device, download)
            self.own[device] = Own(vector, best_unrated(scores, self.rated[device], min(LIST, len(scores))))


def own_scores(method: Watchable, device: int, download: bytes) -> tuple[Floats | None, Floats]:
    """A device's factors after its round, and its scores of all items with the table that it has."""
    if isinstance(method, Metamf):
        model = PrivateModel.decode(download)
        return None, model.predict(model.left @ model.right)[0].astype(np.float64)
    if isinstance(method, Pfedrec):
        weights = method.devices[device].weights
        return weights, decode_table(download) @ weights
    table = method.opened(download)
    vector = method.devices[device].factors(table)
    return vector, table @ vector


def watch(subject: Subject, train: Ratings, rated: list[Index], rounds: int, seed: int) -> Watch:
    """Run a method for so many rounds under the eyes of its server."""
    seen = Watch(subject, rated, rounds - 1)
    subject.method.observer = seen.see
    subject.method.fit(train, seed, rounds)
    return seen
