"""One authority and its devices for all worlds of a process: certificates cost more to make than a world to run."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lightfr.identities import IdentityKeys, identity_pem, new_key_and_request
from lightfr.membership import MemberKey
from lightfr_harness.server.authority import Authority, keys
from tests.world.clock import EPOCH
from tests.world.servers import AUTHORITY, COORDINATOR
from tests.world.system import SYSTEM

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
            chance, SYSTEM.chance = SYSTEM.chance, random.Random(f"{age} {number}")
            self._made[age, number] = self._issued(BEGINNING - AGES[age])
            SYSTEM.chance = chance
        return self._made[age, number]

    def _issued(self, when: datetime) -> tuple[str, bytes]:
        keys_of_device = IdentityKeys(*new_key_and_request(), MemberKey.new())
        device_id, issued = self._authority._issue(
            keys_of_device.signing_request, keys_of_device.member_key.public, when
        )  # fmt: skip
        return device_id, identity_pem(keys_of_device, issued)

    def copy_to(self, folder: Path) -> Path:
        """An authority of a world's own, which can renew and revoke."""
        return Path(shutil.copytree(self.folder, folder))
