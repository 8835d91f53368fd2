"""Stands below the shipped code as an operating system would: clock, chance, waiting, TLS and files of a world.

The shipped code asks the system for the time and for random bytes in a few dozen places. A parameter in each of them
would be there for this one caller, so this process replaces the system's own functions instead, once, before it imports
the shipped code. Nothing else may run in the process: tests start `python -m tests.world`.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.world.clock import EPOCH, Clock, Host

if TYPE_CHECKING:
    from tests.world.world import World


class System:
    """Whose turn it is, and in which world."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.chance = random.Random(0)
        self.host: Host | None = None
        self.world: World | None = None

    def enter(self, host: Host | None) -> Host | None:
        """Let it be the turn of a host; whose turn it was before."""
        before, self.host = self.host, host
        return before

    def begin(self, world: World | None, clock: Clock, seed: object, look_seconds: float = 0.5) -> None:
        """Let a world be the one that the shipped code lives in; its coordinators look for news so often."""
        from lightfr_harness.server.coordinator import runner

        runner.LOOK_SECONDS = look_seconds
        self.world, self.clock, self.host = world, clock, None
        self.chance = random.Random(f"bytes {seed}")
        random.seed(f"jitter {seed}")

    def time(self) -> float:
        return EPOCH + self.clock.now + (self.host.clock_offset if self.host else 0.0)

    def monotonic(self) -> float:
        return 1000.0 + self.clock.now

    def urandom(self, count: int) -> bytes:
        return self.chance.randbytes(count)

    def sleep(self, seconds: float) -> None:
        self.block(max(seconds, 0.0))

    def block(self, seconds: float | None) -> Any:
        """Let the device whose turn it is wait."""
        if self.world is None or self.host is None:
            raise AssertionError("only a device waits so")
        return self.world.program_of(self.host).block(seconds)


SYSTEM = System()


class Event:
    """threading.Event for a device that has one thread."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            SYSTEM.block(timeout)
        return self._is_set


def _once(verify: Callable[..., None]) -> Callable[..., None]:
    """Verify a signed manifest that is in order once, not once for each device."""
    verified = set()

    def verify_new(envelope: Any, trust: Any) -> None:
        known = envelope.SerializeToString(), trust.manifest_keys.get(envelope.key_id)
        if known not in verified:
            verify(envelope, trust)
            verified.add(known)

    return verify_new


def install() -> None:
    """Replace what the shipped code asks the system for. Once, and before anything of it is imported."""
    time.time, time.monotonic, time.sleep = SYSTEM.time, SYSTEM.monotonic, SYSTEM.sleep
    os.urandom = random._urandom = SYSTEM.urandom
    logging.disable()

    import numpy.random  # noqa: F401 # it draws when it is imported, and the first world must not differ from the others

    from lightfr import client, membership
    from lightfr._wire import channel, tls
    from lightfr.membership import MemberKey
    from lightfr.model import manifest
    from lightfr.secagg import views
    from lightfr_harness.server.authority.credentials import Admission
    from tests.world import disk, invariants, network

    client.threading = SimpleNamespace(Event=Event, Lock=threading.Lock, get_ident=threading.get_ident)
    tls.context, channel.Connection = network.context, network.Connection
    Admission._new_context = lambda self: None
    # OpenSSL draws keys by itself.
    MemberKey.new = classmethod(lambda cls: cls.from_private(os.urandom(32)))
    # All devices of a cohort verify the same signatures: each is verified once.
    membership._is_signed, views.is_signed = lru_cache(4096)(membership._is_signed), lru_cache(4096)(views.is_signed)
    manifest._verify = _once(manifest._verify)
    disk.install()
    invariants.install()
