"""What docs/protocol.md says of plausible sums, number by number, in Python's integers."""

from math import isqrt
from statistics import median


def root_up(number):
    root = isqrt(number)
    return root + (root * root < number)


def variance(f):
    return max(12, f // 8)


def asked(counts, devices):
    return max(devices, *counts)


def row_bounds(counts, devices, n, f):
    """The largest number that is plausible in each row."""
    bounds = []
    for c in counts:
        x = min(n, n * (c + 4 * root_up(c + 8)) // asked(counts, devices) + 1)
        bounds.append(
            min(n + min(n, isqrt(128 * variance(f))), x + 4 * root_up(x) + isqrt(32 * variance(f))),
        )
    return bounds


def uploads(counts, devices, n):
    """y_i."""
    return [min(n * c // asked(counts, devices), 64 * n * c // sum(counts)) + 1 for c in counts]


def most_energy(expected, numbers):
    return expected + expected // 8 + 8 * expected // isqrt(numbers)


def half_energy(half, counts, devices, n, f):
    """The most that the rows of a half may have in them."""
    y = uploads(counts, devices, n)
    return most_energy(sum(f * (variance(f) + y[i] + (y[i] // 4) ** 2) for i in half), f * len(half))


def cut(rows, counts, devices, n):
    result = []
    for row, y in zip(rows, uploads(counts, devices, n), strict=True):
        z = y // 2 + 3 * root_up(y + variance(len(row)))
        result.append([max(-z, min(z, number)) for number in row])
    return result


def energy(trail, row):
    """e_i after a round with this row."""
    return sum((t + 256 * r) ** 2 for t, r in zip(trail, row, strict=True)) // 2**24


def shortened(rows, trails, counts, n):
    f = len(rows[0])
    usual = int(median(1024 * energy(t, r) // c for t, r, c in zip(trails, rows, counts, strict=True)))
    result = []
    for row, trail, c in zip(rows, trails, counts, strict=True):
        most = f * (n + 128) // 256 + 3 * usual * c // 1024
        tries = [row, *([(j * r + 4) // 8 for r in row] for j in range(7, -1, -1))]
        result.append(next((one for one in tries if energy(trail, one) <= most), tries[-1]))
    return result


def clipped_energy(n, f, numbers, thousandths):
    """The most that all rows may have in them in mode SECAGG_DP."""
    length = 8 * f * n if n < 64 else 4 * f * n
    return length**2 + most_energy(numbers * n * thousandths**2 // 10**6, numbers)
