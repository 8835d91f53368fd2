"""Writes v1/aggregation.json: three rounds of the catalogue rule, from docs/protocol.md ("The server").

The seed was looked for: with it every mistake in `MISTAKES` shows in the published codes or the mean user within the
three rounds, though most of them change a number by one. The assertions in `vectors` hold it to that.
"""

from tests.vectors.plain import chosen, dot, message, nested, noise, packed, packed_rows, rows_of, sign, signs

CODE_BITS, ITEMS, OPEN = 32, 80, 72
SEED = 3
# Rows of the uploads: none, fewer than 32, 32 and one more, as many as there may be.
SIZES = [[0, 20, 64, 33], [31, 32, 64, 47], [64, 1, 0, 37]]
TARGET = (4 * CODE_BITS + 5) // 10

MISTAKES = [
    "zero becomes +1",
    "zero becomes -1",
    "shift rounds toward zero",
    "shift rounds to the nearest",
    "catalogue term rounds toward zero",
    "catalogue term rounds up",
    "mean rounds toward zero",
    "mean is not rounded to the nearest",
    "weight is the number of rows",
    "division by the weight rounds toward zero",
    "a bit is compared with itself",
    "rows that nobody sent stay",
    "closed rows stay",
    "uploads without rows do not count",
    "only open rows are counted as items",
    "memory does not forget",
    "memory is not kept",
    "target is not rounded",
]


def floor_division(a, b):
    return a // b


