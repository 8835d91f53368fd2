"""Writes what a device computes, from docs/protocol.md: codes, distances, the user fit, gradients, ternary rows."""

from tests.vectors.plain import (
    chosen,
    dot,
    little,
    message,
    nested,
    noise,
    number,
    packed,
    packed_rows,
    rows_of,
    sign,
    signs,
)

STRONG = [
    *(656, 573, 501, 438, 384, 336, 295, 259, 227, 200, 176, 155, 137, 122, 108, 96, 86, 77, 69, 62, 56, 51, 46, 42),
    *(39, 36, 33, 31, 29, 27, 26, 25, 24, 23, 22, 21, 20, 20, 19, 19, 19, 18, 18, 18, *[17] * 8),
]
# What an opinion weighs by age: beyond the list, WEIGHT. Weak recency begins where strong recency is after ten.
RECENCY = {"off": [], "weak": STRONG[10:], "strong": STRONG}
# Levels of opinions are 0 to 2520.
MIDDLE, BEST = 1260, 2520
BETA, WEIGHT, LEAST, PULL = 2, 16, 32, 80


def rated_target(f):
    return (6 * f + 5) // 10


def catalogue_target(f):
    return (4 * f + 5) // 10


def code_cases():
    """Signs and bytes; `other_bit_order` is what a reader that counts from the high bit would write: wrong."""
    cases = []
    documented = [1, -1, 1, 1, -1, -1, 1, -1]
    for values in (documented, [1] + [-1] * 15, [-1] * 23 + [1], signs(noise("codes", 128))):
        backwards = b"".join(packed(values[at : at + 8][::-1]) for at in range(0, len(values), 8))
        cases.append({"signs": values, "code": packed(values), "other_bit_order": backwards})
    return cases


def matrix():
    """The content of codes.bin: five rows of 24 bits."""
    return noise("matrix", 5 * 3)


def number_cases():
    """Numbers in `bytes` fields."""
    indices, mean, gradients = [0, 1, 255, 256, 65536, 2**32 - 2], [-256, -1, 0, 1, 255, 256], [-(2**31), -1, 0, 70000]
    return {
        "uint32": {"numbers": indices, "bytes": little(indices, 4)},
        "int16": {"numbers": mean, "bytes": little(mean, 2, signed=True)},
        "int32": {"numbers": gradients, "bytes": little(gradients, 4, signed=True)},
    }


def codes_file():
    rows = {"file": "codes.bin", "code_bits": 24, "rows": rows_of(matrix(), 24)}
    return {"codes": code_cases(), "matrix": rows, "numbers": number_cases()}


