"""The server's rule with a row for each item, as docs/protocol.md states it: slow, and easy to see through."""

import numpy as np


class FullMatrix:
    """D, Q and T with m rows and one more, the row that closed items share. Numbers are Python's."""

    def __init__(self, counts, code_bits, gate, seed):
        rng, m = np.random.default_rng(seed), len(counts)
        self.f, self.gate, self.counts = code_bits, gate, np.array(counts, object)
        self.removed = np.zeros(m, bool)
        self.was_open = self.is_open
        codes = rng.integers(0, 256, (m, code_bits // 8), dtype=np.uint8)
        shared = rng.integers(0, 256, (1, code_bits // 8), dtype=np.uint8)
        self.signs = _signs(np.vstack([codes, shared]))
        self.memory = np.zeros((m + 1, code_bits), object)
        self.trails = np.zeros((m + 1, code_bits), object)

    @property
    def m(self):
        return len(self.counts)

    @property
    def is_open(self):
        return (self.counts >= self.gate).astype(bool) & ~self.removed

    def published(self):
        """D as devices have it: closed items have the shared row."""
        return np.where(self.is_open[:, None], self.signs[:-1], self.signs[-1])

    def round(self, rows, user_sum, weight):
        """`rows` are those of the open items."""
        sums = np.zeros((self.m + 1, self.f), object)
        sums[np.flatnonzero(self.is_open)] = rows
        self.trails = self.trails - self.trails // 16 + 256 * sums
        d, v = self.signs.astype(object), user_sum.astype(object)
        others = ((d @ v)[:, None] - d * v) * v // weight + (4 * self.f + 5) // 10 * v
        self.memory = self.memory - self.memory // 16 + 256 * sums - 512 * others // (self.m * self.f)
        self.signs = np.where(self.memory == 0, self.signs, np.where(self.memory > 0, 1, -1))

    def agg_grad(self, rows, balance):
        """The paper's rule."""
        votes = np.zeros((self.m + 1, self.f), object)
        votes[np.flatnonzero(self.is_open)] = rows
        votes = votes - balance * (self.signs.sum(axis=1, keepdims=True) - self.signs)
        self.signs = np.where(votes == 0, self.signs, np.where(votes > 0, 1, -1))

    def count(self, counts, seed):
        """A pair of gate refreshes that agree."""
        self.counts = np.where(self.removed, 0, counts).astype(object)
        self._open(seed)

    def change(self, old, removed, counts, seed):
        """Another catalogue; -1 is an item that joins."""
        stays = (old >= 0) & ~removed
        # The row of an item that joins or leaves is never looked at again: it starts anew when the item opens.
        places = np.append(np.where(stays, old, self.m), self.m)
        self.signs, self.memory, self.trails = self.signs[places], self.memory[places], self.trails[places]
        self.was_open = stays & self.was_open[old]
        self.removed, self.counts = removed, np.where(removed, 0, counts).astype(object)
        self._open(seed)

    def _open(self, seed):
        fresh = np.flatnonzero(self.is_open & ~self.was_open)
        codes = np.random.default_rng(seed).integers(0, 256, (self.m, self.f // 8), dtype=np.uint8)
        self.signs[fresh], self.memory[fresh], self.trails[fresh] = _signs(codes)[fresh], 0, 0
        self.was_open = self.was_open | self.is_open


def _signs(codes):
    return np.unpackbits(codes, axis=1, bitorder="little").astype(int) * 2 - 1
