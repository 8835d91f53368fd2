"""Writes a device's part of evaluation rounds, from docs/protocol.md: the items that are drawn, ranks, bits."""

import hashlib
from decimal import Decimal, localcontext

from tests.vectors.generate_device import BEST, MIDDLE, fit_case
from tests.vectors.plain import chosen, dot, little, noise, number, rows_of, signs

OTHERS, SHOWN = 49, 10
GROUPS = (0, 5, 20, 100)


def drawn(roster_digest, items, without):
    """The items that a round draws, in their order; all others where there are no more than 49."""
    left = [i for i in range(items) if i not in without] if items < 1000 else None
    if left is not None and len(left) <= OTHERS:
        return left
    found, block = [], 0
    while len(found) < OTHERS:
        digest = hashlib.sha256(b"lightfr evaluation v1\n" + roster_digest + little([block], 4)).digest()
        for at in range(0, 32, 4):
            item = int.from_bytes(digest[at : at + 4], "little") * items // 2**32
            if item not in without and item not in found and len(found) < OTHERS:
                found.append(item)
        block += 1
    return found


def draw_case(name, items, without=()):
    roster_digest = noise(f"evaluation {name}", 32)
    case = {"name": name, "roster_digest": roster_digest, "item_count": items, "without": sorted(without)}
    return {**case, "items": drawn(roster_digest, items, set(without))}


def draw_cases():
    many = chosen("evaluation without", range(120), 60)
    return [
        draw_case("the largest catalogue", 2**32 - 1),
        draw_case("a usual catalogue", 1682, [0, 1, 2, 49, 1681]),
        draw_case("half of the items are left out", 120, many),
        draw_case("just enough items", 60, range(10)),
        draw_case("one item fewer than just enough", 60, range(11)),
        draw_case("50 items, of which one is held out", 50, [17]),
        draw_case("three items", 3, [1]),
    ]


def gains():
    """65536 / log2(rank + 1), rounded, with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        return [round(65536 * Decimal(2).ln() / Decimal(rank + 1).ln()) for rank in range(1, SHOWN + 1)]


def fitted(codes, f, opinions, old, recency):
    """The result of the fit for use."""
    rated, levels = [i for i, _ in opinions], [level for _, level in opinions]
    return fit_case("", codes, f, rated, old, levels=levels, recency=recency, most=30)["result"]


def rank_of(scores, asked):
    """The place of the first item among all; the lower index first among equals."""
    order = sorted(range(len(asked)), key=lambda at: (-scores[at], asked[at]))
    return 1 + order.index(0)


def ranks(case, candidates, opinions, chance):
    f, rows, (held_out, _) = case["code_bits"], rows_of(case["codes"], case["code_bits"]), opinions[-1]
    asked = [held_out, *drawn(case["roster_digest"], len(rows), {i for i, _ in opinions})]
    places, codes = [], {}
    for by, fourths, recency, _ in candidates:
        if by == "codes" and recency not in codes:
            codes[recency] = signs(fitted(case["codes"], f, opinions[:-1], case["old_code"], recency))
        if by == "codes":
            popularity = [[p for first, p in case["prior"] if first <= i][-1] for i in asked]
            added = [(fourths * p * f + 2048) // 4096 for p in popularity]
            scores = [dot(rows[i], codes[recency]) + more for i, more in zip(asked, added, strict=True)]
        elif by == "popularity":
            scores = [-i for i in asked]
        else:
            scores = chance[: len(asked)]
        places.append(rank_of(scores, asked))
    return places


def bits_of(n_opinions, level, places, draw):
    """The whole block `hits`, without noise."""
    width = 1 + 2 * len(CANDIDATES)
    hits = [0] * (2 * len(GROUPS) * width)
    if n_opinions < 2:
        return hits
    group = max(g for g, first in enumerate(GROUPS) if n_opinions - 1 >= first)
    own = [1]
    for place in places:
        shown = place <= SHOWN
        own += [int(shown), int(shown and draw < gains()[place - 1])]
    at = (2 * group + (level < MIDDLE)) * width
    hits[at : at + width] = own
    return hits


# By, fourths of the prior, recency, refine: codes of 8 and 64 bits are not refined.
CANDIDATES = [
    ("codes", 0, "off", False),
    ("codes", 0, "weak", False),
    ("codes", 0, "strong", False),
    ("codes", 8, "off", True),
    ("codes", 32, "strong", True),
    ("codes", 1024, "off", False),
    ("popularity", 0, "off", False),
    ("chance", 0, "off", False),
]


def device_case(name, n, items=150, f=64, newest=BEST, draw=20_000):
    label = f"evaluation {name}"
    rated = sorted(chosen(f"{label} rated", range(items), n), key=lambda i: noise(f"{label} age {i}", 16))
    levels = [[0, 630, MIDDLE, 1890, BEST][number(f"{label} level {i}", 5)] for i in rated[:-1]] + [newest] * (n > 0)
    opinions = list(zip(rated, levels, strict=True))
    prior = [(0, 96), (items // 10, 70), (items // 4, 30), (items // 2, 1)]
    codes, old = noise(f"{label} items", items * f // 8), noise(f"{label} old", f // 8)
    chance = [number(f"{label} chance {at}", 2**32) for at in range(1 + OTHERS)]
    case = {"name": name, "code_bits": f, "item_count": items, "codes": codes, "old_code": old, "prior": prior}
    case |= {"roster_digest": noise(f"{label} roster", 32), "opinions": opinions}
    places = ranks(case, CANDIDATES, opinions, chance) if n > 1 else []
    hits = bits_of(n, newest, places, draw)
    # The device draws its random numbers in this order, and then those of the noise.
    random = little(chance[: 1 + len(drawn(case["roster_digest"], items, set(rated)))], 4) + little([draw], 2)
    return {**case, "random": random if n > 1 else b"", "ranks": places, "hits": hits}


def device_cases():
    cases = [
        device_case("two opinions", 2),
        device_case("five opinions: the group of four", 5, newest=MIDDLE),
        device_case("six opinions, the newest a dislike", 6, newest=0),
        device_case("seven opinions, many ties", 7, f=8, draw=65_535),
        device_case("30 opinions, the newest just a dislike", 30, newest=MIDDLE - 1, draw=0),
        device_case("101 opinions: all others are asked", 101, items=140, newest=1890),
        device_case("one opinion: nothing to say", 1),
        device_case("no opinion", 0),
    ]
    assert sum(sum(case["hits"]) for case in cases) > 30
    return cases


def vectors():
    names = ("by", "prior_fourths", "recency", "refine")
    candidates = [dict(zip(names, candidate, strict=True)) for candidate in CANDIDATES]
    body = {"gains": gains(), "draws": draw_cases(), "candidates": candidates, "devices": device_cases()}
    return {"evaluation.json": body}
