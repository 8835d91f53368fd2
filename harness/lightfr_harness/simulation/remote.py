"""A fleet that trains with a real coordinator: each device has its own certificate and its own mutual-TLS connection.

The devices share one copy of what is public, the model; a real device has its own. The rest is what the SDK does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lightfr._wire import coordinator, tls
from lightfr._wire.channel import Channel
from lightfr.clear_round import TOO_LATE
from lightfr.enrollment import new_key_and_request, pem
from lightfr.errors import RefusedError
from lightfr.model.folder import LoadedModel, ModelFolder
from lightfr.secagg import Vector, gate_vector, round_vector
from lightfr.secagg.session import DEFAULT_MINIMUM_COHORT
from lightfr.trust import Trust
from lightfr.v1 import model_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.fleet import SimulatedDevice
from lightfr_harness.simulation.part import STEPS, Part

# Devices that talk at the same time. More would only wait for the interpreter.
WORKERS = 8


@dataclass
class RemoteDevice:
    """A simulated device with an identity."""

    device: SimulatedDevice
    channel: Channel


class RemoteFleet:
    """Devices that take part in rounds of a coordinator, in the privacy mode of its model."""

    def __init__(
        self, devices: Sequence[SimulatedDevice], authority: Authority, server: str, folder: Path,
        *, minimum_cohort: int = DEFAULT_MINIMUM_COHORT,
    ) -> None:  # fmt: skip
        trust = Trust(authority.folder / "trust.pem")
        folder.mkdir(parents=True, exist_ok=True)
        self.devices = [
            RemoteDevice(
                device, Channel(server, tls.context(trust.path, identity_of(authority, folder / f"{number}.pem")))
            )
            for number, device in enumerate(devices)
        ]
        self._models = ModelFolder(folder / "models", trust)
        self._minimum_cohort = minimum_cohort
        # One model is fitted by one thread at a time.
        self._fitting = threading.Lock()
        self.model: LoadedModel | None = None

    def sync(self) -> LoadedModel:
        """Fetch the newest model, once for all."""
        channel, old = self.devices[0].channel, self.model
        signed = coordinator.get_manifest(channel, old.manifest.model_version if old else 0)
        if signed is not None:
            self.model = self._models.fetch(channel, signed, old.manifest if old else None)
            self.model.published.set_open_rows(self._models.open_rows(channel, self.model.manifest))
            if old is not None:
                old.close()
        if self.model is None:
            raise RuntimeError("the coordinator has no model")
        return self.model

    def take_part(self, chosen: Sequence[int], progress: Callable[[str], None] | None = None) -> int:
        """Let these devices offer themselves for the current round; returns how many of them did all that it asks.

        In a secure round `progress` hears of each stage, once all of them have come so far.
        """
        model = self.sync()
        is_clear = model.manifest.message.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR
        with ThreadPoolExecutor(WORKERS) as workers:
            places = workers.map(lambda number: _place(self.devices[number], model), chosen)
            placed = [(self.devices[number], place) for number, place in zip(chosen, places, strict=True) if place]
            if is_clear:
                return sum(workers.map(lambda one: self._upload(model, *one), placed))
            return _walk(workers, [self._part(model, *one) for one in placed], progress or (lambda stage: None))

    def _upload(self, model: LoadedModel, remote: RemoteDevice, place: coordinator.Assignment) -> bool:
        """Take part in the clear."""
        with self._fitting:
            update = remote.device.take_part(model.published, os.urandom)
        request = coordinator.encode_upload(place, os.urandom(coordinator.UPLOAD_ID_BYTES), update)
        return _is_in_time(coordinator.upload, remote.channel, request)

    def _part(self, model: LoadedModel, remote: RemoteDevice, place: coordinator.Assignment) -> Part:
        def make_vector(is_gate_refresh: bool, cohort: int) -> Vector:
            if is_gate_refresh:
                return gate_vector(model.codes.n_items, remote.device.interactions, cohort)
            with self._fitting:
                update = remote.device.update(model.published, os.urandom)
            return round_vector(model.published, update, cohort)

        return Part(remote.channel, place, model.manifest.signing_key, self._minimum_cohort, make_vector)

    def close(self) -> None:
        for remote in self.devices:
            remote.channel.close()
        if self.model is not None:
            self.model.close()


def _place(remote: RemoteDevice, model: LoadedModel) -> coordinator.Assignment | None:
    """A place in the round that trains on this model, unless there is none left."""
    modes = [model.manifest.message.model.privacy_mode]
    answer = coordinator.check_in(remote.channel, model.manifest.model_version, modes)
    is_place = isinstance(answer, coordinator.Assignment) and answer.manifest_sha256 == model.manifest.sha256
    return answer if is_place else None


def _walk(workers: ThreadPoolExecutor, parts: list[Part], progress: Callable[[str], None]) -> int:
    """Take a secure round step by step, all devices each of them: none is due before all have done the last."""
    for step, stage in zip(STEPS, ("keys_sent", "shares_sent", "uploaded", "revealed"), strict=True):
        in_time = workers.map(partial(_is_in_time, step), parts)
        parts = [part for part, stays in zip(parts, in_time, strict=True) if stays]
        progress(stage)
    return len(parts)


def _is_in_time(deliver: Callable[..., None], *what: object) -> bool:
    """Deliver; say whether the round still waited for it."""
    try:
        deliver(*what)
    except RefusedError as refused:
        if refused.reason not in TOO_LATE:
            raise
        return False
    return True


def identity_of(authority: Authority, path: Path) -> Path:
    """A certificate for a device of the simulation, without an invitation."""
    private_key, request = new_key_and_request()
    _, certificate = authority.issue(request)
    path.touch(mode=0o600)
    path.write_bytes(private_key + pem("CERTIFICATE", certificate))
    return path
