"""Writes one of every message in proto/lightfr/v1: serialised by hand, and in the JSON form of proto3.

Each message is a list of (tag, JSON name, value). A number is a uint32, U64 a uint64 (in JSON a string), Name an enum,
bytes are base64 in JSON, a tuple is a message, and a list is repeated: numbers and enums packed, as proto3 asks.
"""

import base64

from tests.vectors.plain import little, nested, noise, varint


class U64(int):
    """A uint64."""


class Name(int):
    """A value of an enum, with its name."""

    def __new__(cls, number, name):
        made = super().__new__(cls, number)
        made.name = name
        return made


def written(fields):
    """The bytes of a message, as a serialiser that goes by tag writes them."""
    return b"".join(one_field(tag, value) for tag, _, value in fields)


def one_field(tag, value):
    if isinstance(value, list) and value and isinstance(value[0], int):
        return nested(tag, b"".join(map(varint, value)))
    if isinstance(value, list):
        return b"".join(one_field(tag, element) for element in value)
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    content = written(value) if isinstance(value, tuple) else value.encode() if isinstance(value, str) else value
    return nested(tag, content)


def as_json(value):
    """The JSON form of proto3, as it stands in a JSON document."""
    if isinstance(value, tuple):
        return {name: as_json(content) for _, name, content in value}
    if isinstance(value, list):
        return [as_json(element) for element in value]
    if isinstance(value, Name):
        return value.name
    if isinstance(value, bool | str):
        return value
    if isinstance(value, U64):
        return str(int(value))
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


TERNARY_KIND, EXACT_KIND = Name(1, "UPLOAD_KIND_TERNARY"), Name(2, "UPLOAD_KIND_EXACT")
CLEAR, SECAGG, DP = (
    Name(i + 1, f"PRIVACY_MODE_{mode}") for i, mode in enumerate(("CLEAR", "SECAGG", "SECAGG_DP"))
)  # fmt: skip

ROUND_ID, UPLOAD_ID, PEER_ID = (noise(f"message {name}", 16) for name in ("round", "upload", "peer"))
DIGEST = noise("message digest", 32)

ARTIFACT = ((1, "sha256", DIGEST), (2, "sizeBytes", U64(2**40)))
DELTA = (
    (1, "fromSha256", noise("message from", 32)),
    (2, "artifact", ((1, "sha256", DIGEST), (2, "sizeBytes", U64(77)))),
)
NOISE = ((1, "rowsThousandths", 500), (2, "sumsThousandths", 1_000_000), (3, "countsThousandths", 3000))
MODEL = (
    (1, "codeBits", 8),
    (2, "itemCount", 2**32 - 1),
    (3, "objective", Name(1, "OBJECTIVE_CATALOGUE")),
    (4, "uploadKind", TERNARY_KIND),
    (5, "meanUser", little([-256, -1, 0, 1, 2, 3, 255, 256], 2, signed=True)),
    (6, "maxRows", 64),
    (8, "privacyMode", DP),
    (9, "noise", NOISE),
)
PAPER_MODEL = (
    (1, "codeBits", 1024),
    (2, "itemCount", 1),
    (3, "objective", Name(2, "OBJECTIVE_PAPER")),
    (4, "uploadKind", EXACT_KIND),
    (7, "balance", U64(2**40 - 1)),
    (8, "privacyMode", CLEAR),
)
PRIOR = ((1, "firstItems", [0, 300]), (2, "popularities", [1023, 1]))
BY_CODES = Name(1, "RANK_BY_CODES")
RANKING = (
    (1, "by", BY_CODES),
    (2, "priorFourths", 1024),
    (3, "recency", Name(3, "RECENCY_STRONG")),
    (4, "refine", True),
)
BY_POPULARITY, BY_CHANCE = ((1, "by", Name(2, "RANK_BY_POPULARITY")),), ((1, "by", Name(3, "RANK_BY_CHANCE")),)
MANIFEST = (
    (1, "wireVersion", 1),
    (2, "modelVersion", U64(2**63 + 5)),
    (3, "createdUnixSeconds", U64(1_800_000_000)),
    (4, "model", MODEL),
    (5, "codes", ARTIFACT),
    (6, "codesDeltas", [DELTA, DELTA]),
    (7, "catalogueParts", [ARTIFACT, ARTIFACT]),
    (8, "openRows", ARTIFACT),
    (9, "artifactsAddress", "https://cache.example:8446"),
    (10, "prior", PRIOR),
    (11, "rankings", [RANKING, BY_POPULARITY, RANKING, RANKING]),
    (12, "candidates", [BY_CHANCE, RANKING]),
    (13, "removedItems", ARTIFACT),
)
SIGNED = (
    (1, "manifest", written(MANIFEST)),
    (2, "signature", noise("message signature", 64)),
    (3, "keyId", noise("message key", 8)),
)
CAPABILITIES = (
    (1, "wireVersions", [1, 300]),
    (2, "uploadKinds", [TERNARY_KIND, EXACT_KIND]),
    (3, "privacyModes", [CLEAR, SECAGG, DP]),
)
ASSIGNMENT = (
    (1, "roundId", ROUND_ID),
    (2, "modelVersion", U64(9)),
    (3, "manifestSha256", DIGEST),
    (4, "deadlineMs", 86_400_000),
    (5, "uploadLimitBytes", 105_433),
    (6, "peerId", PEER_ID),
    (7, "kind", Name(3, "ROUND_KIND_EVALUATION")),
)
RETRY = ((1, "earliestMs", 1), (2, "latestMs", 86_400_000), (3, "reason", Name(5, "RETRY_REASON_NOT_CAPABLE")))
TERNARY_ROWS = ((1, "nonzero", b"\xff\x0f"), (2, "positive", b"\x4d\x02"))
EXACT_ROWS = ((1, "gradients", little(range(-8, 8), 4, signed=True)),)
CODE_ROWS = ((1, "codes", b"\x4d\xb2"),)


