"""What a server can send: answers, refusals and artifacts, as the SDK takes them in."""

import base64
import hashlib
import io
import json
import struct
import zlib
from array import array
from contextlib import asynccontextmanager, suppress
from email.parser import Parser
from functools import lru_cache
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from unittest import mock

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lightfr import ItemCodes
from lightfr._kernel import pack_bits
from lightfr._wire import channel, coordinator, decode_round_model, tls
from lightfr._wire.downloads import download
from lightfr._wire.refusals import refusal
from lightfr.device import Trust, key_id
from lightfr.errors import ArtifactFileError, LightFRError
from lightfr.model import manifest as manifests
from lightfr.model.bitmaps import read_bitmap
from lightfr.model.catalogue import Catalogue
from lightfr.model.catalogue_part import HEADER as CATALOGUE_HEADER
from lightfr.model.deltas import HEADER, apply_delta
from lightfr.model.manifest import Manifest
from lightfr.training import PublishedModel
from lightfr.v1 import coordinator_pb2, enrollment_pb2, error_pb2, manifest_pb2, model_pb2
from lightfr_harness.server.artifacts import make_bitmap, make_delta, write_catalogue
from lightfr_harness.server.coordinator.refusals import CODE_OF_REASON, Refusal
from tests.campaigns.step_targets import step_targets

N_ITEMS, BITS = 30, 16
ROW_BYTES = BITS // 8
UPLOAD = b"what was uploaded"


class Canned:
    """Stands for the connection: whatever is asked, the answer is the same, and read with the SDK's own limit."""

    def __init__(self, answer):
        self._answer = answer

    def call(self, method, request, limit_bytes):
        return channel._read(WholeAnswer(self._answer), limit_bytes)


class WholeAnswer(io.BytesIO):
    """An HTTP answer that has arrived to its end."""

    length, chunked = 0, False


class Signer:
    """A server's manifest key, and a trust file that names it."""

    def __init__(self, folder):
        self._key = Ed25519PrivateKey.generate()
        public = self._key.public_key()
        path = Path(folder) / "trust.pem"
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        path.write_bytes(pem + pem.replace(b"PUBLIC KEY", b"LIGHTFR MEMBERSHIP KEY"))
        self.trust = Trust(path)
        self.key_id = key_id(public.public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, manifest):
        return manifest_pb2.SignedManifest(
            manifest=manifest, signature=self._key.sign(b"lightfr manifest v1\n" + manifest), key_id=self.key_id
        )


