"""Writes what devices put into the vectors of secure aggregation, from docs/secagg.md: blocks, numbers, noise, gate."""

from decimal import Decimal, localcontext
from math import isqrt

from tests.vectors.plain import chosen, little, message, nested, noise, number, packed, rows_of, signs


def bits_for(most):
    """ceil(log2(most + 1)), in integers."""
    bits = 0
    while 2**bits < most + 1:
        bits += 1
    return bits


def room(devices, thousandths):
    """ceil( floor( sqrt( n (10 s)^2 ) ) / 1000 )."""
    return -(-isqrt(devices * (10 * thousandths) ** 2) // 1000)


def row_variance(f):
    """V of the ternary noise of rows; that of counts is 8."""
    return max(12, f // 8)


def threshold(devices, variance):
    """T of ternary noise."""
    return min(21845, 32768 * variance // devices)


def sums_level(devices):
    """Thousandths of the noise of user_sum in mode SECAGG."""
    return isqrt(16_000_000 * devices)


def weight_level(devices):
    """That of weight."""
    return isqrt(1_000_000 * devices)


def ternary_bits(devices, variance):
    return bits_for(2 * (devices + min(devices, isqrt(128 * variance))))


def training_blocks(open_rows, f, devices, levels=None):
    if levels:
        largest = devices * ((6 * f + 5) // 10 + f)
        row_bits = bits_for(2 * (largest + room(devices, levels[0])))
        sum_bits = bits_for(2 * (devices + room(devices, levels[1])))
        return [["rows", open_rows * f, row_bits], ["user_sum", f, sum_bits]]
    sum_bits = bits_for(2 * (64 * devices + room(devices, sums_level(devices))))
    row_bits = ternary_bits(devices, row_variance(f))
    return [["rows", open_rows * f, row_bits], ["user_sum", f, sum_bits], ["weight", 1, sum_bits]]


def count_bits(devices, levels, variance):
    return bits_for(2 * (devices + room(devices, levels[2]))) if levels else ternary_bits(devices, variance)


def gate_blocks(items, devices, levels=None):
    return [["counts", items, count_bits(devices, levels, 8)]]


def evaluation_blocks(candidates, devices, levels=None):
    return [["hits", 8 * (1 + 2 * candidates), count_bits(devices, levels, 128)]]


def packed_bytes(blocks):
    return sum((count * bits + 7) // 8 for _, count, bits in blocks)


def block_cases():
    cases = []
    sizes = [(0, 8, 2), (72, 32, 6), (2000, 64, 512), (1, 1024, 8192), (7, 8, 255), (7, 8, 256)]
    # Devices for whom the noise of longer codes takes one bit more, and with one device less does not.
    sizes += [(7, 64, 448), (7, 256, 447), (7, 256, 448), (7, 1024, 383), (7, 1024, 384)]
    for open_rows, f, devices in sizes:
        for levels in (None, [500, 500, 500], [2000, 1_000_000, 2000]):
            blocks = training_blocks(open_rows, f, devices, levels)
            case = {"kind": "training", "open_rows": open_rows, "code_bits": f, "devices": devices, "noise": levels}
            cases.append({**case, "blocks": blocks, "bytes": packed_bytes(blocks)})
    gates = [(1, 2, None), (80, 6, None), (1682, 511, None), (1682, 512, None), (9, 8192, None)]
    for items, devices, levels in (*gates, (80, 6, [500, 500, 1500]), (9, 8192, [500, 500, 1_000_000])):
        blocks = gate_blocks(items, devices, levels)
        case = {"kind": "gate", "item_count": items, "devices": devices, "noise": levels}
        cases.append({**case, "blocks": blocks, "bytes": packed_bytes(blocks)})
    evaluations = [
        (0, 2, None),
        (31, 422, None),
        (31, 421, None),
        (31, 512, None),
        (23, 8192, None),
        (31, 300, [500, 500, 1500]),
    ]
    for candidates, devices, levels in evaluations:
        blocks = evaluation_blocks(candidates, devices, levels)
        case = {"kind": "evaluation", "candidates": candidates, "devices": devices, "noise": levels}
        cases.append({**case, "blocks": blocks, "bytes": packed_bytes(blocks)})
    return cases


def noise_table(thousandths):
    """floor(2^128 P(X <= x)) for x from -R to R - 1, with a hundred digits and every weight by itself."""
    reach = -(-12 * thousandths // 1000)
    with localcontext() as context:
        context.prec = 100
        spread = Decimal(2) * (Decimal(thousandths) / 1000) ** 2
        weights = [(-Decimal(x * x) / spread).exp() for x in range(-reach, reach + 1)]
        total, before, table = sum(weights), Decimal(0), []
        for weight in weights[:-1]:
            before += weight
            table.append(int(before * 2**128 / total))
    return reach, table


def drawn(random, thousandths):
    """Noise of 16 random bytes a number."""
    reach, table = noise_table(thousandths)
    numbers = [int.from_bytes(random[at : at + 16], "little") for at in range(0, len(random), 16)]
    return [-reach + sum(entry <= u for entry in table) for u in numbers]


def noise_case(thousandths):
    """On both sides of some entries, at the ends, and at random."""
    reach, table = noise_table(thousandths)
    edges = [0, 2**128 - 1, 2**127, 2**120, 3 * 2**126]
    edges += [entry + step for entry in table[:: max(1, len(table) // 7)] for step in (-1, 0) if entry + step >= 0]
    random = little(edges, 16) + noise(f"noise {thousandths}", 16 * 20)
    case = {"thousandths": thousandths, "largest": reach, "table": little(table, 16) if len(table) < 60 else b""}
    return {**case, "random": random, "numbers": drawn(random, thousandths)}


def noise_cases():
    cases = [noise_case(500), noise_case(2000), noise_case(12345)]
    documented = dict(zip([2**120, 10**38, 2**127, 3 * 2**126], [-5, -1, 0, 1], strict=True))
    assert {u: drawn(little([u], 16), 2000)[0] for u in documented} == documented
    return cases


def ternary_drawn(random, devices, variance):
    """Ternary noise of 2 random bytes a number."""
    t = threshold(devices, variance)
    numbers = [int.from_bytes(random[at : at + 2], "little") for at in range(0, len(random), 2)]
    return [int(u < t) - int(u >= 65536 - t) for u in numbers]


def ternary_noise_case(devices, variance):
    """On both sides of the thresholds, at the ends, and at random."""
    t = threshold(devices, variance)
    edges = [0, t - 1, t, 65535 - t, 65536 - t, 65535]
    random = little(edges, 2) + noise(f"ternary noise {devices}", 2 * 200)
    numbers = ternary_drawn(random, devices, variance)
    assert numbers[:6] == [1, 1, 0, 0, -1, -1]
    return {"devices": devices, "variance": variance, "threshold": t, "random": random, "numbers": numbers}


def ternary_noise_cases():
    """Of counts and rows up to 64 bits, and of rows of 128, 256 and 1,024."""
    cases = [(2, 8), (15, 8), (512, 8), (8192, 8)]
    cases += [(512, row_variance(128)), (513, row_variance(256)), (191, row_variance(1024)), (193, row_variance(1024))]
    return [ternary_noise_case(*case) for case in cases]


def low_bits(values, bits):
    number = sum((value % 2**bits) << (i * bits) for i, value in enumerate(values))
    return number.to_bytes((len(values) * bits + 7) // 8, "little")


def packed_vector(vector, blocks):
    return b"".join(low_bits(values, bits) for values, (_, _, bits) in zip(vector, blocks, strict=True))


F, ITEMS, CLOSED, DEVICES = 16, 20, {0, 3, 19}, 5
# Of mode SECAGG_DP, as much as five devices of 16 bits insist on.
NOISE = [30_000, 10_000, 2000]


OPEN = [i for i in range(ITEMS) if i not in CLOSED]


def spread(sent, rows):
    """The rows of all open items in one list."""
    own = dict(zip(sent, rows, strict=True))
    return [x for i in OPEN for x in own.get(i, [0] * F)]


def ternary_update(n):
    sent = chosen(f"contribution {n}", OPEN, n)
    nonzero = noise(f"contribution {n} nonzero", n * F // 8)
    positive = bytes(a & b for a, b in zip(nonzero, noise(f"contribution {n} positive", len(nonzero)), strict=True))
    planes = nested(3, message((1, nonzero), (2, positive)))
    signed = zip(rows_of(nonzero, F), rows_of(positive, F), strict=True)
    rows = [[p if some > 0 else 0 for some, p in zip(*pair, strict=True)] for pair in signed]
    return sent, rows, planes


def exact_update(n):
    """Gradients of -24 to 24, in units of 1 / f."""
    sent = chosen(f"contribution {n}", OPEN, n)
    rows = [[number(f"contribution {n} {i} {k}", 49) - 24 for k in range(F)] for i in sent]
    return sent, rows, nested(4, message((1, little([x for row in rows for x in row], 4, signed=True))))


def clipped(rows):
    """Multiplied by 8 f / r, toward zero, when their squares sum up to more than (8 f)^2; r is the root, rounded up."""
    squares = sum(x * x for row in rows for x in row)
    if squares <= (8 * F) ** 2:
        return rows
    r = isqrt(squares - 1) + 1
    return [[abs(x) * 8 * F // r * (1 if x > 0 else -1) for x in row] for row in rows]


def contribution_case(name, n, levels):
    sent, rows, planes = exact_update(n) if levels else ternary_update(n)
    user, weight = noise(f"contribution {n} user", F // 8), 1 if levels else max(n, 32)
    vector = [spread(sent, clipped(rows) if levels else rows), [weight * x for x in signs(user)]]
    if not levels:
        vector.append([weight])
    sums = [levels[1]] if levels else [sums_level(DEVICES), weight_level(DEVICES)]
    random = noise(f"contribution noise {n}", (16 if levels else 2) * len(vector[0]))
    added = [drawn(random, levels[0]) if levels else ternary_drawn(random, DEVICES, row_variance(F))]
    for level, values in zip(sums, vector[1:], strict=True):
        draw = noise(f"contribution noise {n} {level}", 16 * len(values))
        added.append(drawn(draw, level))
        random += draw
    noisy = [[v + x for v, x in zip(*pair, strict=True)] for pair in zip(vector, added, strict=True)]
    blocks = training_blocks(len(OPEN), F, DEVICES, levels)
    return {
        "name": name,
        "noise": levels,
        "row_update": message((1, F), (2, little(sent, 4))) + planes + message((6, user)),
        "random": random,
        "blocks": blocks,
        "before_noise": vector,
        "vector": noisy,
        "packed": packed_vector(noisy, blocks),
    }


def contribution_file():
    return {
        "code_bits": F,
        "item_count": ITEMS,
        "open_rows": packed([-1 if i in CLOSED else 1 for i in range(ITEMS)] + [-1] * 4),
        "devices": DEVICES,
        "cases": [
            contribution_case("three rows weigh 32", 3, None),
            contribution_case("no rows", 0, None),
            contribution_case("exact gradients that are short enough, weight one", 1, NOISE),
            contribution_case("exact gradients that are clipped, weight one", 12, NOISE),
            contribution_case("no gradients", 0, NOISE),
        ],
    }


def gate_file():
    """A gate refresh of seven devices: counts, their sum, and the rows that open after a second one."""
    items, devices, k_min = 21, 7, 3
    rated = [chosen(f"gate {u}", range(items), size) for u, size in enumerate((0, 21, 9, 8, 7, 5, 1))]
    draws = [noise(f"gate noise {u}", 2 * items) for u in range(devices)]
    counts = [
        [(i in mine) + x for i, x in enumerate(ternary_drawn(draw, devices, 8))]
        for mine, draw in zip(rated, draws, strict=True)
    ]
    blocks, total = gate_blocks(items, devices), [sum(column) for column in zip(*counts, strict=True)]
    assert {k_min - 1, k_min} <= set(total)
    return {
        "item_count": items,
        "k_min": k_min,
        "blocks": blocks,
        "rated": rated,
        "random": draws,
        "packed": [packed_vector([mine], blocks) for mine in counts],
        "sum": total,
        "pair": gate_pair(total, k_min),
        "with_epsilon": counted_case(90, devices),
    }


def gate_pair(first, k_min):
    """A second refresh, of other devices, and what the two make of the counts before: the median of the three."""
    items = len(first)
    before, second = ([number(f"gate {name} {i}", 7) for i in range(items)] for name in ("before", "second"))
    counts = [sorted(three)[1] for three in zip(before, first, second, strict=True)]
    sides = {tuple(c >= k_min for c in three) for three in zip(before, first, second, strict=True)}
    assert len(sides) == 8
    return {
        "before": before,
        "second": second,
        "counts": counts,
        "open_rows": packed([1 if c >= k_min else -1 for c in counts] + [-1] * (-items % 8)),
    }


def counted_case(items, devices):
    """Mode SECAGG_DP: 64 of 70 rated items are chosen as the rows of an update are, and counts get Gaussian noise."""
    rated = chosen("counted", range(items), 70)
    draws, noise_bytes = noise("counted items", 4 * 64), noise("counted noise", 16 * items)
    left = list(rated)
    for i in range(64):
        j = i + (int.from_bytes(draws[4 * i : 4 * i + 4], "little") * (len(left) - i) >> 32)
        left[i], left[j] = left[j], left[i]
    counts = [(i in left[:64]) + x for i, x in enumerate(drawn(noise_bytes, NOISE[2]))]
    blocks = gate_blocks(items, devices, NOISE)
    return {
        "item_count": items,
        "devices": devices,
        "noise": NOISE,
        "rated": rated,
        "random": draws + noise_bytes,
        "blocks": blocks,
        "packed": packed_vector([counts], blocks),
    }


def vectors():
    return {
        "blocks.json": block_cases(),
        "noise.json": noise_cases(),
        "ternary_noise.json": ternary_noise_cases(),
        "contribution.json": contribution_file(),
        "gate.json": gate_file(),
    }