def hamming_case(f, items, k, excluded):
    """Distances, s_i, and the k nearest that are not excluded: a tie goes to the lower index."""
    codes, query = noise(f"hamming {f} items", items * f // 8), noise(f"hamming {f} query", f // 8)
    similarities = [dot(row, signs(query)) for row in rows_of(codes, f)]
    distances = [(f - s) // 2 for s in similarities]
    best = sorted((d, i) for i, d in enumerate(distances) if i not in excluded)[:k]
    bitmap = packed([1 if i in excluded else -1 for i in range((items + 7) // 8 * 8)])
    case = {"code_bits": f, "item_count": items, "codes": codes, "query": query, "k": k, "excluded": bitmap}
    return {**case, "distances": distances, "similarities": similarities, "best": [[i, d] for d, i in best]}


def hamming_cases():
    cases = [
        hamming_case(8, 60, 20, set()),
        hamming_case(8, 60, 60, {0, 7, 8, 31, 59}),
        hamming_case(8, 13, 20, set(range(12))),
        hamming_case(64, 70, 9, {3, 64}),
        hamming_case(128, 33, 33, set()),
        hamming_case(1024, 9, 4, {1}),
    ]
    for case in cases[:2]:
        ranks = [distance for _, distance in case["best"]]
        assert len(set(ranks)) < len(ranks), "there are ties"
    return cases


def gram(rows):
    """G = D'D and c."""
    columns = list(zip(*rows, strict=True))
    return [[dot(a, b) for b in columns] for a in columns], [sum(column) for column in columns]


def gram_case(f, items):
    codes = noise(f"gram {f}", items * f // 8)
    products, sums = gram(rows_of(codes, f))
    return {"code_bits": f, "item_count": items, "codes": codes, "gram": products, "column_sums": sums}


class Fit:
    """P, L and the descent of one device, everything times m. `targets` are t, and -t for dislikes."""

    def __init__(self, rows, rated, weights, targets, mean):
        f, m = len(rows[0]), len(rows)
        near = [w for w, t in zip(weights, targets, strict=True) if t > 0]
        catalogue = BETA * (sum(near) + WEIGHT * max(0, LEAST - len(near)))
        products, sums = gram(rows)
        self.mean_pull = [dot(row, mean) // 256 for row in products]
        weighted = [[w * d for d in rows[i]] for w, i in zip(weights, rated, strict=True)]
        bits = range(f)
        own = [[sum(w[k] * rows[i][j] for w, i in zip(weighted, rated, strict=True)) for j in bits] for k in bits]
        self.quadratic = [[m * own[k][j] + (catalogue + PULL) * products[k][j] for j in bits] for k in bits]
        self.linear = [
            m * sum(t * w[k] for t, w in zip(targets, weighted, strict=True))
            - catalogue * catalogue_target(f) * sums[k]
            + PULL * self.mean_pull[k]
            for k in bits
        ]
        self.zeros = set()

    def sweep(self, code):
        """One pass over the bits, in place; remembers which old bits a zero has kept."""
        for k in range(len(code)):
            g = self.linear[k] - dot(self.quadratic[k], code) + self.quadratic[k][k] * code[k]
            if g == 0:
                self.zeros.add(code[k])
            code[k] = sign(g, code[k])

    def loss(self, code):
        bits = range(len(code))
        pairs = sum(self.quadratic[k][j] * code[k] * code[j] for j in bits for k in range(j))
        return pairs - dot(self.linear, code)

    def descend(self, start, most):
        """What comes of one start: the code after one sweep, at the end, sweeps done and the loss."""
        code, first, done, before = list(start), None, 0, None
        while done < most and code != before:
            before = list(code)
            self.sweep(code)
            done += 1
            first = first or list(code)
        names = {"start": start, "after_one_sweep": first, "code": code}
        return {**{n: packed(c) for n, c in names.items()}, "sweeps": done, "loss": self.loss(code)}


def weights_for_use(levels, recency):
    """By age, and half of it for what is not liked; where nothing is liked, what is in the middle weighs all of it."""
    liked = MIDDLE + 1 if max(levels, default=0) > MIDDLE else MIDDLE
    table, weights = RECENCY[recency], []
    for place, level in enumerate(levels):
        age = len(levels) - 1 - place
        weight = table[age] if age < len(table) else WEIGHT
        weights.append(weight if level >= liked else weight // 2)
    return weights


def fit_case(name, codes, f, rated, old, *, levels=None, mean=None, recency="off", most=10):
    """A whole fit. `rated` is oldest first. In a round, of 10 sweeps, all weigh the same."""
    rows, levels = rows_of(codes, f), levels or [BEST] * len(rated)
    weights = weights_for_use(levels, recency) if most == 30 else [WEIGHT] * len(rated)
    targets = [rated_target(f) if level >= MIDDLE else -rated_target(f) for level in levels]
    fit = Fit(rows, rated, weights, targets, mean or [0] * f)
    from_old = fit.descend(signs(old), most)
    from_linear = fit.descend([sign(v, b) for v, b in zip(fit.linear, signs(old), strict=True)], most)
    wins = from_linear["loss"] < from_old["loss"]
    return {
        "name": name,
        "code_bits": f,
        "item_count": len(rows),
        "codes": codes,
        "mean_user": mean or [],
        "rated_oldest_first": rated,
        "levels": levels,
        "old_code": old,
        "purpose": "round" if most == 10 else "use",
        "recency": recency,
        "max_sweeps": most,
        "weights": weights,
        "targets": targets,
        "mean_pull": fit.mean_pull,
        "linear": fit.linear,
        "quadratic": fit.quadratic if f == 8 else [],
        "from_old_code": from_old,
        "from_linear_signs": from_linear,
        "linear_signs_win": wins,
        "result": (from_linear if wins else from_old)["code"],
        "zeros": sorted(fit.zeros),
    }


def random_fit(seed, f, items, n, **options):
    label = f"fit {seed} {f}"
    mean = [number(f"{label} mean {k}", 513) - 256 for k in range(f)] if options.pop("has_mean", False) else None
    rated = sorted(chosen(f"{label} rated", range(items), n), key=lambda i: noise(f"{label} age {i}", 16))
    kinds, name = options.pop("kinds", [BEST]), options.pop("name")
    levels = [kinds[number(f"{label} level {i}", len(kinds))] for i in rated]
    codes, old = noise(f"{label} items", items * f // 8), noise(f"{label} old", f // 8)
    return fit_case(name, codes, f, rated, old, levels=levels, mean=mean, **options)


def hadamard():
    """Eight rows whose columns are orthogonal: G has nothing beside its diagonal, and c nothing beside its first."""
    return packed_rows([[(-1) ** (i & k).bit_count() for k in range(8)] for i in range(8)])


def fit_cases():
    cases = [
        fit_case("no ratings: zero gradients keep an old +1 and an old -1", hadamard(), 8, [], bytes([0x4D])),
        random_fit(0, 8, 12, 3, name="the smallest code", has_mean=True),
        random_fit(TIED, 8, 3, 0, name="both starts are equally good: the old code wins"),
        random_fit(0, 64, 40, 40, name="every item is rated, no mean"),
        random_fit(OLD_WINS, 64, 60, 17, name="fewer than 32 ratings, the old code wins", has_mean=True),
        random_fit(LINEAR_WINS, 64, 60, 35, name="the signs of the linear term win", has_mean=True),
        random_fit(1, 64, 60, 20, name="for use", has_mean=True, most=30),
        random_fit(
            2, 64, 70, 60, name="for use, newer ratings weigh more, beyond the table", recency="strong", most=30
        ),
        random_fit(3, 128, 40, 25, name="128 bits, recency, mean", has_mean=True, recency="strong", most=30),
        random_fit(4, 64, 80, 60, name="weak recency, beyond its table", recency="weak", most=30),
        *(
            random_fit(seed, 64, 60, 24, name=name, kinds=kinds, recency=recency, has_mean=True, most=30)
            for seed, (name, kinds, recency) in enumerate(OPINIONS, start=5)
        ),
        random_fit(12, 8, 40, 36, name="more dislikes than liked items", kinds=[0, 0, BEST], recency="weak", most=30),
    ]
    assert cases[0].pop("zeros") == [-1, 1]
    assert cases[2]["from_old_code"]["loss"] == cases[2]["from_linear_signs"]["loss"]
    assert cases[2]["from_old_code"]["code"] != cases[2]["from_linear_signs"]["code"]
    assert not cases[4]["linear_signs_win"]
    assert cases[5]["linear_signs_win"]
    for case in cases[1:]:
        del case["zeros"]
    dislikes = [sum(target < 0 for target in case["targets"]) for case in cases]
    assert dislikes[-2] == 24
    assert 18 < dislikes[-1] < 36
    return {"recency_weights": {name: RECENCY[name] for name in ("weak", "strong")}, "cases": cases}


# Name, levels, recency.
OPINIONS = [
    ("opinions of all kinds", [0, 630, 1260, 1890, 2520], "off"),
    ("opinions of all kinds, weak recency", [0, 630, 1260, 1890, 2520], "weak"),
    ("opinions of all kinds, strong recency", [0, 630, 1260, 1890, 2520], "strong"),
    ("levels beside the middle", [1259, 1260, 1261], "strong"),
    ("nothing is liked: what was seen weighs all of it", [0, 1260], "strong"),
    ("only dislikes", [0, 1259], "weak"),
]


# Looked for, so that the cases are what their names say; fit_cases asserts it.
TIED, OLD_WINS, LINEAR_WINS = 0, 2, 0


def row_gradients(rows, b, target):
    """(t - s_i) b_k + d_ik."""
    return [[(target - dot(row, b)) * x + d for x, d in zip(b, row, strict=True)] for row in rows]


def gradient_case(f, n):
    codes, code = noise(f"gradients {f}", n * f // 8), noise(f"gradients {f} user", f // 8)
    gradients = row_gradients(rows_of(codes, f), signs(code), rated_target(f))
    return {"code_bits": f, "rows": codes, "user_code": code, "target": rated_target(f), "gradients": gradients}


def ternary(gradients, f, random):
    """Two planes, from one 16-bit number for each element."""
    numbers = [int.from_bytes(random[at : at + 2], "little") for at in range(0, len(random), 2)]
    kept = [u * f < abs(g) * 65536 for g, u in zip(gradients, numbers, strict=True)]
    nonzero = packed([1 if k else -1 for k in kept])
    return nonzero, packed([1 if k and g > 0 else -1 for k, g in zip(kept, gradients, strict=True)])


def ternary_cases():
    """At the edges of the comparison, then at random."""
    f = 8
    edges = [(0, 0), (1, 8191), (1, 8192), (-1, 8191), (-1, 8192), (8, 65535), (-13, 65535), (7, 57344)]
    cases = [(f, [g for g, _ in edges], little([u for _, u in edges], 2))]
    for f in (8, 64, 128):
        rows = gradient_case(f, 3)["gradients"]
        cases.append((f, [g for row in rows for g in row], noise(f"ternary {f}", 2 * 3 * f)))
    planes = [ternary(gradients, f, random) for f, gradients, random in cases]
    return [
        {"full": f, "gradients": g, "random": random, "nonzero": nonzero, "positive": positive}
        for (f, g, random), (nonzero, positive) in zip(cases, planes, strict=True)
    ]


def update_case():
    """All that a device uploads in mode CLEAR: the open ones among its rated rows, fewer than max_rows of them."""
    f, items, closed = 16, 30, {3, 4, 29}
    codes, code = noise("update items", items * f // 8), noise("update user", f // 8)
    rated = chosen("update rated", range(items), 12)
    sent = [i for i in rated if i not in closed]
    assert len(sent) < len(rated)
    gradients = row_gradients([rows_of(codes, f)[i] for i in sent], signs(code), rated_target(f))
    random = noise("update random", 2 * len(sent) * f)
    planes = ternary([g for row in gradients for g in row], f, random)
    rows = nested(3, message((1, planes[0]), (2, planes[1])))
    ternary_update = message((1, f), (2, little(sent, 4))) + rows + message((6, code))
    exact = nested(4, message((1, little([g for row in gradients for g in row], 4, signed=True))))
    exact_update = message((1, f), (2, little(sent, 4))) + exact + message((6, code))
    return {
        "code_bits": f,
        "item_count": items,
        "max_rows": 12,
        "open_rows": packed([-1 if i in closed else 1 for i in range(items)] + [-1, -1]),
        "codes": codes,
        "user_code": code,
        "rated": rated,
        "random": random,
        "ternary": ternary_update,
        "exact": exact_update,
    }


def vectors():
    return {
        "codes.json": codes_file(),
        "codes.bin": matrix(),
        "hamming.json": hamming_cases(),
        "gram.json": [gram_case(8, 5), gram_case(64, 9), gram_case(16, 300)],
        "user_fit.json": fit_cases(),
        "gradients.json": [gradient_case(8, 4), gradient_case(64, 5), gradient_case(128, 2)],
        "ternary.json": ternary_cases(),
        "row_update.json": update_case(),
    }
