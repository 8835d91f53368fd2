"""Connect's unary calls: headers, bodies, errors and limits. Tried with GetManifest, which changes nothing."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.client import PROTO, SERVICE, Answer, RawClient
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

CALLS = "docs/protocol.md#calls"
ERRORS = "docs/protocol.md#errors"
LIMITS = "docs/protocol.md#limits"
SMALL_LIMIT_BYTES = 1024
PATH = SERVICE + "GetManifest"


def _request(world: World) -> bytes:
    return pb.GetManifestRequest(capabilities=world.capabilities).SerializeToString()


def _client(world: World) -> RawClient:
    """A connection of its own, since some of these spoil it."""
    return world.client(world.device(0).identity)


def _require_manifest(answer: Answer) -> None:
    expect(answer.message(pb.GetManifestResponse).HasField("signed_manifest"), "a signed manifest", "none")


def padded(message: bytes, size: int) -> bytes:
    """The message with an unknown field of bytes, number 2047, that makes it so many bytes long."""
    # Tag: 2047 << 3 | 2 as a varint; then the length in two bytes, which may be written longer than needed.
    content = size - len(message) - 4
    return message + b"\xfa\x7f" + bytes([content & 0x7F | 0x80, content >> 7]) + bytes(content)


@case("connect.other-content-type", "A call in another encoding must not be taken for a message.", CALLS)
def other_content_type(world: World) -> None:
    for kind in ("application/json", "text/plain", "application/grpc"):
        answer = _client(world).post(PATH, _request(world), {"Content-Type": kind})
        expect(answer.status == 415, f"415 for {kind}", answer)


@case("connect.get", "Calls are POST; a GET must not reach them.", CALLS)
def get(world: World) -> None:
    answer = world.device(0).get(PATH)
    expect(answer.status in (404, 405), "404 or 405 for GET on a call", answer)


@case("connect.unknown-method", "A call that is not there must end in a plain no.", CALLS)
def unknown_method(world: World) -> None:
    for path in (SERVICE + "GetEverything", "/lightfr.v1.NoService/GetManifest", "/"):
        answer = _client(world).post(path, _request(world))
        expect(answer.status in (404, 405), f"404 or 405 for {path}", answer)


@case("connect.in-two-pieces", "Fields of a message that comes in two pieces are those of both.", CALLS)
def in_two_pieces(world: World) -> None:
    can, both = world.capabilities, pb.Capabilities()
    both.upload_kinds[:], both.privacy_modes[:] = can.upload_kinds, can.privacy_modes
    pieces = (pb.Capabilities(wire_versions=can.wire_versions), both)
    for order in (pieces, pieces[::-1]):
        body = b"".join(pb.CheckInRequest(capabilities=piece).SerializeToString() for piece in order)
        answer = world.device(0).call("CheckIn", body).message(pb.CheckInResponse)
        is_incapable = answer.retry_window.reason == pb.RETRY_REASON_NOT_CAPABLE
        expect(not is_incapable, "the capabilities of both pieces", "NOT_CAPABLE: those of one")


@case("connect.compressed", "A compressed body must be refused, not taken for a message.", CALLS)
def compressed(world: World) -> None:
    _client(world).post(PATH, _request(world), {"Content-Encoding": "gzip"}).error_with("unimplemented")


@case("connect.identity-encoding", "A body that says that it is not compressed is read.", CALLS)
def identity_encoding(world: World) -> None:
    _require_manifest(_client(world).post(PATH, _request(world), {"Content-Encoding": "identity"}))


@case("connect.protocol-version", "A device of another Connect version must be told, not misread.", CALLS)
def protocol_version(world: World) -> None:
    answer = _client(world).post(PATH, _request(world), {"Connect-Protocol-Version": "2"})
    answer.error_with("invalid_argument")


@case("connect.no-protocol-version", "The version header may be left out, as in a curl command.", CALLS)
def no_protocol_version(world: World) -> None:
    headers = {"Content-Type": PROTO["Content-Type"]}
    _require_manifest(_client(world).request("POST", PATH, _request(world), headers))


@case("connect.timeout", "Devices say how long they wait, with up to 10 digits.", CALLS)
def timeout(world: World) -> None:
    for text in ("30000", "9999999999"):
        _require_manifest(_client(world).post(PATH, _request(world), {"Connect-Timeout-Ms": text}))


@case("connect.bad-timeout", "A time that is no number is a fault of the device.", CALLS)
def bad_timeout(world: World) -> None:
    for text in ("soon", "-1", "12345678901"):
        _client(world).post(PATH, _request(world), {"Connect-Timeout-Ms": text}).error_with("invalid_argument")


@case("connect.error-shape", "Devices act on code and reason: an error they cannot read makes them guess.", ERRORS)
def error_shape(world: World) -> None:
    answer = world.device(0).call("GetRoundStatus", pb.GetRoundStatusRequest(round_id=bytes(16)))
    error = answer.error_with("not_found")
    expect(isinstance(error.get("message"), str), "a message for people in the error", error.get("message"))
    answer.refusal("ROUND_UNKNOWN")


@case("connect.answer-has-a-length", "An answer that ends with the connection may have lost its end.", CALLS)
def answer_has_a_length(world: World) -> None:
    answer = world.device(0).call("GetManifest", _request(world))
    _require_manifest(answer)
    is_framed = "content-length" in answer.headers or answer.headers.get("transfer-encoding") == "chunked"
    expect(is_framed, "Content-Length or chunks in a good answer", answer.headers)


@case("connect.empty-body", "A message without fields is an empty body, and has no wire version.", CALLS)
def empty_body(world: World) -> None:
    for method in ("GetManifest", "CheckIn", "Upload", "GetRoundStatus"):
        world.device(0).call(method, b"").refusal("MALFORMED")


@case("connect.unknown-fields", "A newer device sends fields that this server does not know.", CALLS)
def unknown_fields(world: World) -> None:
    known = _request(world)
    for more in (b"\xfa\x7f\x03abc", b"\xf8\x7f\x05", b"\xfd\x7f\x01\x02\x03\x04"):
        _require_manifest(world.device(0).call("GetManifest", more + known + more))


@case("connect.garbage", "Bytes that do not parse must end in a typed refusal, on every call.", ERRORS)
def garbage(world: World) -> None:
    for method in ("GetManifest", "CheckIn", "Upload", "GetRoundStatus"):
        world.device(0).call(method, b"\xff" * 40).refusal("MALFORMED")


@case("connect.truncated", "A message that ends within a field is broken, not short.", ERRORS)
def truncated(world: World) -> None:
    world.device(0).call("GetManifest", _request(world)[:-1]).refusal("MALFORMED")
    world.device(0).call("GetRoundStatus", b"\x0a\x10" + bytes(15)).refusal("MALFORMED")


@case("connect.wrong-wire-type", "A field of another kind than its own is a fault of the device.", ERRORS)
def wrong_wire_type(world: World) -> None:
    # round_id as a number: parsers take it for an unknown field, so the id is missing; others refuse it at once.
    world.device(0).call("GetRoundStatus", b"\x08\x10").refusal("MALFORMED")


@case("connect.announced-too-large", "What is too large is refused before it is read.", LIMITS)
def announced_too_large(world: World) -> None:
    for size in (SMALL_LIMIT_BYTES + 1, 10**12):
        client = _client(world)
        # Nothing of the body is ever sent: who waits for it does not answer.
        answer = client.request("POST", PATH, None, PROTO | {"Content-Length": str(size)})
        client.close()
        expect_equal("limit_bytes", answer.refusal("TOO_LARGE").limit_bytes, SMALL_LIMIT_BYTES)


@case("connect.too-large", "One byte above the limit is too large, on every small call.", LIMITS)
def too_large(world: World) -> None:
    for method in ("GetManifest", "CheckIn", "GetRoundStatus", "GetStep", "AdvertiseKeys"):
        client = _client(world)
        detail = client.post(SERVICE + method, bytes(SMALL_LIMIT_BYTES + 1)).refusal("TOO_LARGE")
        client.close()
        expect_equal(f"limit_bytes of {method}", detail.limit_bytes, SMALL_LIMIT_BYTES)


@case("connect.at-the-limit", "A message of exactly the limit is read.", LIMITS)
def at_the_limit(world: World) -> None:
    body = padded(_request(world), SMALL_LIMIT_BYTES)
    expect_equal("size of the request", len(body), SMALL_LIMIT_BYTES)
    _require_manifest(_client(world).post(PATH, body))


@case("connect.chunked", "A body may come in chunks.", CALLS)
def chunked(world: World) -> None:
    body = _request(world)
    chunks = b"".join(b"1\r\n" + body[place : place + 1] + b"\r\n" for place in range(len(body))) + b"0\r\n\r\n"
    _require_manifest(_client(world).post(PATH, chunks, {"Transfer-Encoding": "chunked"}))


@case("connect.chunked-too-large", "Chunks do not announce their sum: the limit holds while they come.", LIMITS)
def chunked_too_large(world: World) -> None:
    client = _client(world)
    # One chunk above the limit, and no end.
    answer = client.post(PATH, b"800\r\n" + bytes(0x800) + b"\r\n", {"Transfer-Encoding": "chunked"})
    client.close()
    expect_equal("limit_bytes", answer.refusal("TOO_LARGE").limit_bytes, SMALL_LIMIT_BYTES)


@case("connect.kept-connection", "A device makes all its calls on one connection, refused ones included.", CALLS)
def kept_connection(world: World) -> None:
    client = _client(world)
    client.handshake()
    before = client.handshake()
    client.post(SERVICE + "GetRoundStatus", b"").refusal("MALFORMED")
    _require_manifest(client.post(PATH, _request(world)))
    expect(client.handshake() is before, "three calls on one connection", "a connection that was closed between")
