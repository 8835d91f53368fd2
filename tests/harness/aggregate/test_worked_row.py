"""The worked row of docs/protocol.md, number by number."""

import numpy as np

from lightfr import UserCode
from lightfr.interactions import Interactions
from lightfr.training import make_update
from lightfr.v1 import model_pb2
from lightfr_harness import oracle
from lightfr_harness.aggregate import CatalogueServer
from tests.helpers import make_model


def test_the_worked_row_of_the_protocol_document():
    signs = np.stack([oracle.unpack(b"\x4d"), oracle.unpack(b"\xb2")])
    assert signs[0].tolist() == [1, -1, 1, 1, -1, -1, 1, -1]
    model = make_model(signs, upload_kind=model_pb2.UPLOAD_KIND_EXACT)
    update = make_update(model, Interactions([(0, 0)]), UserCode(b"\x4d"))
    assert np.frombuffer(update.gradients, "<i4").tolist() == [-2, 2, -2, -2, 2, 2, -2, 2]

    server = CatalogueServer(np.array([1, 1]), 8, upload_kind=model_pb2.UPLOAD_KIND_EXACT, gate=0, max_rows=0, seed=0)
    server.restore({**server.state(), "codes": np.array([[0x4D], [0xB2]], np.uint8)})
    from lightfr import _wire

    server.add(_wire.encode_update(update))
    server.finish_round()
    assert server.memory[0].tolist() == (-10304 * signs[0].astype(int)).tolist()
    assert server.memory[1].tolist() == (4096 * signs[0].astype(int)).tolist()
    assert server.codes.tolist() == [[0xB2], [0x4D]]
    assert server.mean_user.tolist() == (256 * signs[0].astype(int)).tolist()
