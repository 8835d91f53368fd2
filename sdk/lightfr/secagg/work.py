"""The costly parts of a session, in one place: a simulation of a whole cohort passes ones that do nothing twice."""

from __future__ import annotations

from lightfr.secagg import views
from lightfr.secagg.agreement import Agreement
from lightfr.secagg.roster import Roster


class Work:
    """What a device does: everything itself, and nothing of it is kept."""

    def is_signed(self, key: bytes, signature: bytes, message: bytes) -> bool:
        """Tell whether the raw Ed25519 key signed the message."""
        return views.is_signed(key, signature, message)

    def agreement(self, private_key: bytes) -> Agreement:
        """Return the private key, ready to agree with others."""
        return Agreement(private_key)

    def roster(
        self, round_id: bytes, manifest_sha256: bytes, kind: int, degree: int, holders: int, threshold: int,
        entries: bytes,
    ) -> Roster:  # fmt: skip
        """Return the roster that the server told."""
        return Roster(round_id, manifest_sha256, kind, degree, holders, threshold, entries)


OWN_WORK = Work()