def toward_zero(a, b):
    return -(-a // b) if a < 0 else a // b


class Upload:
    """What one device sends, as numbers and as a RowUpdate."""

    def __init__(self, label, size):
        self.indices = chosen(f"{label} rows", range(OPEN), size)
        self.user_code = noise(f"{label} user", CODE_BITS // 8)
        plane_bytes = size * CODE_BITS // 8
        self.nonzero = noise(f"{label} nonzero", plane_bytes)
        self.positive = bytes(a & b for a, b in zip(self.nonzero, noise(f"{label} positive", plane_bytes), strict=True))
        nonzero, positive = (rows_of(plane, CODE_BITS) for plane in (self.nonzero, self.positive))
        rows = ([a if b > 0 else 0 for a, b in zip(p, n, strict=True)] for n, p in zip(nonzero, positive, strict=True))
        self.elements = dict(zip(self.indices, rows, strict=True))

    def row_update(self):
        indices = b"".join(index.to_bytes(4, "little") for index in self.indices)
        planes = nested(3, message((1, self.nonzero), (2, self.positive)))
        return message((1, CODE_BITS), (2, indices)) + planes + message((6, self.user_code))


def catalogue_term(row, cohort, mistake=""):
    """floor( 256 beta C_ik / (m f) ) with C_ik = floor( (d_i.v - d_ik v_k) v_k / w ) + tau v_k, for one row."""
    weight, user_sum = sum(w for w, _ in cohort), user_sum_of(cohort)
    items = OPEN if mistake == "only open rows are counted as items" else ITEMS
    target = 4 * CODE_BITS // 10 if mistake == "target is not rounded" else TARGET
    likeness, term = dot(row, user_sum), []
    for d, v in zip(row, user_sum, strict=True):
        others = likeness * v if mistake == "a bit is compared with itself" else (likeness - d * v) * v
        divided = toward_zero if mistake == "division by the weight rounds toward zero" else floor_division
        against = divided(others, weight) + target * v
        if mistake == "catalogue term rounds up":
            term.append(-(-512 * against // (items * CODE_BITS)))
        elif mistake == "catalogue term rounds toward zero":
            term.append(toward_zero(512 * against, items * CODE_BITS))
        else:
            term.append(512 * against // (items * CODE_BITS))
    return term


def user_sum_of(cohort):
    return [sum(w * b[k] for w, b in cohort) for k in range(CODE_BITS)]


def forgotten(value, mistake):
    """What the memory loses of itself in a round."""
    if mistake == "shift rounds toward zero":
        return toward_zero(value, 16)
    if mistake == "shift rounds to the nearest":
        return (value + 8) >> 4
    if mistake == "memory is not kept":
        return value
    return 0 if mistake == "memory does not forget" else value >> 4


def code_bit(value, old, mistake):
    if value == 0 and mistake.startswith("zero becomes"):
        return 1 if mistake.endswith("+1") else -1
    return sign(value, old)


def cohort_of(uploads, mistake):
    """Weight and user signs of each device."""
    cohort = []
    for upload in uploads:
        rows = len(upload.indices)
        if rows or mistake != "uploads without rows do not count":
            weight = rows if mistake == "weight is the number of rows" else max(rows, 32)
            cohort.append((weight, signs(upload.user_code)))
    return cohort


def mean_user(cohort, mistake):
    """mu_k = floor((512 v_k + w) / (2 w))."""
    weight, sums = sum(w for w, _ in cohort), user_sum_of(cohort)
    if mistake == "mean rounds toward zero":
        return [toward_zero(512 * v + weight, 2 * weight) for v in sums]
    if mistake == "mean is not rounded to the nearest":
        return [256 * v // weight for v in sums]
    return [(512 * v + weight) // (2 * weight) for v in sums]


def one_round(codes, memory, uploads, mistake=""):
    """New codes, memory and mean user, and the sums S, all as rows of numbers."""
    cohort = cohort_of(uploads, mistake)
    new_codes, new_memory, sums = [], [], []
    for i, (row, old) in enumerate(zip(codes, memory, strict=True)):
        sent = [upload.elements[i] for upload in uploads if i in upload.elements]
        term = catalogue_term(row, cohort, mistake)
        total = [256 * sum(elements[k] for elements in sent) - term[k] for k in range(CODE_BITS)]
        moved = [q - forgotten(q, mistake) + s for q, s in zip(old, total, strict=True)]
        if (mistake == "rows that nobody sent stay" and not sent) or (mistake == "closed rows stay" and i >= OPEN):
            moved, new_row = old, row
        else:
            new_row = [code_bit(q, d, mistake) for q, d in zip(moved, row, strict=True)]
        new_codes.append(new_row)
        new_memory.append(moved)
        sums.append(total)
    return new_codes, new_memory, mean_user(cohort, mistake), sums


def first_codes(seed):
    """Open rows are random, closed ones are all the same."""
    shared = noise(f"aggregation {seed} shared code", CODE_BITS // 8)
    return noise(f"aggregation {seed} codes", OPEN * CODE_BITS // 8) + shared * (ITEMS - OPEN)


def uploads_of(seed):
    return [
        [Upload(f"aggregation {seed} round {r} device {u}", size) for u, size in enumerate(sizes)]
        for r, sizes in enumerate(SIZES)
    ]


def played(seed, uploads, mistake=""):
    """The three rounds: what one_round returns for each, and the codes before it."""
    codes, memory, rounds = rows_of(first_codes(seed), CODE_BITS), [[0] * CODE_BITS for _ in range(ITEMS)], []
    for cohort in uploads:
        before, old = codes, memory
        codes, memory, mean, sums = one_round(codes, memory, cohort, mistake)
        rounds.append({"before": before, "old": old, "codes": codes, "memory": memory, "mean": mean, "sums": sums})
    return rounds


def published(rounds):
    """What devices see of them."""
    return [(one["codes"], one["mean"]) for one in rounds]


def unseen_mistakes(seed):
    uploads = uploads_of(seed)
    right = published(played(seed, uploads))
    return [mistake for mistake in MISTAKES if published(played(seed, uploads, mistake)) == right]


def require_traps(uploads, rounds):
    """The hard places, one by one."""
    first = rounds[0]
    kept = [(i, d) for i in range(ITEMS) for q, d in zip(first["memory"][i], first["before"][i], strict=True) if q == 0]
    assert {d for _, d in kept} == {-1, 1}, "in round 1, sums of zero keep an old +1 and an old -1"
    assert any(q < 0 and q % 16 for one in rounds[1:] for row in one["old"] for q in row), ">> of a negative rounds"
    sizes = {len(upload.indices) for cohort in uploads for upload in cohort}
    assert {0, 64} <= sizes
    assert sizes & set(range(1, 32))
    sent = [set().union(*(upload.indices for upload in cohort)) for cohort in uploads]
    assert all(set(range(OPEN)) - rows for rows in sent), "in every round there are open rows that nobody sends"
    for one in rounds:
        assert len({tuple(row) for row in one["codes"][OPEN:]}) == 1, "closed rows stay equal"
    assert first["codes"][OPEN] != first["before"][OPEN], "and move"
    assert any(value < 0 for one in rounds for value in one["mean"])


def vectors():
    uploads = uploads_of(SEED)
    rounds = played(SEED, uploads)
    require_traps(uploads, rounds)
    assert not unseen_mistakes(SEED)
    return {
        "aggregation.json": {
            "code_bits": CODE_BITS,
            "item_count": ITEMS,
            "open_rows": packed([1 if i < OPEN else -1 for i in range(ITEMS)]),
            "codes": first_codes(SEED),
            "rounds": [
                {
                    "uploads": [upload.row_update() for upload in cohort],
                    "codes": packed_rows(one["codes"]),
                    "mean_user": one["mean"],
                    "memory": one["memory"],
                }
                for cohort, one in zip(uploads, rounds, strict=True)
            ],
        }
    }
