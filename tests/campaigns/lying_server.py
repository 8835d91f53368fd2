"""What a server that tells devices different things reads, with the checks of the devices and without them.

    python -m tests.campaigns.lying_server --devices 512

The sessions are the SDK's own, in one process; tests/adversary has the same attacks over TLS. Exits with 1 if a vector
was read, or a device acted on a set that no quorum was told, while devices checked.
"""

from __future__ import annotations

import argparse
import sys
from unittest.mock import patch

from tests.adversary.cohort import Outcome, Prepared, attack
from tests.adversary.plans import colluders_of, split_included, split_survivors, victims_of

PLANS = {"included": split_included, "survivors": split_survivors}


def outcomes(cohort: Prepared, n_colluders: int, name: str) -> tuple[Outcome, Outcome, int]:
    """How an attack goes against devices that check, and against such as believe every quorum; and its victims."""
    colluders = colluders_of(cohort.roster, n_colluders)
    included, survivors = PLANS[name](cohort.roster, colluders)
    checked = attack(cohort, colluders, included, survivors)
    with patch("lightfr.secagg.session.require_quorum", lambda *_: None):
        unchecked = attack(cohort, colluders, included, survivors)
    return checked, unchecked, len(victims_of(included))


def deceived(outcome: Outcome, name: str, n_victims: int, n_honest: int) -> int:
    """How many devices acted on what only a minority was told."""
    return len(outcome.revealed) if name == "survivors" else len(outcome.uploaded) - (n_honest - n_victims)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=512)
    options = parser.parse_args()
    n, is_broken = options.devices, False
    cohort = Prepared(n)
    print("split set | colluders | vectors read | devices deceived | vectors read without the check")
    for name in PLANS:
        for n_colluders in sorted({0, 1, 8, 32, n // 5}):
            checked, unchecked, n_victims = outcomes(cohort, n_colluders, name)
            n_deceived = deceived(checked, name, n_victims, n - n_colluders)
            is_broken |= bool(checked.read or n_deceived)
            print(f"{name} | {n_colluders} | {len(checked.read)} | {n_deceived} | {len(unchecked.read)}", flush=True)
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
