"""FedMF: secure federated matrix factorization (Chai, Wang, Chen, Yang, 2020).

Ratings r are predicted by p.q. All users share one Paillier key pair, and the server has the public key only. It sends
the encrypted item factors. A device decrypts them and walks through its ratings: e = r - p.q_i, then
p <- p + 2 eta (e q_i - lambda p), then, with this new p, g_i = 2 eta (lambda q_i - e p). It encrypts -g_i, and the
server adds it to q_i without being able to read either. A *part* upload has the rows of rated items and so names them;
a *full* one has a row for every item, most of them encrypted zeros. Both give the same model.

Numbers are encrypted as multiples of 1e-5. A sealing says what stands in the messages: plain numbers, these multiples
(exactly what decryption would give), or their ciphertexts. A whole run on ciphertexts takes days, so accuracy is
measured on plain numbers, and the rounds of such a run count the bytes of plain numbers; `cost` has those of
ciphertexts.

The authors' code starts all factors at 0.01, so that all columns stay equal for ever; here they start at random. One
device that gives its key to the server undoes everything: the audits take the server to be honest.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.item_factors import (
    Device,
    ItemFactorMethod,
    Server,
    a_users_ratings,
    histories,
)
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import EncryptedTable
from lightfr_harness.simulation.baselines.method import FACTORS, FRACTION, DeviceCost, Entry, Floats
from lightfr_harness.simulation.baselines.paillier import ARITHMETIC, PrivateKey, generate
from lightfr_harness.simulation.baselines.sealing import Encrypted, Plain, Sealing
from lightfr_harness.simulation.baselines.tables import best_unrated, stored_bytes

STREAM = 67
SAMPLED_ROWS = 2  # so many rows stand for all where encrypting them would take hours


@dataclass(frozen=True)
class FedMFOptions:
    """`full`: every item has a row in every upload. Factors start at random, with a deviation of `spread`; all start at
    `start` where that is not 0."""

    factors: float = FACTORS
    step_size: float = 0.001
    regularization: float = 0.0001
    full: float = 0
    spread: float = 0.1
    start: float = 0
    fraction: float = FRACTION


class FedMFDevice(Device):
    """One user's ratings, oldest first, and factors."""

    def __init__(
        self, items: Index, ratings: Floats, options: FedMFOptions, sealing: Sealing, rng: np.random.Generator
    ) -> None:
        self._items, self._ratings, self._options, self._sealing = items, ratings, options, sealing
        self.user_factors: Floats = first_factors((1, int(options.factors)), options, rng)[0]

    def answer(self, item_factors: Floats, number: int) -> bytes:
        change = -self.gradients(item_factors[self._items])
        if not self._options.full:
            return self._sealing.encode_rows(self._items, self._sealing.sealed(change))
        whole = np.zeros_like(item_factors)
        whole[self._items] = change
        return self._sealing.encode_table(self._sealing.sealed(whole))

    def gradients(self, rows: Floats) -> Floats:
        """Walk through the ratings, moving p, and return g for each."""
        rate, strength = 2 * self._options.step_size, self._options.regularization
        p, errors, walked = self.user_factors, np.empty(len(rows)), np.empty_like(rows)
        for k, (q, rating) in enumerate(zip(rows, self._ratings.tolist(), strict=True)):
            error = rating - float(p @ q)
            p = (1 - rate * strength) * p + (rate * error) * q
            errors[k], walked[k] = error, p
        self.user_factors = p
        return rate * (strength * rows - errors[:, None] * walked)

    def factors(self, item_factors: Floats) -> Floats:
        return self.user_factors


class FedMFServer(Server):
    """A sealed table, to which uploads are added as they come."""

    def __init__(self, n_items: int, options: FedMFOptions, sealing: Sealing, rng: np.random.Generator) -> None:
        self._options, self._sealing = options, sealing
        self.cells = sealing.sealed(first_factors((n_items, int(options.factors)), options, rng))

    def download(self) -> bytes:
        return self._sealing.encode_table(self.cells)

    def receive(self, upload: bytes) -> None:
        if self._options.full:
            self.cells = self._sealing.added(self.cells, self._sealing.decode_table(upload))
        else:
            items, changes = self._sealing.decode_rows(upload)
            self.cells[items] = self._sealing.added(self.cells[items], changes)

    def step(self) -> None:
        """Everything was added already."""


def first_factors(shape: tuple[int, int], options: FedMFOptions, rng: np.random.Generator) -> Floats:
    return np.full(shape, options.start) if options.start else rng.normal(0, options.spread, shape)


