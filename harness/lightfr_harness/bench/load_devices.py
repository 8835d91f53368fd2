"""Devices for `bench load`: as cheap as a client of the protocol can be, since they share the cores with the server."""

from __future__ import annotations

import hashlib
import secrets
import socket
import ssl
from pathlib import Path
from typing import Self

import numpy as np

from lightfr._wire import tls
from lightfr.errors import LightFRError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.identities import identity_of

# 64 rows of 144 bits make an UploadRequest of about 2.6 KB.
BITS, ROWS, ITEMS = 144, 64, 2000
TIMEOUT_SECONDS = 30.0
CHECK_IN = pb.CheckInRequest(
    capabilities=pb.Capabilities(
        wire_versions=[1], upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY], privacy_modes=[model_pb2.PRIVACY_MODE_CLEAR]
    )
).SerializeToString()


class LoadError(LightFRError):
    """An answer that a unit did not expect."""


class Connection:
    """One TLS connection, and no more of HTTP than these requests need."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        plain = socket.create_connection(address, TIMEOUT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            # No session is handed in, so every handshake is a whole one.
            self._socket = context.wrap_socket(plain, server_hostname=address[0])
        except BaseException:
            plain.close()
            raise

    def call(self, method: str, body: bytes) -> tuple[int, bytes]:
        """HTTP status and body."""
        head = (
            f"POST /lightfr.v1.CoordinatorService/{method} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/proto\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        answer = b""
        while not _is_whole(answer):
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the server closed the connection before its answer was whole")
            answer += more
        return int(answer[9:12]), answer.partition(b"\r\n\r\n")[2]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def called(connection: Connection, method: str, body: bytes) -> bytes:
    """The answer; raises LoadError when it is a refusal."""
    status, answer = connection.call(method, body)
    if status != 200:
        raise LoadError(f"{method} was answered with status {status}")
    return answer


def _is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


class Fleet:
    """Identities, each with its own key and certificate, and what they upload."""

    def __init__(self, authority: Authority, folder: Path, count: int) -> None:
        trust, pem = authority.folder / "trust.pem", folder / "device.pem"
        # Each identity is read from the same file, which is only on the way.
        self.contexts = [tls.context(trust, identity_of(authority, pem)) for _ in range(count)]
        self._row_update = _row_update()

    def upload(self, place: pb.Assignment) -> tuple[bytes, bytes]:
        """(UploadRequest, the UploadResponse that it must get)."""
        upload_id = secrets.token_bytes(16)
        request = pb.UploadRequest(
            round_id=place.round_id,
            manifest_sha256=place.manifest_sha256,
            upload_id=upload_id,
            row_update=self._row_update,
        ).SerializeToString()
        receipt = pb.UploadResponse(upload_id=upload_id, request_sha256=hashlib.sha256(request).digest())
        return request, receipt.SerializeToString()


def _row_update() -> update_pb2.RowUpdate:
    rng = np.random.default_rng(0)
    nonzero, positive = (rng.integers(0, 256, ROWS * BITS // 8, np.uint8) for _ in range(2))
    return update_pb2.RowUpdate(
        code_bits=BITS,
        item_indices=np.sort(rng.permutation(ITEMS)[:ROWS]).astype("<u4").tobytes(),
        ternary=update_pb2.TernaryRows(nonzero=nonzero.tobytes(), positive=(nonzero & positive).tobytes()),
        user_code=rng.bytes(BITS // 8),
    )
