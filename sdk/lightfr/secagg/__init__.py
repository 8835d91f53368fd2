"""Secure aggregation on the device: the server learns the sum over a cohort, and no device's part of it.

docs/secagg.md gives every byte. `session` is the device's part of one round; the other modules are what it is made
of, and what a server needs for the same arithmetic. Loaded only by those who take part in rounds, for it needs
`cryptography`.
"""

from lightfr.secagg.contribution import blocks_of, gate_vector, round_vector
from lightfr.secagg.roster import Roster, RosterEntry, VouchedEntry
from lightfr.secagg.session import DeviceSession, Place, RevealedShares
from lightfr.secagg.vector import Block, Vector, evaluation_blocks, gate_blocks, round_blocks

__all__ = [
    "Block",
    "DeviceSession",
    "Place",
    "RevealedShares",
    "Roster",
    "RosterEntry",
    "Vector",
    "VouchedEntry",
    "blocks_of",
    "evaluation_blocks",
    "gate_blocks",
    "gate_vector",
    "round_blocks",
    "round_vector",
]