def row_update(tag, name, rows, *, user=True):
    fields = ((1, "codeBits", 8), (2, "itemIndices", little([0, 70_000], 4)), (tag, name, rows))
    return (*fields, (6, "userCode", b"\x4d")) if user else fields


UPDATE = row_update(3, "ternary", TERNARY_ROWS)
UPLOAD = ((1, "roundId", ROUND_ID), (2, "manifestSha256", DIGEST), (3, "uploadId", UPLOAD_ID))
ENTRIES, VOUCHERS = noise("message entries", 224), noise("message vouchers", 272)
MEMBERSHIP, SIGNATURE = noise("message membership", 104), noise("message signature of it", 64)
SHARE_STEP = (
    (1, "entries", ENTRIES),
    (2, "vouchers", VOUCHERS),
    (3, "degree", 1),
    (4, "holders", 1),
    (5, "threshold", 2),
    (6, "signature", noise("message roster", 64)),
)
SEALED = little([1], 4) + noise("message sealed", 94)
ACKNOWLEDGE_STEP = ((1, "sealedShares", SEALED),)
INCLUDED_STEP = ((1, "included", b"\x03"), (2, "signature", noise("message included", 64)))
UPLOAD_STEP = ((1, "signers", b"\x03"), (2, "signatures", noise("message signed included", 128)))
SURVIVORS_STEP = ((1, "survivors", b"\x03"), (2, "signature", noise("message survivors", 64)))
REVEAL_STEP = ((1, "signers", b"\x03"), (2, "signatures", noise("message signed survivors", 128)))
SHARES = noise("message shares", 74)
STATUS = (
    (1, "state", Name(3, "ROUND_STATE_FINISHED")),
    (2, "uploadCount", 4),
    (3, "uploadGoal", 4),
    (4, "hasYourUpload", True),
    (5, "nextModelVersion", U64(10)),
)
ERROR = (
    (1, "reason", Name(2, "ERROR_REASON_WIRE_VERSION")),
    (2, "limitBytes", U64(1024)),
    (3, "wireVersions", [1, 2, 300]),
    (4, "renewableUnixSeconds", U64(4_000_000_000)),
)

