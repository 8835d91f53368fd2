"""The server rules give the known answers of tests/vectors/v1."""

import numpy as np

from lightfr.v1 import model_pb2
from lightfr_harness.aggregate import CatalogueServer
from tests.vectors.reading import vector


def catalogue_server(codes, code_bits, open_rows, kind=model_pb2.UPLOAD_KIND_TERNARY):
    """A server with these codes and an empty memory."""
    bits = np.unpackbits(np.frombuffer(open_rows, np.uint8), bitorder="little")
    matrix = np.frombuffer(codes, np.uint8).reshape(-1, code_bits // 8).copy()
    counts = np.where(bits[: len(matrix)], 10, 9)
    server = CatalogueServer(counts, code_bits, upload_kind=kind, gate=10, max_rows=64, seed=1)
    server.restore({**server.state(), "codes": matrix})
    return server


def test_three_rounds_of_aggregation():
    known = vector("aggregation")
    codes, open_rows = bytes.fromhex(known["codes"]), bytes.fromhex(known["open_rows"])
    server = catalogue_server(codes, known["code_bits"], open_rows)
    assert server.open_rows_bitmap() == open_rows
    for one in known["rounds"]:
        for upload in one["uploads"]:
            server.add(bytes.fromhex(upload))
        server.finish_round()
        assert server.codes.tobytes().hex() == one["codes"]
        assert server.mean_user.tolist() == one["mean_user"]
        assert server.memory.tolist() == one["memory"]
