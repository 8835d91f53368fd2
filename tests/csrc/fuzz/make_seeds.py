"""Writes the cases of vectors/v1 as inputs of the fuzz targets: python3 make_seeds.py VECTORS FOLDER

Each file is FOLDER/TARGET/TARGET-NAME. Needs nothing but Python. The order of the numbers is that in which a target
reads them.
"""

import json
import sys
from pathlib import Path


class Seed:
    """The bytes of one input, as input.c reads them. No pointer is missing."""

    def __init__(self):
        self.bytes = bytearray([0])

    def number(self, value, most):
        assert 0 <= value <= most
        self.bytes += value.to_bytes((most.bit_length() + 7) // 8, "little")
        return self

    def few(self, value, most):
        return self.number(0, 15).number(value, most)

    def length(self, code_bits):
        return self.number(code_bits // 8 - 1 + (96 if code_bits > 256 else 0), 255)

    def content(self, octets):
        self.bytes += bytes.fromhex(octets) if isinstance(octets, str) else octets
        return self

    def numbers(self, values, size):
        return self.content(b"".join(value.to_bytes(size, "little", signed=value < 0) for value in values))


def code_seeds(load):
    for case in load("codes")["codes"]:
        signs = bytes(sign & 1 if sign == 1 else 0 for sign in case["signs"])
        if len(signs) <= 300:
            yield "codes", Seed().number(1, 15).few(len(signs), 300).number(0, 7).content(signs)
    for case in load("hamming"):
        rows = min(case["item_count"], 40)
        seed = Seed().number(7, 15).length(case["code_bits"]).number(rows, 40).number(rows, 60)
        seed.content(case["codes"][: rows * case["code_bits"] // 4])
        yield "codes", seed.numbers([row + 40 * rows + 1 for row in range(rows)], 4)


PRIOR = bytes([9, 0, 20, 3, 40, 1, 63, 7])  # four steps: how long, and how far they fall


def search_seeds(load):
    for case in load("hamming"):
        n, excluded = case["item_count"], case["excluded"]
        if n > 600:
            continue
        for prior in (False, True):
            for target, n_queries in (("search", 0), ("batch", 1), ("batch", 66)):
                seed = Seed().length(case["code_bits"]).few(n, 600)
                seed.few(n_queries, 70 if target == "batch" else 0)
                seed.number(4, 255).number(min(case["k"], 255), 255).number(0 if prior else 1, 1)
                if prior:
                    seed.number(4, 66).number(255, 255).number(0, 3).content(PRIOR)
                seed.content(case["query"] * n_queries).content(case["codes"])
                if target == "batch":
                    yield target, seed.content(excluded * n_queries)
                else:
                    yield target, seed.content(case["query"]).number(1, 1).content(excluded)


def open_seeds(load):
    known = load("bitmaps")
    n, bitmap, items = known["item_count"], known["bitmap"], known["items"]
    yield (
        "open",
        Seed()
        .few(7, 8)
        .few(n, 2100)
        .number(20, 20)
        .content(bitmap)
        .numbers([item + n * 64 + 1 for item in range(20)], 4),
    )
    for name, most_queries in (("search", 0), ("batch", 70)):
        seed = Seed().length(64).few(n, 600).few(2 if most_queries else 0, most_queries)
        seed.number(2, 255).number(5, 255).number(1, 1).content(bitmap)
        yield name, seed.content(bytes(range(8 * (len(items) + 3))))
    matrix = load("aggregation")
    yield "open", Seed().few(3, 8).few(matrix["item_count"], 2100).number(0, 20).content(matrix["open_rows"])


def factor(seed, value):
    """A factor between -100 and 100."""
    return seed.number(1, 7).number(value + 100, 200)


def fit_seeds(load):
    for case in load("user_fit")["cases"]:
        f, rated = case["code_bits"], case["rated_oldest_first"]
        if f > 80 or f * f * len(rated) > 40000:
            continue
        rows = b"".join(bytes.fromhex(case["codes"])[item * f // 8 : (item + 1) * f // 8] for item in rated)
        seed = Seed().number(1 + 8 + 32, 255).number(1, 63).few(f // 8 - 1, 9).few(len(rated), 300)
        seed.numbers(case["targets"], 4).content(rows)
        for value in (1, 1, 0, -1):
            factor(seed, value)
        yield "fit", seed.numbers(case["weights"], 2)
        sweep = Seed().number(1, 63).few(min(f // 8 - 1, 5), 5).number(1, 255).number(1, 20).number(9, 21)
        yield "sweep", sweep.number(0, 7).content(bytes(9)).content(rows).content(case["old_code"])


def refine_seeds(load):
    for case in load("user_fit")["cases"]:
        f, n = case["code_bits"], min(case["item_count"], 30)
        if f > 72:
            continue
        seed = Seed().few(f // 8 - 1, 8).few(n, 30).number(5, 12).number(1, 31).number(1, 20).number(1, 255)
        seed.number(1, 31).number(2, 4)
        for value, least, most in ((14773, 1, 1 << 20), (56056, 1, 65535), (76619, 65537, 131072)):
            seed.number(1, 31).number(value - least, most - least)
        yield "refine", seed.content(case["codes"][: n * f // 4]).content(case["codes"][: 5 * f // 4])


def upload_seeds(load):
    for case in load("gradients"):
        f, n = case["code_bits"], min(len(case["gradients"]), 12)
        seed = Seed().number(0, 3).length(f).number(n, 12).number(1, 15).number(0, 1 << 19)
        yield "uploads", seed.content(case["rows"][: n * f // 4]).content(case["user_code"]).numbers([1021] * n, 4)
    for case in load("ternary"):
        n = min(len(case["gradients"]), 296)
        seed = Seed().number(1, 3).few(n, 300).number(1, 15).number(case["full"] - 1, 1 << 24)
        yield "uploads", seed.numbers(case["gradients"][:n], 4).content(case["random"][: 4 * n])
        rows = min(n // 8, 12)
        seed = Seed().number(2, 3).length(8).number(rows, 12).number(15, 15).number(0, 255)
        seed.numbers([15 * row + row % 15 + 15 * 64 + 1 for row in range(rows)], 4)
        yield "uploads", seed.content(case["nonzero"][: 2 * rows]).content(case["positive"][: 2 * rows])
    for case in load("catalogue_term"):
        n = min(case["item_count"] * case["code_bits"], 296)
        sums = [value for row in case["sums"] for value in (row if isinstance(row, list) else [row])][:n]
        seed = Seed().number(3, 3).few(n, 300).number(4, 35).numbers(sums, 4).content(bytes(4 * n))
        yield "uploads", seed.content(case["codes"][: n // 4])


def mask_seeds(load):
    known, at = load("secagg_mask"), 0
    for (_, n, bits), values, mask in zip(known["blocks"], known["vector"], known["mask"], strict=True):
        size, packed = 2 if bits <= 16 else 4, (n * bits + 7) // 8
        cut = [value % 2 ** (8 * size) for value in values]
        if n <= 200:
            seed = Seed().number(size // 4, 7).few(n, 200).number(0, 255).numbers(cut, size)
            yield "masks", seed.numbers(mask, size)
            seed = Seed().number(4 + size // 4, 7).few(n, 200).number(bits, 34)
            yield "masks", seed.content(known["packed_plus"][2 * at : 2 * (at + packed)]).numbers(cut, size)
        at += packed
    (_, n, bits), devices = load("gate")["blocks"][0], load("gate")["packed"]
    yield "masks", Seed().number(4, 7).few(n, 200).number(bits, 34).content(devices[0])
    yield "masks", Seed().number(5, 7).few(0, 200).number(32, 34)  # no values, and NULL for both buffers
    for case in load("ternary_noise"):
        n = min(len(case["numbers"]), 200)
        seed = Seed().number(2, 7).few(n, 200).number(case["threshold"], 33768).content(bytes(2 * n))
        yield "masks", seed.content(case["random"][: 4 * n])


KINDS = (code_seeds, search_seeds, open_seeds, fit_seeds, refine_seeds, upload_seeds, mask_seeds)


def main():
    vectors, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for kind in KINDS:
        seeds = kind(lambda name: json.loads((vectors / f"{name}.json").read_text()))
        for number, (target, seed) in enumerate(seeds):
            (folder / target).mkdir(parents=True, exist_ok=True)
            (folder / target / f"{target}-{kind.__name__}-{number}").write_bytes(seed.bytes)


if __name__ == "__main__":
    main()