# (message, what is special about it, its fields)
MESSAGES = [
    ("Artifact", "", ARTIFACT),
    ("CodesDelta", "", DELTA),
    ("Noise", "", NOISE),
    ("RoundModel", "catalogue objective, with noise", MODEL),
    ("RoundModel", "objective of the paper, with balance", PAPER_MODEL),
    ("Manifest", "", MANIFEST),
    ("Prior", "", PRIOR),
    ("Ranking", "", RANKING),
    ("Ranking", "by popularity", BY_POPULARITY),
    ("SignedManifest", "", SIGNED),
    ("Capabilities", "", CAPABILITIES),
    ("Capabilities", "wants to recommend only", ((1, "wireVersions", [1]),)),
    ("GetManifestRequest", "", ((1, "capabilities", CAPABILITIES), (2, "knownModelVersion", U64(8)))),
    ("GetManifestResponse", "", ((1, "signedManifest", SIGNED),)),
    ("GetManifestResponse", "nothing newer", ()),
    ("CheckInRequest", "", ((1, "capabilities", CAPABILITIES), (2, "knownModelVersion", U64(9)))),
    ("CheckInResponse", "a place", ((1, "assignment", ASSIGNMENT),)),
    ("CheckInResponse", "no place", ((2, "retryWindow", RETRY),)),
    ("Assignment", "", ASSIGNMENT),
    ("RetryWindow", "", RETRY),
    ("TernaryRows", "", TERNARY_ROWS),
    ("ExactRows", "", EXACT_ROWS),
    ("CodeRows", "", CODE_ROWS),
    ("RowUpdate", "ternary rows", UPDATE),
    ("RowUpdate", "exact rows", row_update(4, "exact", EXACT_ROWS)),
    ("RowUpdate", "rows as codes", row_update(5, "codes", CODE_ROWS, user=False)),
    ("RowUpdate", "no rows", ((1, "codeBits", 8), (3, "ternary", ()), (6, "userCode", b"\x4d"))),
    ("UploadRequest", "mode CLEAR", (*UPLOAD, (4, "rowUpdate", UPDATE))),
    ("UploadRequest", "masked", (*UPLOAD, (5, "maskedVector", noise("message masked", 20)))),
    ("UploadResponse", "", ((1, "uploadId", UPLOAD_ID), (2, "requestSha256", DIGEST))),
    ("GetRoundStatusRequest", "", ((1, "roundId", ROUND_ID),)),
    ("GetRoundStatusResponse", "", STATUS),
    (
        "EnrollRequest",
        "",
        (
            (1, "token", "the secret of it"),
            (2, "signingRequest", noise("message request", 40)),
            (3, "memberKey", noise("message member", 32)),
        ),
    ),
    (
        "EnrollResponse",
        "",
        (
            (1, "certificates", [noise("message leaf", 30), noise("message issuer", 20)]),
            (2, "membership", MEMBERSHIP),
        ),
    ),
    (
        "RenewCertificateRequest",
        "",
        ((1, "signingRequest", noise("message renewing", 40)), (2, "memberKey", noise("message member", 32))),
    ),
    (
        "RenewCertificateResponse",
        "",
        ((1, "certificates", [noise("message renewed", 30)]), (2, "membership", MEMBERSHIP)),
    ),
    ("ErrorDetail", "", ERROR),
    (
        "AdvertiseKeysRequest",
        "",
        (
            (1, "roundId", ROUND_ID),
            (2, "maskPublicKey", ENTRIES[16:48]),
            (3, "sharePublicKey", ENTRIES[48:80]),
            (4, "membership", MEMBERSHIP),
            (5, "signature", SIGNATURE),
        ),
    ),
    ("AdvertiseKeysResponse", "", ()),
    ("ShareKeysRequest", "", ((1, "roundId", ROUND_ID), (2, "sealedShares", SEALED))),
    ("ShareKeysResponse", "", ()),
    ("AcknowledgeSharesRequest", "", ((1, "roundId", ROUND_ID), (2, "unopened", b"\x02"))),
    ("AcknowledgeSharesResponse", "", ()),
    ("SignIncludedRequest", "", ((1, "roundId", ROUND_ID), (2, "signature", SIGNATURE))),
    ("SignIncludedResponse", "", ()),
    ("SignSurvivorsRequest", "", ((1, "roundId", ROUND_ID), (2, "signature", SIGNATURE))),
    ("SignSurvivorsResponse", "", ()),
    ("RevealSharesRequest", "", ((1, "roundId", ROUND_ID), (2, "seeds", SHARES), (3, "maskKeys", SHARES[:37]))),
    ("RevealSharesResponse", "", ()),
    ("GetStepRequest", "", ((1, "roundId", ROUND_ID), (2, "maxWaitMs", 20_000))),
    ("GetStepResponse", "wait", ((1, "waitMs", 250),)),
    ("GetStepResponse", "share", ((2, "share", SHARE_STEP),)),
    ("GetStepResponse", "acknowledge", ((3, "acknowledge", ACKNOWLEDGE_STEP),)),
    ("GetStepResponse", "included", ((4, "included", INCLUDED_STEP),)),
    ("GetStepResponse", "upload", ((5, "upload", UPLOAD_STEP),)),
    ("GetStepResponse", "survivors", ((6, "survivors", SURVIVORS_STEP),)),
    ("GetStepResponse", "reveal", ((7, "reveal", REVEAL_STEP),)),
    ("GetStepResponse", "done", ((8, "done", ()),)),
    ("ShareStep", "", SHARE_STEP),
    ("AcknowledgeStep", "", ACKNOWLEDGE_STEP),
    ("IncludedStep", "", INCLUDED_STEP),
    ("UploadStep", "", UPLOAD_STEP),
    ("SurvivorsStep", "", SURVIVORS_STEP),
    ("RevealStep", "", REVEAL_STEP),
    ("RoundDone", "", ()),
]  # fmt: skip

