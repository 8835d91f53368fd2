"""The procedures of CoordinatorService: bytes in, bytes out, or a Refusal. No HTTP, so that a fuzzer can call it."""

from __future__ import annotations

from lightfr.membership import MEMBERSHIP_BYTES
from lightfr.secagg.views import SIGNATURE_BYTES
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import most_holders
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.deliveries import REVEALED_RECORD_BYTES, SEALED_RECORD_BYTES
from lightfr_harness.server.coordinator.phases import (
    ACKNOWLEDGING,
    ADVERTISING,
    CONFIRMING,
    INCLUDING,
    REVEALING,
    SHARING,
)
from lightfr_harness.server.coordinator.publishing import WIRE_VERSION
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.requests import Method, malformed, parse, require_length, seconds_allowed

# Far above what a legal message of these kinds has: capabilities are at most 48 small numbers.
SMALL_LIMIT_BYTES = 1024
_MOST_OF_A_CAPABILITY = 16
LONGEST_STEP_WAIT_MS = 20_000
# Of the time that a request may take, how much a device that waits for a step is kept.
_WAITING_SHARE = 0.8


class CoordinatorService:
    """lightfr.v1.CoordinatorService for devices whose identity is known already."""

    name = "lightfr.v1.CoordinatorService"

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.methods: dict[str, Method] = {
            "GetManifest": self.get_manifest,
            "CheckIn": self.check_in,
            "Upload": self.upload,
            "AdvertiseKeys": self.advertise_keys,
            "ShareKeys": self.share_keys,
            "AcknowledgeShares": self.acknowledge_shares,
            "SignIncluded": self.sign_included,
            "SignSurvivors": self.sign_survivors,
            "RevealShares": self.reveal_shares,
            "GetStep": self.get_step,
            "GetRoundStatus": self.get_round_status,
        }

    def limit_bytes(self, method: str) -> int:
        """The largest request that is read."""
        if method == "Upload":
            return self._coordinator.largest_upload_bytes
        places = self._coordinator.most_places()
        records = {
            "ShareKeys": most_holders(places) * SEALED_RECORD_BYTES,
            "AcknowledgeShares": (places + 7) // 8,
            "RevealShares": places * REVEALED_RECORD_BYTES,
        }
        return SMALL_LIMIT_BYTES + records.get(method, 0)

    async def get_manifest(self, device: str, body: bytes) -> bytes:
        request = parse(pb.GetManifestRequest, body)
        _require_capabilities(request.capabilities)
        # Another replica may have published: a device that saw a version must not be told of an older one.
        await self._coordinator.follow(device)
        version = self._coordinator.version
        if request.known_model_version == version.manifest.model_version:
            return b""
        return pb.GetManifestResponse(signed_manifest=version.signed).SerializeToString()

    async def check_in(self, device: str, body: bytes) -> bytes:
        request = parse(pb.CheckInRequest, body)
        _require_capabilities(request.capabilities)
        model = self._coordinator.version.manifest.model
        can = request.capabilities
        if model.upload_kind not in can.upload_kinds or model.privacy_mode not in can.privacy_modes:
            return self._coordinator.retry(pb.RETRY_REASON_NOT_CAPABLE).SerializeToString()
        return (await self._coordinator.check_in(device)).SerializeToString()

    async def upload(self, device: str, body: bytes) -> bytes:
        request = parse(pb.UploadRequest, body)
        require_length("round_id", request.round_id, 16)
        require_length("manifest_sha256", request.manifest_sha256, 32)
        require_length("upload_id", request.upload_id, 16)
        receipt = await self._coordinator.upload(device, request, body)
        return pb.UploadResponse(upload_id=receipt.upload_id, request_sha256=receipt.request_sha256).SerializeToString()

    async def advertise_keys(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.AdvertiseKeysRequest, body)
        require_length("round_id", request.round_id, 16)
        require_length("mask_public_key", request.mask_public_key, 32)
        require_length("share_public_key", request.share_public_key, 32)
        require_length("membership", request.membership, MEMBERSHIP_BYTES)
        require_length("signature", request.signature, SIGNATURE_BYTES)
        await self._coordinator.steps.deliver(ADVERTISING, device, request, body)
        return b""

    async def share_keys(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.ShareKeysRequest, body)
        require_length("round_id", request.round_id, 16)
        await self._coordinator.steps.deliver(SHARING, device, request, body)
        return b""

    async def acknowledge_shares(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.AcknowledgeSharesRequest, body)
        require_length("round_id", request.round_id, 16)
        await self._coordinator.steps.deliver(ACKNOWLEDGING, device, request, body)
        return b""

    async def sign_included(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.SignIncludedRequest, body)
        require_length("round_id", request.round_id, 16)
        require_length("signature", request.signature, SIGNATURE_BYTES)
        await self._coordinator.steps.deliver(INCLUDING, device, request, body)
        return b""

    async def sign_survivors(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.SignSurvivorsRequest, body)
        require_length("round_id", request.round_id, 16)
        require_length("signature", request.signature, SIGNATURE_BYTES)
        await self._coordinator.steps.deliver(CONFIRMING, device, request, body)
        return b""

    async def reveal_shares(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.RevealSharesRequest, body)
        require_length("round_id", request.round_id, 16)
        await self._coordinator.steps.deliver(REVEALING, device, request, body)
        return b""

    async def get_step(self, device: str, body: bytes) -> bytes:
        request = parse(secure_pb2.GetStepRequest, body)
        require_length("round_id", request.round_id, 16)
        if request.max_wait_ms > LONGEST_STEP_WAIT_MS:
            raise malformed(f"max_wait_ms must be at most {LONGEST_STEP_WAIT_MS}, not {request.max_wait_ms}")
        seconds = min(request.max_wait_ms / 1000, _WAITING_SHARE * seconds_allowed.get())
        return await self._coordinator.steps.step(device, request.round_id, seconds)

    async def get_round_status(self, device: str, body: bytes) -> bytes:
        request = parse(pb.GetRoundStatusRequest, body)
        require_length("round_id", request.round_id, 16)
        return (await self._coordinator.round_status(device, request.round_id)).SerializeToString()


def _require_capabilities(capabilities: pb.Capabilities) -> None:
    lengths = (len(capabilities.wire_versions), len(capabilities.upload_kinds), len(capabilities.privacy_modes))
    if not lengths[0] or max(lengths) > _MOST_OF_A_CAPABILITY:
        raise malformed(
            f"capabilities must list 1 to {_MOST_OF_A_CAPABILITY} wire versions and at most as many kinds and modes"
        )
    if WIRE_VERSION not in capabilities.wire_versions:
        raise Refusal(
            error_pb2.ERROR_REASON_WIRE_VERSION,
            "there is no common wire version",
            wire_versions=[WIRE_VERSION],
        )
