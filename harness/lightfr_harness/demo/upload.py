"""What the coordinator got from one device, beside what the same device would have told it in the clear."""

from __future__ import annotations

import os
from typing import Any

from lightfr import _wire
from lightfr._wire.channel import Channel
from lightfr.model.folder import LoadedModel
from lightfr.secagg import blocks_of
from lightfr.v1 import coordinator_pb2
from lightfr_harness.simulation.fleet import SimulatedDevice


class UploadRecorder:
    """A device's channel that keeps an upload of training as it goes into TLS, which is how the coordinator gets it.

    Uploads of evaluation rounds are far smaller, so the largest upload is one of training.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.upload = coordinator_pb2.UploadRequest()

    def call(self, method: str, request: bytes, limit_bytes: int) -> bytes:
        if method == "CoordinatorService/Upload":
            upload = coordinator_pb2.UploadRequest.FromString(request)
            self.upload = max(upload, self.upload, key=lambda each: len(each.masked_vector))
        return self._channel.call(method, request, limit_bytes)

    def close(self) -> None:
        self._channel.close()


def compare(upload: coordinator_pb2.UploadRequest, device: SimulatedDevice, model: LoadedModel) -> dict[str, Any]:
    """Count what is in either. The device is a simulated one: of a real one nobody could tell what it did not send."""
    masked = upload.masked_vector
    # A copy, so that the device itself is not fitted once more.
    update = SimulatedDevice(device.interactions, device.code).update(model.published, os.urandom)
    rows = blocks_of(model.published, 1)[0]
    return {
        "masked_bytes": len(masked),
        "masked_ones": int.from_bytes(masked, "little").bit_count() / (8 * len(masked)),
        "masked_items": rows.count // model.codes.code_bits,
        "clear_bytes": len(_wire.encode_update(update)),
        "clear_items": len(set(update.item_indices) & set(device.interactions.arrays()[0])),
        "clear_code_bits": 8 * len(update.user_code),
    }