class DeviceTarget:
    """One kind of thing that a device takes in: `make` gives valid ones, `take` uses a spoiled one."""

    allowed, waits = LightFRError, False
    limit_bytes = 70_000

    def __init__(self, name, kind, make, take):
        self.name, self.kind, self._make, self._take = name, kind, make, take

    @asynccontextmanager
    async def opened(self, folder):
        self._shared = Shared(Path(folder))
        self._valid = self._make(self._shared)
        self.slots = len(self._valid) * -(-64 // len(self._valid))
        yield

    async def valid(self):
        """The same messages again and again."""
        return self._valid * (self.slots // len(self._valid))

    async def judge(self, slot, message):
        """Take a message in; what came of it."""
        return self._take(self._shared, message) or "taken"


class Shared:
    """A small model and where its files are."""

    def __init__(self, folder):
        self.folder = folder
        self.signer = Signer(folder)
        rng = np.random.default_rng(1)
        self.old = rng.integers(0, 256, (N_ITEMS, ROW_BYTES), np.uint8)
        self.new = np.concatenate((self.old, rng.integers(0, 256, (4, ROW_BYTES), np.uint8)))
        self.new[3:9] ^= 5
        order = np.concatenate((np.arange(12, N_ITEMS), np.arange(12), [-1] * 4))
        self.delta = make_delta(self.old, self.new[order], order)
        (folder / "old.codes").write_bytes(self.old.tobytes())
        self.codes = ItemCodes(self.old.tobytes(), BITS)
        self.file = folder / "artifact"

    def model(self):
        return model_pb2.RoundModel(
            code_bits=BITS,
            item_count=N_ITEMS,
            objective=model_pb2.OBJECTIVE_CATALOGUE,
            upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
            mean_user=bytes(2 * BITS),
            max_rows=8,
            privacy_mode=model_pb2.PRIVACY_MODE_CLEAR,
        )

    def manifest(self):
        def artifact(size_bytes):
            return manifest_pb2.Artifact(sha256=hashlib.sha256(bytes(size_bytes)).digest(), size_bytes=size_bytes)

        return manifest_pb2.Manifest(
            wire_version=1,
            model_version=7,
            created_unix_seconds=1_700_000_000,
            model=self.model(),
            codes=artifact(10 * ROW_BYTES),
            codes_deltas=[manifest_pb2.CodesDelta(from_sha256=bytes(32), artifact=artifact(20))],
            catalogue_parts=[artifact(200), artifact(60)],
            open_rows=artifact(12),
            removed_items=artifact(11),
            artifacts_address="https://cache.example:443",
        ).SerializeToString()


# Manifests and models.


def _use_manifest(shared, signed):
    manifest = Manifest(signed, shared.signer.trust)
    manifest.delta_from(bytes(32))
    PublishedModel(shared.codes, manifest.message.model)


def _take_get_manifest(shared, message):
    signed = coordinator.get_manifest(Canned(message), 0)
    if signed is None:
        return "nothing new"
    return _use_manifest(shared, signed)


def _is_right(envelope, trust):
    """Stands for the check of a signature, which GetManifestResponse and SignedManifest try."""


def _take_manifest(shared, message):
    signed = manifest_pb2.SignedManifest(manifest=message, key_id=shared.signer.key_id)
    with mock.patch.object(manifests, "_verify", _is_right):
        _use_manifest(shared, signed.SerializeToString())


def _take_round_model(shared, message):
    _ = PublishedModel(shared.codes, decode_round_model(message)).fit


# Answers.


def _make_check_in(_):
    assignment = coordinator_pb2.Assignment(
        round_id=bytes(16), model_version=7, manifest_sha256=bytes(32), deadline_ms=60_000, upload_limit_bytes=4096
    )
    window = coordinator_pb2.RetryWindow(
        earliest_ms=1000, latest_ms=2000, reason=coordinator_pb2.RETRY_REASON_ROUND_FULL
    )
    answer = coordinator_pb2.CheckInResponse
    return [m.SerializeToString() for m in (answer(assignment=assignment), answer(retry_window=window))]


def _take_check_in(_, message):
    return type(coordinator.check_in(Canned(message), 7, [model_pb2.PRIVACY_MODE_CLEAR])).__name__


def _make_receipt(_):
    digest = hashlib.sha256(UPLOAD).digest()
    return [coordinator_pb2.UploadResponse(upload_id=bytes(16), request_sha256=digest).SerializeToString()]


def _take_error(_, message):
    raise refusal(message[0] * 2 if message else 500, message)


def _take_detail(_, message):
    value = base64.b64encode(message).rstrip(b"=").decode()
    details = [{"type": "lightfr.v1.ErrorDetail", "value": value}]
    raise refusal(400, json.dumps({"code": "invalid_argument", "message": "no", "details": details}).encode())


# Whatever stands in for HTTP.


class DeafSocket:
    """Hears nothing and says what it was made with."""

    def __init__(self, answer):
        self._answer = answer

    def makefile(self, _):
        return io.BytesIO(self._answer)

    def sendall(self, _):
        pass

    def close(self):
        pass


class HttpTarget(DeviceTarget):
    """Answers below the messages: status lines, headers, bodies; to a call, and to a download."""

    def __init__(self):
        super().__init__("HttpAnswer", None, _make_http, self._take)

    @asynccontextmanager
    async def opened(self, folder):
        target = self

        class Connection(HTTPConnection):
            response_class = tls.Response

            def __init__(self, host, port, **_):
                super().__init__(host, port)

            def connect(self):
                self.sock = DeafSocket(target.answer)

        # Both uses of an answer, and many answers, have the same headers.
        parse = lru_cache(256)(Parser(_class=HTTPMessage).parsestr)
        parsed_once = mock.patch.object(Parser, "parsestr", lambda _, text: parse(text))
        with mock.patch.object(channel, "Connection", Connection), parsed_once:
            async with super().opened(folder):
                yield

    def _take(self, shared, message):
        self.answer = message
        connection = channel.Channel("https://localhost", None)
        artifact = manifest_pb2.Artifact(sha256=hashlib.sha256(UPLOAD).digest(), size_bytes=len(UPLOAD))
        try:
            # The answer is the same each time: another try without progress would show nothing new.
            download(connection, artifact, shared.folder, tries=1).unlink()
        except LightFRError:
            (shared.folder / f"{artifact.sha256.hex()}.part").unlink(missing_ok=True)
        with connection._request("POST", "/", {}, b"", 4096) as response:
            channel._read(response, 4096)


def _make_http(_):
    whole = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: "x"\r\n\r\n%s' % (len(UPLOAD), UPLOAD)
    part = b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-4/17\r\nContent-Length: 5\r\n\r\n" + UPLOAD[:5]
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n" + UPLOAD + b"\r\n0\r\n\r\n"
    refused = b"HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    return [whole, part, chunked, refused, b"HTTP/1.1 416 No\r\nContent-Range: bytes */9\r\nContent-Length: 0\r\n\r\n"]


# Artifacts.


def _make_catalogues(shared):
    made = []
    for ids in (range(-5, 60), [n**4 for n in range(600)], [f"item {number}" for number in range(300)]):
        write_catalogue(shared.file, list(ids))
        made.append(shared.file.read_bytes())
    return made


def _take_catalogue(shared, message, parts=2):
    shared.file.write_bytes(message)
    with Catalogue.open([shared.file] * parts) as catalogue:
        # A device checks first. Here the look-ups must stand alone too.
        with suppress(ArtifactFileError):
            catalogue.check()
        for item_id in ("item 3", "item 39", "zzz", 4, -6, 500**4, 2**62):
            catalogue.index_of(item_id)
        for index in (0, catalogue.n_items // 4, catalogue.n_items // 2, catalogue.n_items - 1):
            catalogue.id_of(index)


FIRST_ID = b"\x06item 0"
BLOCK_ORDER = pack_bits(array("H", range(40)), 40, 6)


def _make_blocks(shared):
    """What is compressed in a block of strings: it is spoiled first, so that what is inside is reached."""
    write_catalogue(shared.file, [f"item {number}" for number in range(40)])
    blocks = CATALOGUE_HEADER.size + 2 * 4
    return [zlib.decompressobj().decompress(shared.file.read_bytes()[blocks + len(FIRST_ID) :])]


def _take_block(shared, message):
    block = FIRST_ID + zlib.compress(message, 1)
    directory = CATALOGUE_HEADER.pack(b"LFRC", 2, 2, 0, 40) + struct.pack("<II", 0, len(block))
    # How parts go together is tried with whole catalogues.
    _take_catalogue(shared, directory + block + BLOCK_ORDER, parts=1)


def _take_bitmap(shared, message):
    shared.file.write_bytes(message)
    if len(read_bitmap(shared.file, N_ITEMS)) != (N_ITEMS + 7) // 8:
        raise AssertionError("a bitmap of another size was taken")


def _take_delta(shared, message):
    shared.file.write_bytes(message)
    written = io.BytesIO()
    apply_delta(shared.file, shared.folder / "old.codes", written, max_bytes=shared.new.nbytes)
    if len(written.getvalue()) > shared.new.nbytes:
        raise AssertionError("more was written than allowed")


def _make_inflated(shared):
    """A delta whose compressed part is not, yet: it is spoiled first, so that what is inside is reached."""
    delta = shared.delta
    return [delta[: HEADER.size] + zlib.decompress(delta[HEADER.size :])]


def _take_inflated(shared, message):
    _take_delta(shared, message[: HEADER.size] + zlib.compress(message[HEADER.size :], 1))


def device_targets():
    """One target for each answer and artifact."""
    pb, enrolled = (
        coordinator_pb2,
        enrollment_pb2.EnrollResponse(certificates=[b"0" * 500], membership=bytes(104)).SerializeToString(),
    )
    return [
        DeviceTarget(
            "GetManifestResponse",
            pb.GetManifestResponse,
            lambda s: [pb.GetManifestResponse(signed_manifest=s.signer.sign(s.manifest())).SerializeToString()],
            _take_get_manifest,
        ),
        DeviceTarget(
            "SignedManifest",
            manifest_pb2.SignedManifest,
            lambda s: [s.signer.sign(s.manifest()).SerializeToString()],
            _use_manifest,
        ),
        DeviceTarget("Manifest", manifest_pb2.Manifest, lambda s: [s.manifest()], _take_manifest),
        DeviceTarget("RoundModel", model_pb2.RoundModel, lambda s: [s.model().SerializeToString()], _take_round_model),
        DeviceTarget("CheckInResponse", pb.CheckInResponse, _make_check_in, _take_check_in),
        DeviceTarget(
            "UploadResponse", pb.UploadResponse, _make_receipt, lambda _, m: coordinator.upload(Canned(m), UPLOAD)
        ),
        DeviceTarget(
            "EnrollResponse",
            enrollment_pb2.EnrollResponse,
            lambda _: [enrolled],
            lambda _, m: coordinator.enroll(Canned(m), "t" * 20, b"request", bytes(32)) and None,
        ),
        DeviceTarget(
            "RenewCertificateResponse",
            enrollment_pb2.RenewCertificateResponse,
            lambda _: [enrolled],
            lambda _, m: coordinator.renew(Canned(m), b"request", bytes(32)) and None,
        ),
        DeviceTarget(
            "ConnectError",
            None,
            lambda _: [Refusal(reason, "a message").body() for reason in CODE_OF_REASON],
            _take_error,
        ),
        DeviceTarget(
            "ErrorDetail",
            error_pb2.ErrorDetail,
            lambda _: [error_pb2.ErrorDetail(reason=2, wire_versions=[1, 2], limit_bytes=9).SerializeToString()],
            _take_detail,
        ),
        HttpTarget(),
        DeviceTarget("Catalogue", None, _make_catalogues, _take_catalogue),
        DeviceTarget("InflatedBlock", None, _make_blocks, _take_block),
        DeviceTarget("Bitmap", None, lambda _: [make_bitmap(np.arange(N_ITEMS) < n) for n in (0, 9, 30)], _take_bitmap),
        DeviceTarget("Delta", None, lambda s: [s.delta], _take_delta),
        DeviceTarget("InflatedDelta", None, _make_inflated, _take_inflated),
        *step_targets(),
    ]