class FedMF(ItemFactorMethod):
    """Server and devices of FedMF; they seal alike, but the server cannot open what is encrypted."""

    def __init__(
        self, options: FedMFOptions, on_server: Sealing | None = None, on_devices: Sealing | None = None
    ) -> None:
        super().__init__()
        self.options, self.fraction = options, options.fraction
        self._on_server, self._on_devices = on_server or Plain(), on_devices or on_server or Plain()

    def opened(self, download: bytes) -> Floats:
        return self._on_devices.opened(self._on_devices.decode_table(download))

    def begin(self, train: Ratings, seed: int) -> None:
        self.rounds.clear()
        self._draws = np.random.default_rng([seed, STREAM])
        self.server = FedMFServer(train.n_items, self.options, self._on_server, self._draws)
        self.devices = [
            FedMFDevice(items, ratings, self.options, self._on_devices, self._draws)
            for items, ratings in histories(train)
        ]


def encrypted_run(options: FedMFOptions, key: PrivateKey) -> FedMF:
    """FedMF as published: the server has the public half of the key, the devices both."""
    below = secrets.randbelow
    return FedMF(options, Encrypted(key.public, None, below), Encrypted(key.public, key, below))


def cost(
    n_items: int,
    n_ratings: int,
    seed: int,
    *,
    full: bool = False,
    decrypted_once: bool = False,
    key: PrivateKey | None = None,
) -> DeviceCost:
    """Of a device with so many ratings; without a key, one of 1,024 bits is made.

    A device that keeps ciphertexts decrypts them whenever it recommends; `decrypted_once` keeps plain numbers instead.
    """
    draws, rng = Random(seed), np.random.default_rng([seed, STREAM])
    key = key or generate(draw=draws.getrandbits)
    sealing = Encrypted(key.public, key, draws.randrange)
    items, _ = a_users_ratings(n_items, n_ratings, rng)
    user, table = rng.normal(0, 0.1, FACTORS), rng.normal(0, 0.1, (n_items, FACTORS))
    sample = sealing.sealed(table[:SAMPLED_ROWS])
    whole, half = table_bytes(n_items, key), key.public.ciphertext_bytes // 4
    upload = sealing.encode_rows(items, np.resize(sample, (n_ratings, FACTORS)))
    kept, keys = [user] + [table] * decrypted_once, b"".join(each.to_bytes(half, "big") for each in (key.p, key.q))

    def decrypt_and_recommend(k: int) -> Index:
        rows = sealing.opened(sample)
        return best_unrated(rows @ user, items[items < len(rows)], min(k, len(rows)))

    return DeviceCost(
        storage_bytes=stored_bytes(keys, *kept) + (0 if decrypted_once else whole),
        down_bytes=whole,
        up_bytes=whole if full else len(upload),
        recommend=(lambda k: best_unrated(table @ user, items, k)) if decrypted_once else decrypt_and_recommend,
        share=1.0 if decrypted_once else len(sample) / n_items,
        note=(
            f"{sample.size} numbers were encrypted. All ciphertexts have {key.public.ciphertext_bytes} bytes, so the "
            "length of a message is exact without encrypting the others. "
            + (
                "The table is decrypted once and kept."
                if decrypted_once
                else f"Each recommendation decrypts the table, by {ARITHMETIC}'s arithmetic."
            )
        ),
    )


def table_bytes(n_items: int, key: PrivateKey) -> int:
    """The exact length of an encoded table of ciphertexts, without making it: hundreds of megabytes for Ciao."""
    size = key.public.ciphertext_bytes
    others = len(EncryptedTable(columns=FACTORS, ciphertext_bytes=size).SerializeToString())
    payload = n_items * FACTORS * size
    length_bytes = (payload.bit_length() + 6) // 7  # protobuf writes seven bits of the length into a byte
    return others + 1 + length_bytes + payload


def seconds_a_number(
    key: PrivateKey, numbers: int = 20, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """CPU seconds to encrypt, add and decrypt one number, on average."""
    times, public = [clock()], key.public
    ciphertexts = [public.encrypt(number) for number in range(numbers)]
    times.append(clock())
    sums = [public.add(each, each) for each in ciphertexts]
    times.append(clock())
    for each in sums:
        key.decrypt(each)
    times.append(clock())
    return dict(zip(("encrypt", "add", "decrypt"), (np.diff(times) / numbers).tolist(), strict=True))


ENTRY = Entry(
    name="fedmf",
    title="FedMF",
    family="federated",
    make=lambda settings: FedMF(FedMFOptions(**settings)),
    # The spread has the size of the authors' constant; with 0.1 their other constants diverge on ML-100K.
    authors={"factors": 100, "step_size": 0.001, "regularization": 0.0001, "spread": 0.01, "fraction": 1.0},
    grid=tuple(
        {"step_size": step_size, "regularization": regularization}
        for step_size, regularization in (
            (0.001, 0.0001),
            (0.0005, 0.0001),
            (0.00025, 0.0001),
            (0.001, 0.01),
            (0.0005, 0.01),
            (0.0005, 0.1),
        )
    ),
    cost=cost,
    authors_steps=175,
    note="Accuracy is that of plain numbers, and so are the bytes of its rounds; cost has the bytes of ciphertexts.",
)
