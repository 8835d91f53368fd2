"""The others of a cohort: real identities, connections, keys and masks, and a vector of zeros under them.

Run as a process of its own, one member after the other, step by step: `python -m lightfr_harness.devices.cohort_members
AUTHORITY SERVER FOLDER MEMBERS ITEMS OPEN_ROWS BITS`. The last step of all ends it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lightfr._wire import coordinator, tls
from lightfr._wire.channel import Channel
from lightfr.device import Trust
from lightfr.model.manifest import Manifest
from lightfr.rounds import RoundParticipant
from lightfr.secagg import Vector, gate_blocks, round_blocks
from lightfr.v1 import model_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.identities import identity_of
from lightfr_harness.simulation.remote import RoundWalk

# The smallest that a session takes: nobody's data is in these vectors.
_MINIMUM_COHORT = 2


def take_part(channels: list[Channel], server_key: bytes, items: int, open_rows: int, bits: int) -> None:
    """Take a member for each channel through one round, step by step: none of them has rated anything."""

    def zeros(is_gate_refresh: bool, cohort: int) -> Vector:
        return Vector(gate_blocks(items, cohort) if is_gate_refresh else round_blocks(open_rows, bits, cohort))

    members = [
        RoundWalk(channel, RoundParticipant.begin(_place(channel), server_key, _MINIMUM_COHORT), zeros)
        for channel in channels
    ]
    for _ in range(RoundWalk.STEPS):
        for member in members:
            member.advance()


def _place(channel: Channel) -> coordinator.Assignment:
    place = coordinator.check_in(channel, 1, [model_pb2.PRIVACY_MODE_SECAGG])
    if isinstance(place, coordinator.RetryWindow):
        raise RuntimeError(f"no place in the round: {place.reason}")
    return place


def main() -> None:
    """Take all members through one round."""
    authority_folder, server, folder, count, *shape = sys.argv[1:]
    authority, trust = Authority.open(Path(authority_folder)), Trust(Path(authority_folder) / "trust.pem")
    identities = [identity_of(authority, Path(folder) / f"member-{number}.pem") for number in range(int(count))]
    channels = [Channel(server, tls.context(trust.path, identity)) for identity in identities]
    signed = coordinator.get_manifest(channels[0], 0)
    if signed is None:
        raise RuntimeError("the coordinator has no model")
    items, open_rows, bits = map(int, shape)
    take_part(channels, Manifest(signed, trust).signing_key, items, open_rows, bits)
    authority.close()


if __name__ == "__main__":
    main()
