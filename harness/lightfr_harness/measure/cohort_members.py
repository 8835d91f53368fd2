"""The others of a cohort: real identities, connections, keys and masks, and a vector of zeros under them.

Run as a process of its own, one member after the other, step by step: `python -m lightfr_harness.measure.cohort_members
AUTHORITY SERVER FOLDER MEMBERS ITEMS OPEN_ROWS BITS`. The last step of all ends it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TypeVar

from lightfr._wire import coordinator, secure, tls
from lightfr._wire.channel import Channel
from lightfr.manifest import Manifest
from lightfr.privacy import DeviceSession, Vector, gate_blocks, round_blocks
from lightfr.trust import Trust
from lightfr.v1 import model_pb2
from lightfr_harness.authority import Authority
from lightfr_harness.fleet.remote import identity_of

Step = TypeVar("Step")

# The smallest that a session takes: nobody's data is in these vectors.
_MINIMUM_COHORT = 2


class Member:
    """One device that has rated nothing."""

    def __init__(self, channel: Channel, server_key: bytes) -> None:
        self._channel = channel
        place = coordinator.check_in(channel, 1, [model_pb2.PRIVACY_MODE_SECAGG])
        if isinstance(place, coordinator.RetryWindow):
            raise RuntimeError(f"no place in the round: {place.reason}")
        self._place = place
        self._session = DeviceSession(place.round_id, place.peer_id, server_key, minimum_cohort=_MINIMUM_COHORT)
        secure.send(channel, "AdvertiseKeys", secure.encode_keys(place.round_id, self._session.advertise()))

    def share(self) -> None:
        step = self._due(secure.Share)
        secure.send(self._channel, "ShareKeys", secure.encode_shares(step.roster, self._session.share(*step)))

    def upload(self, items: int, open_rows: int, bits: int) -> None:
        step, session, place = self._due(secure.Upload), self._session, self._place
        inbox = secure.inbox(step, session.neighbours(), session.peer_id)
        n = session.cohort
        blocks = gate_blocks(items, n) if place.is_gate_refresh else round_blocks(open_rows, bits, n)
        masked = session.mask(Vector(blocks), inbox, step.included)
        upload_id = os.urandom(coordinator.UPLOAD_ID_BYTES)
        request = secure.encode_masked(place.round_id, place.manifest_sha256, upload_id, masked)
        coordinator.upload(self._channel, request)

    def reveal(self) -> None:
        step = self._due(secure.Reveal)
        shares = secure.encode_revealed(self._place.round_id, self._session.unmask(*step))
        secure.send(self._channel, "RevealShares", shares)

    def _due(self, kind: type[Step]) -> Step:
        while isinstance(step := secure.next_step(self._channel, self._place.round_id), secure.Wait):
            time.sleep(step.seconds)
        if not isinstance(step, kind):
            raise TypeError(f"{type(step).__name__} came where {kind.__name__} was due")
        return step


def main() -> None:
    """Take all members through one round."""
    authority_folder, server, folder, count, *shape = sys.argv[1:]
    authority, trust = Authority.open(Path(authority_folder)), Trust(Path(authority_folder) / "trust.pem")
    identities = [identity_of(authority, Path(folder) / f"member-{number}.pem") for number in range(int(count))]
    channels = [Channel(server, tls.context(trust.path, identity)) for identity in identities]
    signed = coordinator.get_manifest(channels[0], 0)
    if signed is None:
        raise RuntimeError("the coordinator has no model")
    server_key = Manifest(signed, trust).signing_key
    members = [Member(channel, server_key) for channel in channels]
    for member in members:
        member.share()
    for member in members:
        member.upload(*map(int, shape))
    for member in members:
        member.reveal()
    authority.close()


if __name__ == "__main__":
    main()
