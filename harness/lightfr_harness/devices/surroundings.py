"""What measured devices live in: an authority, a coordinator, the fleet beside them, their links and the sampler."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cryptography import x509
from cryptography.x509.oid import NameOID

from lightfr.cohorts import DEFAULT_MINIMUM_COHORT
from lightfr.errors import LightFRError
from lightfr_harness.devices.link import Loop
from lightfr_harness.devices.measuring import Sampler
from lightfr_harness.devices.scenario import JOURNAL, SECAGG_DP, Scenario, noise_of
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from lightfr_harness.simulation.identities import identity_of

# By name: a program that is imported before it is started would be loaded twice.
SERVING, FLEET = "lightfr_harness.devices.serving", "lightfr_harness.devices.fleet"
_DAY_SECONDS = 86_400
# The deadline of each phase of a secure round. The next device waits so long if one vanishes from its round.
_PHASE_SECONDS = 300


class FleetError(LightFRError):
    """The fleet beside a measured device has failed."""


class FleetProcess:
    """The other devices of a cohort. They work while the measured device waits, and wait while it works."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._turn = threading.Lock()
        self._in_round = False
        self._log = log
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with log.open("w") as errors:
            self._child = subprocess.Popen(command, stderr=errors, start_new_session=True, **pipes)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One device's round. It begins when the round before is over."""
        with self._turn:
            if self._in_round:
                self._wait_for("done")
                self._in_round = False
            yield

    def follow(self, stage: str) -> None:
        """Let the fleet come as far as the measured device has, so that this one never waits for others."""
        if stage == "placed":
            self._in_round = True
            if self._child.stdin:
                self._child.stdin.write("round\n")
                self._child.stdin.flush()
            self._wait_for("keys_sent")
        elif stage != "keys_sent":
            self._wait_for(stage)

    def _wait_for(self, stage: str) -> None:
        while self._child.stdout and (said := self._child.stdout.readline().strip()) != stage:
            if not said:
                raise FleetError(f"the fleet beside the device has ended; its errors stand in {self._log}")
            if said == "done":
                raise FleetError(f"the round ended before the fleet reached '{stage}'")

    def stop(self) -> None:
        """End it now; whoever waits for it gets a FleetError."""
        if self._child.poll() is None:
            self._child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
        self._child.communicate()


@dataclass(frozen=True)
class Surroundings:
    """What all devices of a run share."""

    scenario: Scenario
    folder: Path
    authority: Authority
    server: tuple[str, int]
    fleet: FleetProcess | None
    loop: Loop
    sampler: Sampler

    @property
    def trust(self) -> Path:
        return self.authority.folder / "trust.pem"

    @property
    def minimum_cohort(self) -> int:
        """What devices insist on: what real ones do, unless the cohort of a test is smaller."""
        return min(self.scenario.cohort, DEFAULT_MINIMUM_COHORT)

    def new_device(self, number: int) -> tuple[Path, str]:
        """Make a device's folder with its certificate; the name stands in the certificate, and in the journal."""
        home = self.folder / f"device-{number}"
        home.mkdir()
        identity_of(self.authority, home / "identity.pem")
        certificate = x509.load_pem_x509_certificate((home / "identity.pem").read_bytes())
        return home, str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    def messages_of(self, name: str) -> tuple[dict[str, list[int]], dict[str, int]]:
        """Bytes inside the messages of one device, up and down, by message; and how many there were."""
        totals: dict[str, list[int]] = {}
        counts: dict[str, int] = {}
        journal = self.folder / JOURNAL
        for line in journal.read_text().splitlines() if journal.exists() else []:
            who, message, up, down = json.loads(line)
            if who == name:
                total = totals.setdefault(message, [0, 0])
                total[0] += up
                total[1] += down
                counts[message] = counts.get(message, 0) + 1
        return totals, counts


@contextmanager
def surroundings(
    scenario: Scenario, folder: Path, seed: int, *, clear_goal: int, changed: float = 0.0
) -> Iterator[Surroundings]:
    """Start all of it. In the clear a round ends with `clear_goal` uploads; it changes this share of the rows."""
    catalogue = folder / "items.txt"
    catalogue.write_text(str(scenario.items))
    options: dict[str, Any] = {"bits": scenario.bits, "seed": seed, "privacy": scenario.privacy, "changed": changed}
    options["open_rows"] = scenario.open_rows
    if scenario.is_secure:
        options |= {"goal": scenario.cohort, "minimum": scenario.cohort, "over_selection": 1}
        options["deadline_seconds"] = _PHASE_SECONDS
    else:
        options |= {"goal": clear_goal, "minimum": 1, "over_selection": 2}
        options["deadline_seconds"] = _DAY_SECONDS
    has_noise = scenario.privacy == SECAGG_DP
    options |= {name: level * has_noise for name, level in noise_of(scenario.bits, scenario.cohort).items()}
    authority = Authority.init(folder / "authority", ["localhost", "127.0.0.1"])
    coordinator = CoordinatorProcess(folder / "server", authority.folder, catalogue, module=SERVING, **options)
    with closing(authority), coordinator, Loop() as loop, Sampler() as sampler:
        address = coordinator.addresses["server"]
        made = Surroundings(
            scenario, folder, authority, ("127.0.0.1", int(address.rsplit(":", 1)[1])), None, loop, sampler
        )
        if not scenario.is_secure:
            yield made
            return
        arguments = (authority.folder, address, folder / "fleet", scenario.cohort - 1, scenario.bits)
        command = [sys.executable, "-m", FLEET, *map(str, arguments), str(made.minimum_cohort)]
        with FleetProcess(command, folder / "fleet.log") as fleet:
            yield Surroundings(scenario, folder, authority, made.server, fleet, loop, sampler)
