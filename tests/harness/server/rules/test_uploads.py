"""A server refuses what the round did not ask for, says why, and counts nothing of it."""

import numpy as np
import pytest

from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness.server.rules import CatalogueRule, PaperRule, UploadError


def make_server(**options):
    defaults = {"upload_kind": model_pb2.UPLOAD_KIND_TERNARY, "gate": 2, "max_rows": 3, "seed": 1}
    counts = np.array([5, 5, 5, 5, 1, 5])
    return CatalogueRule(counts, 16, **{**defaults, **options})


def good(indices=(0, 2), **fields):
    n = len(indices)
    defaults = {
        "code_bits": 16,
        "item_indices": np.array(indices, "<u4").tobytes(),
        "ternary": update_pb2.TernaryRows(nonzero=b"\xff" * 2 * n, positive=b"\x0f" * 2 * n),
        "user_code": b"\x01\x02",
    }
    return update_pb2.RowUpdate(**{**defaults, **fields})


BAD = {
    "code_bits": good(code_bits=24),
    "must be a whole number": good(item_indices=b"\0" * 7),
    "more than 3 rows": good((0, 1, 2, 3)),
    "not strictly ascending": good((2, 2)),
    "not below item_count": good((0, 6)),
    "closed by the gate": good((0, 4)),
    "not of the kind asked for": good(exact=update_pb2.ExactRows(gradients=bytes(128)), ternary=None),
    "ternary planes have the wrong size": good(
        ternary=update_pb2.TernaryRows(nonzero=b"\xff" * 4, positive=b"\xff" * 3)
    ),
    "positive where it is zero": good(ternary=update_pb2.TernaryRows(nonzero=bytes(4), positive=b"\x01" + bytes(3))),
    "user_code must be 2 bytes": good(user_code=b"\x01"),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_upload_is_refused_with_its_fault_and_nothing_is_counted(reason):
    server, untouched = make_server(), make_server()
    server.add(good().SerializeToString())
    untouched.add(good().SerializeToString())
    with pytest.raises(UploadError, match=reason):
        server.add(BAD[reason].SerializeToString())
    server.finish_round()
    untouched.finish_round()
    assert (server.memory == untouched.memory).all()


def test_bytes_that_are_no_message_are_refused():
    with pytest.raises(UploadError, match="2 bytes are not a RowUpdate"):
        make_server().add(b"\xff\xff")


def test_sizes_of_exact_gradients_and_codes_are_checked():
    counts = np.full(6, 5)
    for kind, field, rows in (
        (model_pb2.UPLOAD_KIND_EXACT, "exact", update_pb2.ExactRows(gradients=bytes(127))),
        (model_pb2.UPLOAD_KIND_CODES, "codes", update_pb2.CodeRows(codes=bytes(3))),
    ):
        server = PaperRule(counts, 16, regularization=0.0, upload_kind=kind, gate=0, max_rows=0, seed=1)
        with pytest.raises(UploadError, match="wrong size"):
            server.add(good(user_code=b"", ternary=None, **{field: rows}).SerializeToString())


def test_the_paper_protocol_takes_no_user_code():
    server = PaperRule(
        np.full(6, 5), 16, regularization=0.0, upload_kind=model_pb2.UPLOAD_KIND_EXACT, gate=0, max_rows=0, seed=1
    )
    message = good(ternary=None, exact=update_pb2.ExactRows(gradients=bytes(128)))
    with pytest.raises(UploadError, match="user_code must be 0 bytes"):
        server.add(message.SerializeToString())


def test_an_empty_upload_is_fine():
    make_server().add(good(()).SerializeToString())
