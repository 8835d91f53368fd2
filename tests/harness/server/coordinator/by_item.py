"""The model of a coordinator in the clear by item id, as docs/protocol.md states it: slow, and without any index."""

from dataclasses import dataclass

import numpy as np

from lightfr.model.bitmaps import read_bitmap
from lightfr.model.catalogue import Catalogue
from lightfr.v1 import coordinator_pb2 as pb
from tests.harness.server.coordinator.helpers import BITS


@dataclass
class Row:
    """The code of an item, as signs, and the server's memory of it. Numbers are Python's."""

    signs: np.ndarray
    memory: np.ndarray

    def learn(self, told, user_sum, weight, m):
        f, d, v = len(self.signs), self.signs, user_sum
        others = ((d @ v) - d * v) * v // weight + (4 * f + 5) // 10 * v
        self.memory = self.memory - self.memory // 16 + 256 * told - 512 * others // (m * f)
        self.signs = np.where(self.memory == 0, d, np.where(self.memory > 0, 1, -1)).astype(object)


class ByItem:
    """Which items there are, how many devices rate each, and the rows of those that are or were open."""

    def __init__(self, counts, gate, bits, seed):
        """`counts`: by id, most popular first."""
        self.gate, self.bits = gate, bits
        self.counts, self.rows = dict(counts), {}
        rng = np.random.default_rng(seed)
        drawn = rng.integers(0, 256, (len(counts), bits // 8), dtype=np.uint8)
        self.shared = self._fresh(rng.integers(0, 256, bits // 8, dtype=np.uint8))
        self.n_indices = len(counts)
        self._open(list(counts), drawn)

    def _fresh(self, packed):
        signs = np.unpackbits(packed, bitorder="little").astype(int).astype(object) * 2 - 1
        return Row(signs, np.zeros(self.bits, object))

    def _open(self, ids_by_index, drawn):
        for index, item in enumerate(ids_by_index):
            if item in self.opened and item not in self.rows:
                self.rows[item] = self._fresh(drawn[index])

    @property
    def opened(self):
        return {item for item, count in self.counts.items() if count >= self.gate}

    def round(self, bodies, ids_by_index):
        """What devices uploaded, with the ids that the indices stand for."""
        told, user_sum, weight = {}, np.zeros(self.bits, object), 0
        for body in bodies:
            update = pb.UploadRequest.FromString(body).row_update
            items = [ids_by_index[index] for index in np.frombuffer(update.item_indices, "<u4")]
            planes = (update.ternary.nonzero, update.ternary.positive)
            nonzero, positive = (
                np.unpackbits(np.frombuffer(plane, np.uint8), bitorder="little")[: len(items) * self.bits]
                .reshape(len(items), self.bits).astype(int) for plane in planes
            )  # fmt: skip
            for item, values in zip(items, nonzero * (2 * positive - 1), strict=True):
                told[item] = told.get(item, 0) + values.astype(object)
            bits = np.unpackbits(np.frombuffer(update.user_code, np.uint8), bitorder="little").astype(int)
            user_sum = user_sum + max(len(items), 32) * (2 * bits - 1).astype(object)
            weight += max(len(items), 32)
        for item, row in [*self.rows.items(), (None, self.shared)]:
            row.learn(told.get(item, 0), user_sum, weight, self.n_indices)

    def change(self, counts, ids_by_index, seed):
        """Another list; its ids by index are as published, and what they may be is checked elsewhere."""
        for item in set(self.counts) - set(counts):
            self.rows.pop(item, None)
        self.counts, self.n_indices = dict(counts), len(ids_by_index)
        drawn = np.random.default_rng(seed).integers(0, 256, (len(ids_by_index), self.bits // 8), dtype=np.uint8)
        self._open(ids_by_index, drawn)

    def code_of(self, item):
        """Packed, as devices have it."""
        row = self.rows[item] if item in self.opened else self.shared
        return np.packbits(row.signs.astype(int) > 0, bitorder="little").tobytes()


def ids_of(manifest, artifacts):
    """The ids by index, those of items that left among them."""
    with Catalogue.open([artifacts / part.sha256.hex() for part in manifest.catalogue_parts]) as catalogue:
        assert catalogue.n_items == manifest.model.item_count
        return [catalogue.id_of(index) for index in range(catalogue.n_items)]


def bits_of(manifest, artifacts, name, default):
    n_items = manifest.model.item_count
    if not manifest.HasField(name):
        return np.full(n_items, default)
    packed = read_bitmap(artifacts / getattr(manifest, name).sha256.hex(), n_items)
    return np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")[:n_items].astype(bool)


def require_published(manifest, artifacts, expected):
    """The files of a version say of each id what the oracle says."""
    ids = ids_of(manifest, artifacts)
    is_open, removed = (
        bits_of(manifest, artifacts, name, default) for name, default in (("open_rows", True), ("removed_items", False))
    )
    assert len(set(ids)) == len(ids)
    assert {item for item, left in zip(ids, removed, strict=True) if not left} == set(expected.counts)
    opened = [item for item, opens in zip(ids, is_open, strict=True) if opens]
    assert set(opened) == expected.opened
    codes = b"".join(map(expected.code_of, opened)) + expected.code_of(None)
    assert (artifacts / manifest.codes.sha256.hex()).read_bytes() == codes


def tsv(counts):
    """A list of items as a file has it."""
    return "".join(f"{item}\t{count}\n" for item, count in counts.items()).encode()


def made_up(rng, open_indices):
    """A legal RowUpdate with some of the open items."""
    n_rows = int(rng.integers(0, min(12, len(open_indices)) + 1))
    values = rng.integers(-1, 2, (n_rows, BITS))
    message = pb.UploadRequest().row_update
    message.code_bits = BITS
    message.item_indices = np.sort(rng.permutation(open_indices)[:n_rows]).astype("<u4").tobytes()
    message.user_code = rng.bytes(BITS // 8)
    message.ternary.nonzero = np.packbits(values != 0, bitorder="little").tobytes()
    message.ternary.positive = np.packbits(values > 0, bitorder="little").tobytes()
    return message
