"""A server that a test scripts: it publishes signed models, and can be told to lie about any of them."""

import base64
import hashlib
import json

import numpy as np

from lightfr.v1 import coordinator_pb2, error_pb2, manifest_pb2, model_pb2
from lightfr_harness.server.artifacts import make_bitmap, make_delta, write_catalogue
from tests.certificates import credentials_of

ITEMS = [f"item {number}" for number in range(500)]
# What the real coordinators of the tests have.
COORDINATED_ITEMS = ITEMS[:300]


def random_codes(seed, code_bits=64):
    return np.random.default_rng(seed).integers(0, 256, (len(ITEMS), code_bits // 8), np.uint8)


def with_changed_rows(codes, rows=5):
    """The same codes but for the first rows, whose every bit is flipped."""
    changed = codes.copy()
    changed[:rows] ^= 255
    return changed


def refusal(code, status, reason):
    """A Connect error with one of error.proto's reasons."""
    detail = error_pb2.ErrorDetail(reason=error_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}"))
    value = base64.b64encode(detail.SerializeToString()).decode().rstrip("=")
    body = {"code": code, "message": "told", "details": [{"type": "lightfr.v1.ErrorDetail", "value": value}]}
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


def served(client):
    """The version in use and its first code; recommending works."""
    assert len(client.recommend(3)) == 3
    return client.status().model_version, bytes(client._user.model.codes.row(0))


def files_of(client):
    """The names of the files that a client keeps of its model."""
    return {file.name for file in client._user.models._path.iterdir()}


def names_of(message):
    """The names that a client gives the files of a manifest, and no other."""
    files = [message.codes, *message.catalogue_parts]
    files += [getattr(message, name) for name in ("open_rows", "removed_items") if message.HasField(name)]
    return {"current", *(file.sha256.hex() for file in files)}


class Publisher:
    """Answers a ScriptedServer. `current` is the signed manifest that GetManifest gives to whoever has another.

    `files` are the artifacts by digest; `answers` replace the answer of a method or a path: fixed, or a function of the
    request's body.
    """

    def __init__(self, authority, folder):
        self._credentials, self._folder = credentials_of(authority), folder
        self.files, self.answers = {}, {}
        self.current = self.message = None
        self.uploads = []

    def publish(self, version, codes, *, ids=ITEMS, parts=(), deltas_from=(), is_open=None, removed=None, **fields):
        """Sign a version of these codes and make it the current one; return its Manifest message.

        `ids` are the first part of the catalogue, `parts` the ids of the others. `is_open` and `removed` are by item.
        """
        model = {
            "code_bits": 8 * codes.shape[1],
            "item_count": len(codes) if is_open is None else len(is_open),
            "objective": model_pb2.OBJECTIVE_CATALOGUE,
            "upload_kind": model_pb2.UPLOAD_KIND_TERNARY,
            "privacy_mode": model_pb2.PRIVACY_MODE_CLEAR,
            "max_rows": 64,
            **fields,
        }
        message = manifest_pb2.Manifest(wire_version=1, model_version=version, model=model_pb2.RoundModel(**model))
        message.codes.CopyFrom(self.keep(codes.tobytes()))
        message.catalogue_parts.extend(self.keep(self._catalogue(part)) for part in (ids, *parts))
        for old in deltas_from:
            delta = message.codes_deltas.add(from_sha256=hashlib.sha256(old.tobytes()).digest())
            delta.artifact.CopyFrom(self.keep(make_delta(old, codes)))
        if is_open is not None:
            message.open_rows.CopyFrom(self.keep(make_bitmap(is_open)))
        if removed is not None:
            message.removed_items.CopyFrom(self.keep(make_bitmap(removed)))
        return self.sign(message)

    def sign(self, message):
        """Make this manifest the current one."""
        self.message, self.current = message, self._credentials.sign(message.SerializeToString())
        return message

    def keep(self, content):
        """Have a file to download; returns its Artifact."""
        digest = hashlib.sha256(content).digest()
        self.files[digest.hex()] = content
        return manifest_pb2.Artifact(sha256=digest, size_bytes=len(content))

    def assignment(self, **fields):
        """Answer check-ins with a place in a round of the current model."""
        content = self.current.manifest
        place = {
            "round_id": b"r" * 16,
            "model_version": self.message.model_version,
            "manifest_sha256": hashlib.sha256(content).digest(),
            "deadline_ms": 60_000,
            "upload_limit_bytes": 1_000_000,
            **fields,
        }
        answer = coordinator_pb2.CheckInResponse(assignment=coordinator_pb2.Assignment(**place))
        self.answers["CheckIn"] = (200, {}, answer.SerializeToString())

    def __call__(self, _verb, path, headers, body):
        name = path.rsplit("/", 1)[-1]
        if name in self.answers:
            answer = self.answers[name]
            return answer(body) if callable(answer) else answer
        if path.startswith("/artifacts/"):
            return self._artifact(name, headers)
        return getattr(self, f"_{name}")(body)

    def _artifact(self, name, headers):
        content = self.files[name]
        if "Range" not in headers:
            return 200, {}, content
        start = int(headers["Range"].removeprefix("bytes=").removesuffix("-"))
        return 206, {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}, content[start:]

    def _GetManifest(self, body):  # noqa: N802
        known = coordinator_pb2.GetManifestRequest.FromString(body).known_model_version
        news = None if known == self.message.model_version else self.current
        return 200, {}, coordinator_pb2.GetManifestResponse(signed_manifest=news).SerializeToString()

    def _Upload(self, body):  # noqa: N802
        self.uploads.append(body)
        upload_id = coordinator_pb2.UploadRequest.FromString(body).upload_id
        receipt = coordinator_pb2.UploadResponse(upload_id=upload_id, request_sha256=hashlib.sha256(body).digest())
        return 200, {}, receipt.SerializeToString()

    def _catalogue(self, ids):
        write_catalogue(self._folder / "catalogue", ids)
        return (self._folder / "catalogue").read_bytes()


def asked(publisher):
    """Names of the artifacts that were asked for."""
    paths = [path for _, path, _, _ in publisher.server.requests]
    return [path.removeprefix("/artifacts/") for path in paths if path.startswith("/artifacts/")]
