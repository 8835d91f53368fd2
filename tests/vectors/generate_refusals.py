"""Writes requests that a server refuses, with the reason, and answers by which a device knows it."""

import base64
import json

from tests.vectors.generate_aggregation import Upload
from tests.vectors.plain import field, little, message, nested, noise, packed

# As error.proto and docs/protocol.md have them: reason, number, Connect code, HTTP status.
REASONS = [
    ("MALFORMED", 1, "invalid_argument", 400),
    ("WIRE_VERSION", 2, "failed_precondition", 400),
    ("TOO_LARGE", 3, "resource_exhausted", 429),
    ("IDENTITY", 4, "permission_denied", 403),
    ("TOKEN", 5, "permission_denied", 403),
    ("ROUND_UNKNOWN", 6, "not_found", 404),
    ("ROUND_CLOSED", 7, "failed_precondition", 400),
    ("NOT_ASSIGNED", 8, "permission_denied", 403),
    ("MODEL_MISMATCH", 9, "failed_precondition", 400),
    ("UPLOAD_CONFLICT", 10, "already_exists", 409),
    ("UPLOAD_INVALID", 11, "invalid_argument", 400),
    ("OVERLOADED", 12, "unavailable", 503),
    ("RENEWAL_EARLY", 13, "failed_precondition", 400),
]

ROUND_ID, DIGEST, UPLOAD_ID = noise("refusals round", 16), noise("refusals manifest", 32), noise("refusals upload", 16)
BITS, ITEMS, OPEN = 32, 80, 72
OPEN_ROWS = packed([1 if i < OPEN else -1 for i in range(ITEMS)])


def reason(name):
    return f"ERROR_REASON_{name}"


def cases_of(named, name="UPLOAD_INVALID"):
    return [{"name": fault, "request": request, "reason": reason(name)} for fault, request in named.items()]


# ---- uploads ----


def upload_request(row_update=None, round_id=ROUND_ID, digest=DIGEST, upload_id=UPLOAD_ID):
    body = b"" if row_update is None else nested(4, row_update)
    return message((1, round_id), (2, digest), (3, upload_id)) + body


def ternary(nonzero, positive):
    return nested(3, message((1, nonzero), (2, positive)))


