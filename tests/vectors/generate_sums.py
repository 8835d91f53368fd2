"""Writes what devices put into the vectors of secure aggregation, from docs/secagg.md: blocks, numbers, noise, gate."""

from decimal import Decimal, localcontext
from math import isqrt

from tests.vectors.plain import chosen, little, message, nested, noise, packed, rows_of, signs


def bits_for(most):
    """ceil(log2(most + 1)), in integers."""
    bits = 0
    while 2**bits < most + 1:
        bits += 1
    return bits


def room(devices, thousandths):
    """ceil( floor( sqrt( n (10 s)^2 ) ) / 1000 )."""
    return -(-isqrt(devices * (10 * thousandths) ** 2) // 1000)


def training_blocks(open_rows, f, devices, levels=None):
    counts = [["rows", open_rows * f], ["products", f * (f - 1) // 2], ["user_sum", f]]
    if levels:
        row_bits, sum_bits = (bits_for(2 * (devices + room(devices, s))) for s in levels)
    else:
        row_bits, sum_bits = bits_for(2 * devices), bits_for(128 * devices)
        counts.append(["weight", 1])
    return [[name, count, row_bits if name == "rows" else sum_bits] for name, count in counts]


def gate_blocks(items, devices):
    return [["counts", items, bits_for(devices)]]


def packed_bytes(blocks):
    return sum((count * bits + 7) // 8 for _, count, bits in blocks)


def block_cases():
    cases = []
    for open_rows, f, devices in ((0, 8, 2), (72, 32, 6), (2000, 64, 512), (1, 1024, 8192), (7, 8, 255), (7, 8, 256)):
        for levels in (None, [500, 500], [2000, 1_000_000]):
            blocks = training_blocks(open_rows, f, devices, levels)
            case = {"kind": "training", "open_rows": open_rows, "code_bits": f, "devices": devices, "noise": levels}
            cases.append({**case, "blocks": blocks, "bytes": packed_bytes(blocks)})
    for items, devices in ((1, 2), (80, 6), (1682, 511), (1682, 512), (9, 8192)):
        blocks = gate_blocks(items, devices)
        case = {"kind": "gate", "item_count": items, "devices": devices}
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


def low_bits(values, bits):
    number = sum((value % 2**bits) << (i * bits) for i, value in enumerate(values))
    return number.to_bytes((len(values) * bits + 7) // 8, "little")


def packed_vector(vector, blocks):
    return b"".join(low_bits(values, bits) for values, (_, _, bits) in zip(vector, blocks, strict=True))


F, ITEMS, CLOSED, DEVICES = 16, 20, {0, 3, 19}, 5


def sums_of(user_code, weight):
    b = signs(user_code)
    products = [weight * b[j] * b[k] for j in range(F) for k in range(j + 1, F)]
    return products, [weight * x for x in b]


def numbers_of(sent, planes, user_code, weight):
    """The vector before noise: rows of all open items, products, user sum."""
    nonzero, positive = (rows_of(plane, F) for plane in planes)
    rows = {
        item: [p if n > 0 else 0 for n, p in zip(*pair, strict=True)]
        for item, pair in zip(sent, zip(nonzero, positive, strict=True), strict=True)
    }
    open_items = [i for i in range(ITEMS) if i not in CLOSED]
    flat = [x for i in open_items for x in rows.get(i, [0] * F)]
    return [flat, *sums_of(user_code, weight)]


def contribution_case(name, n, levels):
    sent = chosen(f"contribution {n}", [i for i in range(ITEMS) if i not in CLOSED], n)
    nonzero = noise(f"contribution {n} nonzero", n * F // 8)
    positive = bytes(a & b for a, b in zip(nonzero, noise(f"contribution {n} positive", len(nonzero)), strict=True))
    user, weight = noise(f"contribution {n} user", F // 8), 1 if levels else max(n, 32)
    vector = numbers_of(sent, (nonzero, positive), user, weight)
    random = b""
    if levels:
        for values, level in zip(vector, [levels[0], levels[1], levels[1]], strict=True):
            draw = noise(f"contribution noise {len(random)}", 16 * len(values))
            values[:] = [v + x for v, x in zip(values, drawn(draw, level), strict=True)]
            random += draw
    else:
        vector.append([weight])
    blocks = training_blocks(ITEMS - len(CLOSED), F, DEVICES, levels)
    planes = nested(3, message((1, nonzero), (2, positive)))
    return {
        "name": name,
        "noise": levels,
        "row_update": message((1, F), (2, little(sent, 4))) + planes + message((6, user)),
        "random": random,
        "blocks": blocks,
        "vector": vector,
        "packed": packed_vector(vector, blocks),
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
            contribution_case("with noise every device weighs one", 4, [500, 2000]),
        ],
    }


def gate_file():
    """A gate refresh of seven devices: counts, their sum, and the rows that at least k_min of them rate."""
    items, devices, k_min = 21, 7, 3
    rated = [chosen(f"gate {u}", range(items), size) for u, size in enumerate((0, 21, 9, 8, 7, 5, 1))]
    counts = [[1 if i in mine else 0 for i in range(items)] for mine in rated]
    blocks, total = gate_blocks(items, devices), [sum(column) for column in zip(*counts, strict=True)]
    assert {k_min - 1, k_min} <= set(total)
    return {
        "item_count": items,
        "k_min": k_min,
        "blocks": blocks,
        "rated": rated,
        "packed": [packed_vector([mine], blocks) for mine in counts],
        "sum": total,
        "open_rows": packed([1 if c >= k_min else -1 for c in total] + [-1] * 3),
    }


def vectors():
    return {
        "blocks.json": block_cases(),
        "noise.json": noise_cases(),
        "contribution.json": contribution_file(),
        "gate.json": gate_file(),
    }
