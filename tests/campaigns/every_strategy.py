"""Enumerate every strategy of a lying server against cohorts of 4 to 6 devices, and say how many states there were.

    python -m tests.campaigns.every_strategy

The devices are the SDK's own sessions. "Rosters" is how many different ones the server may show at a time. Exits with 1
when devices act on different sets, or both secrets of one of them are revealed.
"""

from __future__ import annotations

import sys

from tests.adversary.strategies import Server

# Devices, colluders among them, the devices' minimum, rosters. One colluder of five is not here: docs/secagg.md.
CASES = [(4, 0, 3, 2), (5, 0, 3, 2), (6, 0, 4, 1), (6, 1, 4, 1), (6, 0, 3, 2), (6, 1, 5, 2)]


def main() -> int:
    """Print one line for each case."""
    is_broken = False
    print("devices | colluders | minimum | rosters | strategies | states | fewest honest devices in a sum | fault")
    for n, n_colluders, minimum, most_rosters in CASES:
        server = Server(n, n_colluders, minimum, most_rosters=most_rosters)
        found = server.search()
        is_broken |= bool(found.fault)
        line = (n, n_colluders, minimum, most_rosters, f"{server.strategies():.1e}", found.states, found.fewest)
        print(*line, found.fault or "none", sep=" | ", flush=True)
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