GOOD = Upload("refusals good", 3)
USER = noise("refusals user", BITS // 8)


def update(bits=BITS, indices=None, rows=None, user=USER):
    """A good RowUpdate of three rows, with something put in place of one of its parts."""
    numbers = indices if isinstance(indices, bytes) else little(GOOD.indices if indices is None else indices, 4)
    planes = ternary(GOOD.nonzero, GOOD.positive) if rows is None else rows
    return message((1, bits), (2, numbers)) + planes + field(6, user)


def many(n):
    """Rows 0 to n - 1, all zeros."""
    return update(indices=range(n), rows=ternary(bytes(n * BITS // 8), bytes(n * BITS // 8)))


def invalid_updates():
    nonzero, positive = GOOD.nonzero, GOOD.positive
    zero_at = next(k for k in range(96) if not nonzero[k // 8] >> k % 8 & 1)
    lying = bytearray(positive)
    lying[zero_at // 8] |= 1 << zero_at % 8
    first, second, third = GOOD.indices
    return {
        "code_bits is not the round's": update(bits=64),
        "code_bits is missing": update(bits=0),
        "item_indices is no whole number of uint32": update(indices=little(GOOD.indices, 4)[:-1]),
        "an item twice": update(indices=[first, second, second]),
        "items in descending order": update(indices=[third, second, first]),
        "an item at item_count": update(indices=[first, second, ITEMS], rows=ternary(nonzero, positive)),
        "an item beyond item_count": update(indices=[first, second, 2**32 - 1]),
        "a row that is closed": update(indices=[first, second, OPEN]),
        "65 rows, one more than max_rows": many(65),
        "no rows of any kind": update(rows=b""),
        "exact rows, where ternary ones are asked for": update(rows=nested(4, message((1, bytes(3 * BITS * 4))))),
        "rows as codes, where ternary ones are asked for": update(rows=nested(5, message((1, nonzero)))),
        "nonzero is a byte short": update(rows=ternary(nonzero[:-1], positive)),
        "nonzero is a byte long": update(rows=ternary(nonzero + b"\0", positive)),
        "positive is a byte short": update(rows=ternary(nonzero, positive[:-1])),
        "positive is missing": update(rows=ternary(nonzero, b"")),
        "planes without items": update(indices=[]),
        "items without planes": update(rows=ternary(b"", b"")),
        "positive has a bit that nonzero lacks": update(rows=ternary(nonzero, bytes(lying))),
        "user_code is missing": update(user=b""),
        "user_code is a byte short": update(user=USER[:-1]),
        "user_code is a byte long": update(user=USER + b"\0"),
    }


def ternary_uploads():
    good = upload_request(update())
    model = message((1, BITS), (2, ITEMS), (3, 1), (4, 1), (6, 64), (8, 1))
    malformed = {
        "no bytes at all": b"",
        "no message": b"\xff\xff",
        "cut short": good[:-1],
        "round_id of 15 bytes": upload_request(update(), round_id=ROUND_ID[:-1]),
        "manifest_sha256 of 31 bytes": upload_request(update(), digest=DIGEST[:-1]),
        "manifest_sha256 is missing": upload_request(update(), digest=b""),
        "upload_id of 17 bytes": upload_request(update(), upload_id=UPLOAD_ID + b"\0"),
        "upload_id is missing": upload_request(update(), upload_id=b""),
    }
    invalid = {name: upload_request(content) for name, content in invalid_updates().items()}
    invalid["no body"] = upload_request()
    invalid["a masked vector in mode CLEAR"] = upload_request() + nested(5, bytes(64))
    other_round, other_digest = noise("refusals other round", 16), noise("refusals other manifest", 32)
    return {
        "name": "catalogue objective, ternary rows",
        "model": model,
        "open_rows": OPEN_ROWS,
        "good": [good, upload_request(many(0)), upload_request(many(64))],
        "refused": [
            *cases_of(malformed, "MALFORMED"),
            *cases_of({"another round": upload_request(update(), round_id=other_round)}, "ROUND_UNKNOWN"),
            *cases_of({"another manifest": upload_request(update(), digest=other_digest)}, "MODEL_MISMATCH"),
            *cases_of(invalid),
        ],
    }


def paper_uploads(kind, tag, row_bytes):
    """Objective PAPER: rows of another kind, and no user code."""
    model = message((1, BITS), (2, ITEMS), (3, 2), (4, kind), (8, 1))
    rows = nested(tag, message((1, noise(f"refusals paper {tag}", 3 * row_bytes))))
    faults = {
        "a user_code, where none is asked for": update(rows=rows),
        "rows are a byte short": update(rows=nested(tag, message((1, bytes(3 * row_bytes - 1)))), user=b""),
        "one row too many": update(rows=nested(tag, message((1, bytes(4 * row_bytes)))), user=b""),
        "ternary rows, where others are asked for": update(user=b""),
    }
    return {
        "name": f"objective of the paper, {'exact rows' if tag == 4 else 'rows as codes'}",
        "model": model,
        "open_rows": b"",
        "good": [upload_request(update(rows=rows, user=b""))],
        "refused": cases_of({name: upload_request(content) for name, content in faults.items()}),
    }


def uploads_file():
    return {
        "round_id": ROUND_ID,
        "manifest_sha256": DIGEST,
        "rounds": [ternary_uploads(), paper_uploads(2, 4, 4 * BITS), paper_uploads(3, 5, BITS // 8)],
    }


# ---- other requests ----


def capabilities(versions=(1,), kinds=(1,), modes=(1,)):
    numbers = [(1, bytes(versions)), (2, bytes(kinds)), (3, bytes(modes))]
    return nested(1, message(*numbers))


def bad_capabilities():
    malformed = {
        "no capabilities": b"",
        "no wire versions": capabilities(versions=()),
        "17 wire versions": capabilities(versions=range(1, 18)),
        "17 kinds of upload": capabilities(kinds=range(1, 18)),
        "17 privacy modes": capabilities(modes=range(1, 18)),
        "no message": b"\x0a\xff",
    }
    return cases_of(malformed, "MALFORMED") + cases_of({"version 2 only": capabilities(versions=(2,))}, "WIRE_VERSION")


def keys_request(round_id=ROUND_ID, mask=32, share=32, membership=104, signature=64):
    """An AdvertiseKeysRequest whose fields have these lengths."""
    sizes = enumerate((mask, share, membership, signature), start=2)
    return message((1, round_id), *((tag, noise(f"refusals key {tag}", size)) for tag, size in sizes))


def requests_file():
    short = {"round_id of 15 bytes": message((1, bytes(15))), "no round_id": b""}
    unknown = {"a round that never was": message((1, bytes(16)))}
    keys = {
        "mask_public_key of 31 bytes": keys_request(mask=31),
        "share_public_key of 33 bytes": keys_request(share=33),
        "share_public_key is missing": keys_request(share=0),
        "membership of 103 bytes": keys_request(membership=103),
        "membership is missing": keys_request(membership=0),
        "signature of 65 bytes": keys_request(signature=65),
        "signature is missing": keys_request(signature=0),
    }
    unknown_keys = {"a round that never was": keys_request(bytes(16))}
    signatures = {
        "signature of 63 bytes": message((1, ROUND_ID), (2, noise("refusals signature", 63))),
        "signature is missing": message((1, ROUND_ID)),
    }
    unknown_signed = {"a round that never was": message((1, bytes(16)), (2, noise("refusals signature", 64)))}
    late = {"max_wait_ms of 20,001": message((1, ROUND_ID), (2, 20_001))}
    about_a_round = cases_of(short, "MALFORMED") + cases_of(unknown, "ROUND_UNKNOWN")
    signing = cases_of(short | signatures, "MALFORMED") + cases_of(unknown_signed, "ROUND_UNKNOWN")
    by_method = {
        "GetManifest": bad_capabilities(),
        "CheckIn": bad_capabilities(),
        "GetRoundStatus": about_a_round,
        "GetStep": cases_of(short | late, "MALFORMED") + cases_of(unknown, "ROUND_UNKNOWN"),
        "AdvertiseKeys": cases_of(short | keys, "MALFORMED") + cases_of(unknown_keys, "ROUND_UNKNOWN"),
        "ShareKeys": about_a_round,
        "AcknowledgeShares": about_a_round,
        "SignIncluded": signing,
        "SignSurvivors": signing,
        "RevealShares": about_a_round,
    }
    return [{"method": method, **case} for method, cases in by_method.items() for case in cases]


# ---- answers ----


def body(code, text, detail=None, *, padded=False):
    """Connect's JSON, as a string."""
    error = {"code": code, "message": text}
    if detail is not None:
        value = base64.b64encode(detail).decode()
        error["details"] = [{"type": "lightfr.v1.ErrorDetail", "value": value if padded else value.rstrip("=")}]
    return json.dumps(error, separators=(",", ":"))


def known_answers():
    extra = {
        "WIRE_VERSION": field(3, b"\x01\x02"),
        "TOO_LARGE": field(2, 1024),
        "RENEWAL_EARLY": field(4, 4_000_000_000),
    }
    return [
        {
            "reason": reason(name),
            "code": code,
            "status": status,
            "body": body(code, "why", field(1, number) + extra.get(name, b"")),
        }
        for name, number, code, status in REASONS
    ]


def odd_answers():
    """Answers that a device must live with; `reason` is what it makes of them."""
    other = {"type": "google.rpc.Other", "value": "AAAA"}
    mixed = json.loads(body("not_found", "why", field(1, 6)))
    mixed["details"].insert(0, other)
    answers = {
        "no details": (400, body("invalid_argument", "why"), "UNSPECIFIED", "invalid_argument"),
        "a reason of a later version": (400, body("aborted", "why", field(1, 99)), "UNSPECIFIED", "aborted"),
        "base64 with padding": (404, body("not_found", "", field(1, 6), padded=True), "ROUND_UNKNOWN", "not_found"),
        "another detail before ours": (404, json.dumps(mixed), "ROUND_UNKNOWN", "not_found"),
        "no JSON": (404, "<html>nothing here</html>", "UNSPECIFIED", "HTTP 404"),
        "JSON of another kind": (400, "[1, 2]", "UNSPECIFIED", "HTTP 400"),
        "an empty body": (500, "", "UNSPECIFIED", "HTTP 500"),
        "a detail that is no message": (400, body("aborted", "why", b"\xff"), "UNSPECIFIED", "HTTP 400"),
    }
    return [
        {"name": name, "status": status, "body": text, "reason": reason(why), "code": code}
        for name, (status, text, why, code) in answers.items()
    ]


def errors_file():
    return {"answers": known_answers(), "odd_answers": odd_answers()}


def vectors():
    return {
        "uploads_bad.json": uploads_file(),
        "requests_bad.json": requests_file(),
        "connect_errors.json": errors_file(),
    }
