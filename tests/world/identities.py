"""One authority and its devices for all worlds of a process: certificates cost more to make than a world to run."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lightfr.identities import Issued, identity_pem, new_key_and_request
from lightfr.identities import IdentityKeys
from lightfr.membership import MemberKey
from lightfr_harness.server.authority import Authority, keys
from tests.world.clock import EPOCH
from tests.world.servers import AUTHORITY, COORDINATOR

BEGINNING = datetime.fromtimestamp(EPOCH, UTC)
# Issued so long before the world begins: in full; so that it is renewed at the next sync; so that it ends in the storm.
AGES = {"young": timedelta(days=1), "due": timedelta(days=330), "ending": timedelta(days=365, minutes=-2)}


class Identities:
    """The authority's folder, and identity files by age and number. Each is made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keys.create(folder, [COORDINATOR], [AUTHORITY], BEGINNING - timedelta(days=5))
        self._authority = Authority(folder, now=lambda: BEGINNING)
        self._made: dict[tuple[str, int], tuple[str, bytes]] = {}

    def of(self, age: str, number: int) -> tuple[str, bytes]:
        """The id of a device and its identity file."""
        if (age, number) not in self._made:
            # Its own chance, so that a device is the same in whichever world it is made.
            chance = random.Random(f"{age} {number}")
            member_key = MemberKey.from_private(chance.randbytes(32))
            private_key, request = new_key_and_request()
            device_id, issued = self._issue(request, member_key.public, BEGINNING - AGES[age])
            self._made[age, number] = device_id, identity_pem(IdentityKeys(private_key, request, member_key), issued)
        return self._made[age, number]

    def _issue(self, request: bytes, member_key: bytes, when: datetime) -> tuple[str, Issued]:
        return self._authority._issue(request, member_key, when)

    def copy_to(self, folder: Path) -> Path:
        """An authority of a world's own, which can renew and revoke."""
        return Path(shutil.copytree(self.folder, folder))
