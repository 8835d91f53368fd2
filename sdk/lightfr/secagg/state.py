"""What a device remembers of a round between two steps, as bytes. They are secret: keys, and shares of others."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from lightfr._secret import secret
from lightfr.errors import InvalidInputError

_VERSION = "lightfr session v2"


@secret
@dataclass(frozen=True)
class SessionState:
    """One round of one device. Empty bytes stand for what is not known yet, or not needed any more.

    `senders` are the id and share key of every device of the roster, 48 bytes each. Other lists of devices are records
    that begin with a roster index (uint32, little-endian): `neighbours` have id and mask key behind it, `holders`
    nothing, `witnesses` the member key, `held` the owner's two shares. `membership_keys` are 32 bytes each.
    """

    round_id: bytes
    peer_id: bytes
    manifest_sha256: bytes
    kind: int
    server_key: bytes
    membership_keys: bytes
    member_private: bytes
    membership: bytes
    minimum_cohort: int
    began_unix_seconds: float
    next_step: str = "advertise"
    mask_private: bytes = b""
    share_private: bytes = b""
    seed: bytes = b""
    own_share: bytes = b""
    roster_digest: bytes = b""
    roster_signature: bytes = b""
    cohort: int = 0
    threshold: int = 0
    own_index: int = 0
    senders: bytes = b""
    neighbours: bytes = b""
    holders: bytes = b""
    witnesses: bytes = b""
    held: bytes = b""
    included: bytes = b""
    included_signature: bytes = b""
    survivors: bytes = b""
    survivors_signature: bytes = b""

    def __repr__(self) -> str:
        return f"<SessionState before step '{self.next_step}'>"

    def to_bytes(self) -> bytes:
        """Return everything, as JSON with bytes in hexadecimal."""
        known = {name: value.hex() if isinstance(value, bytes) else value for name, value in vars(self).items()}
        return json.dumps({"version": _VERSION, **known}).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> SessionState:
        """Take up what to_bytes() made; raises InvalidInputError for anything else."""
        try:
            known: dict[str, Any] = json.loads(stored)
            if known.pop("version") != _VERSION:
                raise ValueError("another version")
            for field in fields(cls):
                if field.type == "bytes":
                    known[field.name] = bytes.fromhex(known[field.name])
            return cls(**known)
        except (ValueError, TypeError, KeyError, AttributeError):
            # Not chained: the text of the cause could repeat what was stored.
            raise InvalidInputError(f"{len(stored)} bytes are not a stored session of this release") from None
