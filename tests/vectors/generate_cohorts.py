"""Cohorts: docs/protocol.md, "Rounds of many cohorts". Written from the document, in Python's integers."""

from tests.vectors.plain import number


def combined(sums, survivors):
    """One number of each cohort: the number of the round."""
    means = [((s << 20) + n // 2) // n for s, n in zip(sums, survivors, strict=True)]
    total = 0
    for c, (mean, n) in enumerate(zip(means, survivors, strict=True)):
        others = means[:c] + means[c + 1 :]
        total += n * max(min(0, *others), min(mean, max(0, *others)))
    return (total + (1 << 19)) >> 20


def case(name, survivors, sums):
    """`sums` has a list of numbers for each cohort."""
    result = [sum(numbers) if len(numbers) < 3 else combined(numbers, survivors) for numbers in zip(*sums, strict=True)]
    return {"name": name, "survivors": survivors, "sums": sums, "combined": result}


def drawn(label, cohorts, reach):
    return [[number(f"cohorts {label} {c} {k}", 2 * reach + 1) - reach for k in range(24)] for c in range(cohorts)]


def vectors():
    loud = [[9_000] * 24, *drawn("honest", 3, 12)]
    return {
        "cohorts.json": {
            "cases": [
                case("one cohort", [300], drawn("one", 1, 90)),
                case("two cohorts", [256, 256], drawn("two", 2, 12)),
                case("three cohorts", [256, 256, 256], drawn("three", 3, 12)),
                case("one of four is loud", [256] * 4, loud),
                case("sizes that differ", [256, 1024, 300, 511, 777], drawn("sizes", 5, 40)),
                case("sixteen cohorts", [256 + 31 * c for c in range(16)], drawn("sixteen", 16, 60_000)),
            ]
        }
    }
