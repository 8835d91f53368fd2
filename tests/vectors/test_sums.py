"""What devices put into the vectors of secure aggregation equals the known answers of vectors/v1."""

from array import array

import pytest

from lightfr import ItemCodes
from lightfr.interactions import Interactions
from lightfr.secagg.contribution import gate_vector, round_vector
from lightfr.secagg.noise import _table, add_noise
from lightfr.secagg.vector import Vector, gate_blocks, round_blocks
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import model_pb2, update_pb2
from tests.vectors.reading import Replay, by_name, vector


def noise_of(levels):
    return model_pb2.Noise(rows_thousandths=levels[0], sums_thousandths=levels[1]) if levels else None


def listed(blocks):
    return [[block.name, block.count, block.bits] for block in blocks]


@pytest.mark.parametrize("known", vector("blocks"))
def test_blocks_and_their_bits(known):
    if known["kind"] == "gate":
        blocks = gate_blocks(known["item_count"], known["devices"])
    else:
        blocks = round_blocks(known["open_rows"], known["code_bits"], known["devices"], noise_of(known["noise"]))
    assert listed(blocks) == known["blocks"]
    assert Vector(blocks).packed_bytes == known["bytes"]


@pytest.mark.parametrize("known", vector("noise"))
def test_noise(known):
    numbers = array("i", [0]) * len(known["numbers"])
    add_noise(numbers, known["thousandths"], Replay(known["random"]))
    assert numbers.tolist() == known["numbers"]
    table = b"".join(entry.to_bytes(16, "little") for entry in _table(known["thousandths"]))
    assert len(table) == 32 * known["largest"]
    assert known["table"] in ("", table.hex())


@pytest.mark.parametrize(**by_name(vector("contribution")["cases"]))
def test_the_numbers_of_a_device(known):
    common = vector("contribution")
    mode = model_pb2.PRIVACY_MODE_SECAGG_DP if known["noise"] else model_pb2.PRIVACY_MODE_SECAGG
    message = model_pb2.RoundModel(
        code_bits=common["code_bits"],
        item_count=common["item_count"],
        objective=model_pb2.OBJECTIVE_CATALOGUE,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        max_rows=64,
        privacy_mode=mode,
        noise=noise_of(known["noise"]),
    )
    codes = ItemCodes(bytes(common["item_count"] * common["code_bits"] // 8), common["code_bits"])
    model = PublishedModel(codes, message, bytes.fromhex(common["open_rows"]))
    random = Replay(known["random"])
    made = round_vector(model, update_of(known["row_update"]), common["devices"], random)
    assert not random.left
    assert listed(made.blocks) == known["blocks"]
    assert [made[block.name].tolist() for block in made.blocks] == known["vector"]
    assert made.pack().hex() == known["packed"]


def update_of(digits):
    message = update_pb2.RowUpdate.FromString(bytes.fromhex(digits))
    indices, rows = array("I", message.item_indices), message.ternary
    return RowUpdate(
        message.code_bits, model_pb2.UPLOAD_KIND_TERNARY, indices, rows.nonzero, rows.positive,
        user_code=message.user_code,
    )  # fmt: skip


def test_the_counts_of_a_gate_refresh():
    known = vector("gate")
    devices = len(known["rated"])
    total = Vector(gate_blocks(known["item_count"], devices))
    for rated, packed in zip(known["rated"], known["packed"], strict=True):
        made = gate_vector(known["item_count"], Interactions((i, 0) for i in rated), devices)
        assert listed(made.blocks) == known["blocks"]
        assert made.pack().hex() == packed
        total.add_packed(made.pack())
    assert total["counts"].tolist() == known["sum"]
