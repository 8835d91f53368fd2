"""Plausible sums: docs/protocol.md, "Plausible sums". Written from the document, in Python's integers."""

from math import isqrt

from tests.vectors.plain import number

F, ITEMS, DEVICES = 8, 40, 100
# The variance of the noise of rows.
V = 12
# Of 400 devices that counted: from 300 down to 27.
COUNTS = [300 - 7 * i for i in range(ITEMS)]
NOISE = [9_000, 2_500, 1_300]


def root(value):
    """Rounded up."""
    return isqrt(value - 1) + 1 if value > 0 else 0


def median(values):
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) // 2


def uploads(rows, counts, counted, n):
    """y_i of some rows."""
    total = sum(counts[i] for i in rows)
    return {i: min(n * counts[i] // counted, 64 * n * counts[i] // total) + 1 for i in rows}


def squares(row):
    return sum(value * value for value in row)


def has_too_much(half, rows, y):
    expected = sum(F * (V + y[i] + (y[i] // 4) ** 2) for i in half)
    return sum(squares(rows[i]) for i in half) > expected + expected // 8 + 8 * expected // isqrt(F * len(half))


def bound(i, counts, counted, n):
    """The largest plausible number of a row."""
    x = min(n, n * (counts[i] + 4 * root(counts[i] + 8)) // counted + 1) if counts else n
    return min(n + min(n, isqrt(128 * V)), x + 4 * root(x) + isqrt(32 * V))


def judged(case):
    """The rows that stay as they are and the trails after the round; None: the sum is dropped."""
    n, rows, counts, w = case["devices"], case["rows"], case["counts"], case["weight"]
    counted = max(case["counted"], *counts) if counts else 0
    if not 26 * n <= w <= 70 * n or max(map(abs, case["user_sum"])) > w + 24 * n:
        return None
    frozen = [i for i, row in enumerate(rows) if max(map(abs, row)) > bound(i, counts, counted, n)]
    if len(frozen) >= 3 and 100 * len(frozen) > len(rows):
        return None
    left = [i for i in range(len(rows)) if i not in frozen]
    if counts:
        if n >= 64:
            y, ordered = uploads(left, counts, counted, n), sorted(left, key=lambda i: (counts[i], i))
            middle = len(ordered) // 2
            if has_too_much(ordered[:middle], rows, y) or has_too_much(ordered[middle:], rows, y):
                return None
        rows = cut(rows, uploads(range(len(rows)), counts, counted, n))
    return frozen, trails_after(case["trail"], rows, counts, frozen, n)


def cut(rows, y):
    z = [y[i] // 2 + 3 * root(y[i] + V) for i in range(len(rows))]
    return [[max(-most, min(most, value)) for value in row] for row, most in zip(rows, z, strict=True)]


def moved(trail, row):
    return [t - (t >> 4) + 256 * r for t, r in zip(trail, row, strict=True)]


def trails_after(trails, rows, counts, frozen, n):
    after = [t if i in frozen else moved(t, row) for i, (t, row) in enumerate(zip(trails, rows, strict=True))]
    if not counts:
        return after
    lengths = [squares(trail) >> 24 for trail in after]
    u = median([1024 * e // c for e, c in zip(lengths, counts, strict=True)])
    for i, e in enumerate(lengths):
        most = F * (n + 128) // 256 + 3 * u * counts[i] // 1024
        eighths = 8
        while i not in frozen and eighths > 0 and squares(after[i]) >> 24 > most:
            eighths -= 1
            after[i] = moved(trails[i], [(eighths * r + 4) // 8 for r in rows[i]])
        assert e > most or eighths == 8
    return after


def matrix(label, reach):
    """Numbers from -reach to reach."""
    return [[number(f"{label} {i} {k}", 2 * reach + 1) - reach for k in range(F)] for i in range(ITEMS)]


def case(name, *, dropped=False, frozen=(), change=None, devices=DEVICES, counts=COUNTS, counted=400):
    """A sum that training could have, changed; what is expected of it is said twice, here and by the rules."""
    made = {
        "name": name,
        "devices": devices,
        "counts": counts,
        "counted": counted,
        "trail": matrix("plausible trail", 4096),
        "rows": matrix("plausible rows", 5),
        "user_sum": [number(f"plausible user {k}", 8001) - 4000 for k in range(F)],
        "weight": 45 * devices,
    }
    if change:
        change(made)
    result = judged(made)
    assert (result is None) == dropped, name
    made["dropped"] = dropped
    made["frozen"], made["trail_after"] = ([], []) if result is None else result
    assert made["frozen"] == list(frozen), name
    return made


def with_field(name, value):
    return lambda made: made.update({name: value})


def with_number(row, k, value):
    def change(made):
        made["rows"][row][k] = value

    return change


def with_rows(rows, value):
    """The same number, with alternating signs, in some rows."""

    def change(made):
        for i in rows:
            made["rows"][i] = [value if k % 2 else -value for k in range(F)]

    return change


def pushed_long(made):
    """A trail that cannot take all of its row, and one that can take nothing."""
    made["trail"][30], made["rows"][30] = [9_000] * F, [12] * F
    made["trail"][31], made["rows"][31] = [60_000] * F, [12] * F
    made["trail"][32], made["rows"][32] = [-9_000] * F, [-13] * F


def frozen_and_long(made):
    pushed_long(made)
    made["rows"][31][0] = 500


def sum_cases():
    most = bound(30, COUNTS, 400, DEVICES)
    user = 45 * DEVICES + 24 * DEVICES
    return [
        case("honest"),
        case("the least weight", change=with_field("weight", 26 * DEVICES)),
        case("less weight", dropped=True, change=with_field("weight", 26 * DEVICES - 1)),
        case("the most weight", change=with_field("weight", 70 * DEVICES)),
        case("more weight", dropped=True, change=with_field("weight", 70 * DEVICES + 1)),
        case("the largest user sum", change=with_field("user_sum", [0] * 7 + [-user])),
        case("a larger user sum", dropped=True, change=with_field("user_sum", [0] * 7 + [-user - 1])),
        case("the largest number of a row", change=with_number(30, 2, -most)),
        case("a larger number", frozen=[30], change=with_number(30, 2, -most - 1)),
        case("two implausible rows", frozen=[30, 31], change=with_rows([30, 31], 200)),
        case("three implausible rows of forty", dropped=True, change=with_rows([30, 31, 32], 200)),
        case("too much in the rarer half", dropped=True, change=with_rows(range(20, 40), 14)),
        case("too much in the more popular half", dropped=True, change=with_rows(range(20), 24)),
        case("as much among 63 devices", devices=63, change=with_rows(range(20, 40), 14)),
        case("numbers that are cut", change=with_rows([0, 39], 33)),
        case("trails that become too long", change=pushed_long),
        case("one of them is implausible", frozen=[31], change=frozen_and_long),
        case("somebody gave the counts", counted=0, change=with_rows([39], 33)),
        case("no counts", counts=[], counted=0, change=with_rows(range(20), 30)),
        case("no counts, a larger number", counts=[], counted=0, frozen=[3], change=with_number(3, 3, 140)),
    ]


def reach(thousandths, n):
    return isqrt(n * (8 * thousandths) ** 2) // 1000 + 1


def clipped_case(name, n, rows, user_sum, *, dropped):
    """Mode SECAGG_DP; t = 5 for 8 bits."""
    numbers, e = [value for row in rows for value in row], len(rows) * F * n * NOISE[0] ** 2 // 10**6
    length = (8 if n < 64 else 4) * F * n
    is_dropped = (
        max(map(abs, user_sum)) > n + reach(NOISE[1], n)
        or max(map(abs, numbers)) > n * (5 + F) + reach(NOISE[0], n)
        or squares(numbers) > length**2 + e + e // 8 + 8 * e // isqrt(len(numbers))
    )
    assert is_dropped == dropped, name
    return {"name": name, "devices": n, "rows": rows, "user_sum": user_sum, "dropped": dropped}


def clipped_cases():
    rows, zeros = matrix("plausible clipped", 150), [0] * F
    user, most = 100 + reach(NOISE[1], 100), 100 * 13 + reach(NOISE[0], 100)

    def one(value):
        return [*rows[:-1], [value, *rows[-1][1:]]]

    def loud(value):
        return [[value if (i + k) % 2 else -value for k in range(F)] for i in range(ITEMS)]

    return [
        clipped_case("honest", 100, rows, zeros, dropped=False),
        clipped_case("the largest user sum", 100, rows, [*zeros[1:], -user], dropped=False),
        clipped_case("a larger user sum", 100, rows, [*zeros[1:], -user - 1], dropped=True),
        clipped_case("the largest number", 100, one(most), zeros, dropped=False),
        clipped_case("a larger number", 100, one(-most - 1), zeros, dropped=True),
        clipped_case("as much as there may be", 100, loud(211), zeros, dropped=False),
        clipped_case("too much", 100, loud(212), zeros, dropped=True),
        # 63 devices may agree in all, 4032^2, and 64 in half.
        clipped_case("63 devices", 63, loud(242), zeros, dropped=False),
        clipped_case("63 devices, too much", 63, loud(243), zeros, dropped=True),
        clipped_case("64 devices, too much", 64, loud(242), zeros, dropped=True),
    ]


def count_cases():
    """Of a gate refresh of 100 devices; no noise stands for mode SECAGG."""
    cases = []
    for noise, room in (([], 32), (NOISE, reach(NOISE[2], 100))):
        for counts, dropped in (
            ([-room, 0, 100 + room], False),
            ([-room - 1, 0, 0], True),
            ([0, 0, 101 + room], True),
        ):
            cases.append({"devices": 100, "noise": noise, "counts": counts, "dropped": dropped})
    return cases


def vectors():
    return {
        "plausible.json": {
            "code_bits": F,
            "noise": NOISE,
            "sums": sum_cases(),
            "clipped": clipped_cases(),
            "counts": count_cases(),
        }
    }