# Fields of no message here: a number, bytes, and 4 and 8 bytes of a fixed size.
UNKNOWN = b"".join(
    [
        varint(900 << 3) + varint(7),
        nested(901, b"later"),
        varint(902 << 3 | 5) + bytes(4),
        varint(903 << 3 | 1) + bytes(8),
    ]
)


def other_order(fields):
    """The same fields, the last tag first, repeated ones in their own order: a reader takes them as they come."""
    return b"".join(one_field(tag, value) for tag, _, value in reversed(fields))


def message_case(name, note, fields):
    content = written(fields)
    case = {"message": name, "note": note, "bytes": content, "json": as_json(fields)}
    return {**case, "other_order": other_order(fields), "unknown_fields": UNKNOWN + content + UNKNOWN}


def reading_cases():
    """What protobuf asks of every reader, where readers written by hand go wrong."""
    status = "GetRoundStatusResponse"
    same = [
        ("a number twice: the last one counts", status, "1004" "1005", {"uploadCount": 5}),
        ("a zero that is written out", status, "0800" "1005", {"uploadCount": 5}),
        ("a varint that is longer than it need be", status, "10858000", {"uploadCount": 5}),
        ("numbers that are not packed", "Capabilities", "0801" "08ac02", {"wireVersions": [1, 300]}),
        ("numbers packed in two pieces", "Capabilities", "0a0101" "0a02ac02", {"wireVersions": [1, 300]}),
        ("a message in two pieces is put together", "GetManifestRequest", "0a030a0101" "0a03120101",
         {"capabilities": {"wireVersions": [1], "uploadKinds": ["UPLOAD_KIND_TERNARY"]}}),
        ("two of a oneof: the last one counts", "GetStepResponse", "0805" "4200", {"done": {}}),
        ("an enum that this version does not know", status, "0863" "1005", {"state": 99, "uploadCount": 5}),
    ]  # fmt: skip
    refused = [
        ("a length beyond the end", status, "0a05"),
        ("a varint without its end", status, "1085"),
        ("a varint of eleven bytes", status, "10" + "ff" * 10 + "01"),
        ("field number zero", status, "0001"),
        ("a wire type that is none", status, "0f"),
        ("the end of a group that never began", status, "0c"),
        ("text that is no UTF-8", "EnrollRequest", "0a02c328"),
    ]
    return {
        "read_as": [{"name": n, "message": m, "bytes": b, "json": j} for n, m, b, j in same],
        "refused": [{"name": n, "message": m, "bytes": b} for n, m, b in refused],
    }


def vectors():
    cases = [message_case(*one) for one in MESSAGES]
    return {"messages.json": {"messages": cases, **reading_cases()}}
