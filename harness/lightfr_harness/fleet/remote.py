"""A fleet that trains with a real coordinator: each device has its own certificate and its own mutual-TLS connection.

The devices share one copy of what is public, the model; a real device has its own. The rest is what the SDK does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lightfr._wire import coordinator, tls
from lightfr._wire.channel import Channel
from lightfr.enrollment import new_key_and_request, pem
from lightfr.errors import RefusedError
from lightfr.models import LoadedModel, ModelFolder
from lightfr.trust import Trust
from lightfr.v1 import model_pb2
from lightfr_harness.authority import Authority
from lightfr_harness.fleet.devices import SimulatedDevice

# Devices that talk at the same time. More would only wait for the interpreter.
WORKERS = 8


@dataclass
class RemoteDevice:
    """A simulated device with an identity."""

    device: SimulatedDevice
    channel: Channel


class RemoteFleet:
    """Devices that take part in rounds of a coordinator."""

    def __init__(self, devices: Sequence[SimulatedDevice], authority: Authority, server: str, folder: Path) -> None:
        trust = Trust(authority.folder / "trust.pem")
        folder.mkdir(parents=True, exist_ok=True)
        self.devices = [
            RemoteDevice(
                device, Channel(server, tls.context(trust.path, identity_of(authority, folder / f"{number}.pem")))
            )
            for number, device in enumerate(devices)
        ]
        self._models = ModelFolder(folder / "models", trust)
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

    def take_part(self, chosen: Sequence[int]) -> int:
        """Let these devices offer themselves for the current round; returns how many uploads were acknowledged."""
        model = self.sync()
        with ThreadPoolExecutor(WORKERS) as workers:
            return sum(workers.map(lambda number: self._one(self.devices[number], model), chosen))

    def _one(self, remote: RemoteDevice, model: LoadedModel) -> bool:
        modes = [model_pb2.PRIVACY_MODE_CLEAR]
        answer = coordinator.check_in(remote.channel, model.manifest.model_version, modes)
        if isinstance(answer, coordinator.RetryWindow) or answer.manifest_sha256 != model.manifest.sha256:
            return False
        with self._fitting:
            update = remote.device.take_part(model.published, os.urandom)
        try:
            request = coordinator.encode_upload(answer, os.urandom(coordinator.UPLOAD_ID_BYTES), update)
            coordinator.upload(remote.channel, request)
        except RefusedError as refused:
            if refused.reason != "ROUND_CLOSED":
                raise
            return False
        return True

    def close(self) -> None:
        for remote in self.devices:
            remote.channel.close()
        if self.model is not None:
            self.model.close()


def identity_of(authority: Authority, path: Path) -> Path:
    """A certificate for a device of the simulation, without an invitation."""
    private_key, request = new_key_and_request()
    _, certificate = authority.issue(request)
    path.touch(mode=0o600)
    path.write_bytes(private_key + pem("CERTIFICATE", certificate))
    return path
