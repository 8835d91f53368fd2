"""A fleet that trains with a real coordinator: each device has its own certificate and its own mutual-TLS connection.

The devices share one copy of what is public, the model; a real device has its own. Rounds live in memory, hundreds of
them over a few threads, so that a killed simulation loses them. The rest is what the SDK does.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lightfr._wire import coordinator, secure, tls
from lightfr._wire.channel import Channel
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT
from lightfr.device import Identity, Trust
from lightfr.errors import ProtocolError, RefusedError
from lightfr.evaluation import evaluation_vector
from lightfr.membership import Member
from lightfr.model.folder import LoadedModel, ModelFolder
from lightfr.participation import RoundStage
from lightfr.rounds import ClearRound, RoundParticipant, Trusted, is_too_late
from lightfr.secagg import Vector, gate_vector, round_vector
from lightfr.v1 import model_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.fleet import SimulatedDevice
from lightfr_harness.simulation.identities import identity_of

if TYPE_CHECKING:
    from lightfr.rounds import MakeVector

T = TypeVar("T")

# Devices that talk at the same time. More would only wait for the interpreter.
WORKERS = 8
# What a device has done after each step of a secure round.
STAGES = tuple(stage for stage in RoundStage if stage != RoundStage.PLACED)


@dataclass
class RemoteDevice:
    """A simulated device with an identity."""

    device: SimulatedDevice
    channel: Channel
    member: Member


class RemoteFleet:
    """Devices that take part in rounds of a coordinator, in the privacy mode of its model."""

    def __init__(
        self, devices: Sequence[SimulatedDevice], authority: Authority, server: str, folder: Path,
        *, minimum_cohort: int = DEFAULT_MINIMUM_COHORT, random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:  # fmt: skip
        trust = Trust(authority.folder / "trust.pem")
        folder.mkdir(parents=True, exist_ok=True)
        self.devices = []
        for number, device in enumerate(devices):
            path = identity_of(authority, folder / f"{number}.pem")
            channel = Channel(server, tls.context(trust.path, path))
            self.devices.append(RemoteDevice(device, channel, Identity(path, trust).member()))
        self._models, self._membership_keys = ModelFolder(folder / "models", trust), trust.membership_keys
        self._minimum_cohort, self._random_bytes = minimum_cohort, random_bytes
        # One model is fitted by one thread at a time.
        self._fitting = threading.Lock()
        self.model: LoadedModel | None = None

    def sync(self) -> LoadedModel:
        """Fetch the newest model, once for all."""
        channel, old = self.devices[0].channel, self.model
        signed = coordinator.get_manifest(channel, old.manifest.model_version if old else 0)
        if signed is not None:
            self.model = self._models.fetch(channel, signed)
            if old is not None:
                old.close()
        if self.model is None:
            raise RuntimeError("the coordinator has no model")
        return self.model

    def take_part(self, chosen: Sequence[int], progress: Callable[[RoundStage], None] | None = None) -> int:
        """Let these devices offer themselves for the current round; return how many of them did all that it asks.

        In a secure round `progress` hears of each stage, once all of them have come so far.
        """
        model = self.sync()
        is_clear = model.manifest.message.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR
        with ThreadPoolExecutor(WORKERS) as workers:
            places = workers.map(lambda number: _place(self.devices[number], model), chosen)
            placed = [(self.devices[number], place) for number, place in zip(chosen, places, strict=True) if place]
            if is_clear:
                return len(those_in_time(workers, lambda one: self._upload(model, *one), placed))
            walks = [self.walk(model, *one) for one in placed]
            # All devices take each step before the next one: none is due before all have done the last.
            for stage in STAGES:
                walks = those_in_time(workers, RoundWalk.advance, walks)
                if progress is not None:
                    progress(stage)
            return len(walks)

    def _upload(self, model: LoadedModel, remote: RemoteDevice, place: coordinator.Assignment) -> None:
        """Take part in the clear."""
        with self._fitting:
            update = remote.device.update(model.published, self._random_bytes)
        secure.send(remote.channel, *ClearRound.begin(place, update).outgoing)

    def walk(self, model: LoadedModel, remote: RemoteDevice, place: coordinator.Assignment) -> RoundWalk:
        """A device's way through a secure round in which it has a place."""
        trusted = Trusted(model.manifest.signing_key, self._membership_keys, remote.member, time.time())
        participant = RoundParticipant.begin(place, trusted, self._minimum_cohort)

        def make_vector(kind: int, cohort: int) -> Vector:
            interactions = remote.device.interactions
            if kind == coordinator.GATE_REFRESH:
                return gate_vector(model.published, interactions.to_teach(), cohort, self._random_bytes)
            if kind == coordinator.EVALUATION:
                rankings, code, digest = model.manifest.rankings, remote.device.code, participant.view().roster_digest
                with self._fitting:
                    return evaluation_vector(
                        model.published, rankings, interactions, code, digest, cohort, self._random_bytes
                    )
            with self._fitting:
                update = remote.device.update(model.published, self._random_bytes)
            return round_vector(model.published, update, cohort, self._random_bytes)

        return RoundWalk(remote.channel, participant, make_vector)

    def close(self) -> None:
        for remote in self.devices:
            remote.channel.close()
        if self.model is not None:
            self.model.close()


class RoundWalk:
    """A participant of a masked round and its connection, for a driver that takes many devices step by step."""

    def __init__(self, channel: Channel, participant: RoundParticipant, make_vector: MakeVector) -> None:
        self._channel, self._participant, self._make_vector = channel, participant, make_vector
        self._has_begun = False
        # Bytes of each request that was sent, step by step.
        self.sent_bytes: list[int] = []

    def advance(self) -> None:
        """Take the next step: wait until it is due and send what it asks for. At first these are the keys.

        Raises RefusedError when the round has gone on without this device.
        """
        participant = self._participant
        if self._has_begun:
            while isinstance(step := secure.next_step(self._channel, participant.round_id), secure.Wait):
                time.sleep(step.seconds)
            if not participant.answer(step, self._make_vector):
                raise ProtocolError("the server says that the round is done before this device took all its steps")
        self._has_begun = True
        method, request = participant.outgoing
        secure.send(self._channel, method, request)
        self.sent_bytes.append(len(request))


def _place(remote: RemoteDevice, model: LoadedModel) -> coordinator.Assignment | None:
    """A place in the round that trains on this model, unless there is none left."""
    modes = [model.manifest.message.model.privacy_mode]
    answer = coordinator.check_in(remote.channel, model.manifest.model_version, modes)
    if isinstance(answer, coordinator.Assignment) and answer.manifest_sha256 == model.manifest.sha256:
        return answer
    return None


def those_in_time(workers: ThreadPoolExecutor, deliver: Callable[[T], None], those: Sequence[T]) -> list[T]:
    """Let each of them deliver; return those for which the round still waited."""

    def is_in_time(one: T) -> bool:
        try:
            deliver(one)
        except RefusedError as refused:
            if not is_too_late(refused):
                raise
            return False
        return True

    return [one for one, stays in zip(those, workers.map(is_in_time, those), strict=True) if stays]
