"""Writes the server's rules, from docs/protocol.md: the catalogue term, and the paper's objective."""

from tests.vectors.generate_device import catalogue_target
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

LARGEST = 2**26
LEVELS = 2520


def cohort_sums(users, f):
    """v and w of (weight, signs) pairs."""
    return [sum(w * b[k] for w, b in users) for k in range(f)], sum(w for w, _ in users)


def term(row, user_sum, weight, items):
    """floor( 256 beta C_ik / (m f) ) with C_ik = floor( (d_i.v - d_ik v_k) v_k / w ) + tau v_k; 0 unless w > 0."""
    if weight <= 0:
        return [0] * len(row)
    f, tau, likeness = len(row), catalogue_target(len(row)), dot(row, user_sum)
    against = [(likeness - d * v) * v // weight + tau * v for d, v in zip(row, user_sum, strict=True)]
    return [512 * a // (items * f) for a in against]


def clamped(value, most):
    return max(-most, min(most, value))


def mean_of(user_sum, weight, before):
    if weight <= 0:
        return before
    return [clamped((512 * v + weight) // (2 * weight), 256) for v in user_sum]


def moved(row, memory, sums):
    """Q and d of one row."""
    after = [q - (q >> 4) + s for q, s in zip(memory, sums, strict=True)]
    return after, [sign(q, d) for q, d in zip(after, row, strict=True)]


def term_case(name, f, codes, row_sums, cohort, *, exact=False, uploads=(), mean_before=None):
    """One round from an empty memory, so that the memory after it is S."""
    rows, (user_sum, weight) = rows_of(codes, f), cohort
    before = mean_before or [0] * f
    terms = [term(row, user_sum, weight, len(rows)) for row in rows]
    own = [[256 * r // f if exact else 256 * r for r in sent] for sent in row_sums]
    sums = [[clamped(a - b, LARGEST) for a, b in zip(*pair, strict=True)] for pair in zip(own, terms, strict=True)]
    after = [moved(row, [0] * f, s)[1] for row, s in zip(rows, sums, strict=True)]
    return {
        "name": name,
        "code_bits": f,
        "item_count": len(rows),
        "codes": codes,
        "mean_user_before": before,
        "upload_kind": "UPLOAD_KIND_EXACT" if exact else "UPLOAD_KIND_TERNARY",
        "uploads": list(uploads),
        "row_sums": row_sums,
        "user_sum": user_sum,
        "weight": weight,
        "catalogue_term": terms,
        "sums": sums,
        "codes_after": packed_rows(after),
        "mean_user": mean_of(user_sum, weight, before),
    }


def exact_update(f, indices, gradients, user=b""):
    values = little([g for row in gradients for g in row], 4, signed=True)
    return message((1, f), (2, little(indices, 4))) + nested(4, message((1, values))) + message((6, user))


def summed(items, f, uploads):
    """R of (indices, rows) pairs."""
    totals = [[0] * f for _ in range(items)]
    for indices, rows in uploads:
        for i, row in zip(indices, rows, strict=True):
            totals[i] = [a + b for a, b in zip(totals[i], row, strict=True)]
    return totals


def exact_case():
    """Three devices with exact gradients, whose sums are no multiples of f."""
    f, items = 24, 7
    uploads, users = [], []
    for u, n in enumerate((2, 5, 0)):
        indices = chosen(f"exact {u}", range(items), n)
        rows = [[number(f"exact {u} {i} {k}", 61) - 30 for k in range(f)] for i in indices]
        user = noise(f"exact {u} user", f // 8)
        users.append((max(n, 32), signs(user)))
        uploads.append((indices, rows, exact_update(f, indices, rows, user)))
    row_sums = summed(items, f, [(i, r) for i, r, _ in uploads])
    assert any(r < 0 and 256 * r % f for row in row_sums for r in row)
    return term_case(
        "exact gradients, sums rounded down",
        f,
        noise("exact items", items * f // 8),
        row_sums,
        cohort_sums(users, f),
        exact=True,
        uploads=[u for *_, u in uploads],
    )


def worked_case():
    """Two rows, each the other turned over, and one device: small enough to follow by hand."""
    b = signs(b"\x4d")
    upload = exact_update(8, [0], [[-2 * x for x in b]], b"\x4d")
    rows = summed(2, 8, [([0], [[-2 * x for x in b]])])
    case = term_case("worked by hand", 8, b"\x4d\xb2", rows, cohort_sums([(32, b)], 8), exact=True, uploads=[upload])
    assert case["sums"] == [[-10304 * x for x in b], [4096 * x for x in b]]
    assert case["codes_after"] == b"\xb2\x4d"
    return case


def ternary_sums(label, items, f, most):
    return [[number(f"{label} {i} {k}", 2 * most + 1) - most for k in range(f)] for i in range(items)]


def clamp_case():
    """Sums beyond 2^26 on both sides, and one just inside."""
    f, items = 8, 3
    rows = ternary_sums("clamp", items, f, 3)
    rows[0][:4] = [2**18 + 60, -(2**18) - 60, 2**18 - 60, 60 - 2**18]
    cohort = cohort_sums([(32, signs(noise("clamp user", 1)))], f)
    case = term_case("sums are kept within 2^26", f, noise("clamp items", items), rows, cohort)
    assert case["sums"][0][0] == LARGEST == -case["sums"][0][1] > case["sums"][0][2]
    return case


def noisy_mean_case():
    """A user sum beyond the weight, which noise can make: the mean stays within 256."""
    f, items = 8, 4
    user_sum, weight = cohort_sums([(32, signs(noise("noisy user", 1)))], f)
    user_sum = [v + 13 * (-1) ** k for k, v in enumerate(user_sum)]
    case = term_case(
        "mean user kept within 256", f, noise("noisy items", items), ternary_sums("noisy", items, f, 1),
        (user_sum, weight),
    )  # fmt: skip
    assert {256, -256} <= set(case["mean_user"])
    assert any(abs(v) > weight for v in user_sum)
    return case


def term_cases():
    f, items = 24, 11
    users = [(32, signs(noise("term user 0", 3))), (47, signs(noise("term user 1", 3)))]
    random = term_case(
        "sums as secure aggregation gives them",
        f,
        noise("term items", items * 3),
        ternary_sums("term", items, f, 2),
        cohort_sums(users, f),
    )
    assert any(value < 0 for row in random["catalogue_term"] for value in row)
    mean = [number(f"idle {k}", 513) - 256 for k in range(8)]
    idle = term_case(
        "nobody uploaded: nothing moves", 8, noise("idle items", 3), summed(3, 8, []), cohort_sums([], 8),
        mean_before=mean,
    )  # fmt: skip
    lying = term_case(
        "a weight below 1 has no catalogue term", 8, noise("lying items", 3), ternary_sums("lying", 3, 8, 2),
        ([number(f"lying {k}", 65) - 32 for k in range(8)], -5), mean_before=mean,
    )  # fmt: skip
    return [worked_case(), random, exact_case(), clamp_case(), noisy_mean_case(), idle, lying]


# ---- the paper's objective ----


def paper_targets(f, levels):
    return [2 * f * level - LEVELS * f for level in levels]


def paper_fit(rows, targets, start, balance, most):
    b = list(start)
    for _ in range(most):
        before = list(b)
        for k in range(len(b)):
            pulls = ((t - LEVELS * (dot(d, b) - d[k] * b[k])) * d[k] for d, t in zip(rows, targets, strict=True))
            b[k] = sign(sum(pulls) - balance * (sum(b) - b[k]), b[k])
        if b == before:
            break
    return b


def paper_gradients(rows, targets, b):
    return [
        [(t - LEVELS * dot(d, b)) * x + LEVELS * y for x, y in zip(b, d, strict=True)]
        for d, t in zip(rows, targets, strict=True)
    ]


def balanced(row, votes, balance):
    """sign(vote - balance times the row's other bits)."""
    return [sign(v - balance * (sum(row) - d), d) for v, d in zip(votes, row, strict=True)]


def code_update(f, indices, rows):
    return message((1, f), (2, little(indices, 4))) + nested(5, message((1, packed_rows(rows))))


def paper_device(label, codes, f, n, balance):
    """One device: its fits, and what it uploads of either kind."""
    matrix = rows_of(codes, f)
    rated = chosen(f"{label} rated", range(len(matrix)), n)
    levels = [number(f"{label} level {i}", LEVELS + 1) for i in rated]
    old, rows, targets = noise(f"{label} old", f // 8), [matrix[i] for i in rated], paper_targets(f, levels)
    fitted = paper_fit(rows, targets, signs(old), balance, 10)
    gradients = paper_gradients(rows, targets, fitted)
    own = [balanced(row, votes, balance) for row, votes in zip(rows, gradients, strict=True)]
    return {
        "rated": rated,
        "levels": levels,
        "old_code": old,
        "fitted_for_round": packed(fitted),
        "fitted_for_use": packed(paper_fit(rows, targets, signs(old), 0, 30)),
        "gradients": gradients,
        "exact": exact_update(f, rated, gradients),
        "codes": code_update(f, rated, own),
    }


def paper_case(f, items, balance):
    label = f"paper {f} {balance}"
    codes = noise(f"{label} items", items * f // 8)
    devices = [paper_device(f"{label} {u}", codes, f, n, balance) for u, n in enumerate((4, 0, 9))]
    matrix = rows_of(codes, f)
    votes = summed(items, f, [(d["rated"], d["gradients"]) for d in devices])
    heard = [(d["rated"], rows_of(d["codes"][-len(d["rated"]) * f // 8 :], f) if d["rated"] else []) for d in devices]
    by_codes = summed(items, f, heard)
    return {
        "code_bits": f,
        "item_count": items,
        "balance": balance,
        "codes": codes,
        "devices": devices,
        "codes_after_agg_grad": packed_rows([balanced(r, v, balance) for r, v in zip(matrix, votes, strict=True)]),
        "codes_after_agg_para": packed_rows([balanced(r, v, 0) for r, v in zip(matrix, by_codes, strict=True)]),
    }


def paper_file():
    """lambda is given as a fraction; none of the products ends in a half."""
    fractions = [(8, 1, 1000), (64, 1, 7), (128, 3, 100)]
    balances = [
        {"code_bits": f, "lambda": [a, b], "balance": (2 * 4 * f * f * LEVELS * a + b) // (2 * b)}
        for f, a, b in fractions
    ]
    return {"balances": balances, "rounds": [paper_case(8, 12, 0), paper_case(16, 12, 5160), paper_case(64, 10, 90000)]}


def vectors():
    return {
        "catalogue_term.json": term_cases(),
        "paper.json": paper_file(),
    }
