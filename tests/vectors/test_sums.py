"""What devices put into the vectors of secure aggregation equals the known answers of vectors/v1."""

from array import array

import pytest

from lightfr.interactions import Interactions
from lightfr.secagg.contribution import gate_vector, round_vector, vector_without_noise
from lightfr.secagg.noise import _table, add_noise, add_ternary_noise
from lightfr.secagg.vector import Vector, evaluation_blocks, gate_blocks, round_blocks
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import model_pb2, update_pb2
from tests.vectors.reading import Replay, by_name, item_codes, noise_of, vector


def model_of(known, levels, open_rows=""):
    message = model_pb2.RoundModel(
        code_bits=known["code_bits"],
        item_count=known["item_count"],
        objective=model_pb2.OBJECTIVE_CATALOGUE,
        upload_kind=model_pb2.UPLOAD_KIND_EXACT if levels else model_pb2.UPLOAD_KIND_TERNARY,
        max_rows=64,
        privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP if levels else model_pb2.PRIVACY_MODE_SECAGG,
        noise=noise_of(levels),
    )
    codes = bytes(known["item_count"] * known["code_bits"] // 8)
    return PublishedModel(item_codes(codes, known["code_bits"], open_rows), message)


def listed(blocks):
    return [[block.name, block.count, block.bits] for block in blocks]


@pytest.mark.parametrize("known", vector("blocks"))
def test_blocks_and_their_bits(known):
    if known["kind"] == "gate":
        blocks = gate_blocks(known["item_count"], known["devices"], noise_of(known["noise"]))
    elif known["kind"] == "evaluation":
        blocks = evaluation_blocks(known["candidates"], known["devices"], noise_of(known["noise"]))
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


@pytest.mark.parametrize("known", vector("ternary_noise"))
def test_ternary_noise(known):
    numbers = memoryview(array("h", [0]) * len(known["numbers"]))
    add_ternary_noise(numbers, known["devices"], known["variance"], Replay(known["random"]))
    assert numbers.tolist() == known["numbers"]


@pytest.mark.parametrize(**by_name(vector("contribution")["cases"]))
def test_the_numbers_of_a_device(known):
    common = vector("contribution")
    model = model_of(common, known["noise"], common["open_rows"])
    plain = vector_without_noise(model, update_of(known["row_update"]), common["devices"])
    assert [plain[block.name].tolist() for block in plain.blocks] == known["before_noise"]
    random = Replay(known["random"])
    made = round_vector(model, update_of(known["row_update"]), common["devices"], random)
    assert not random.left
    assert listed(made.blocks) == known["blocks"]
    assert [made[block.name].tolist() for block in made.blocks] == known["vector"]
    assert made.pack().hex() == known["packed"]


def update_of(digits):
    message = update_pb2.RowUpdate.FromString(bytes.fromhex(digits))
    kind = model_pb2.UPLOAD_KIND_EXACT if message.HasField("exact") else model_pb2.UPLOAD_KIND_TERNARY
    return RowUpdate(
        message.code_bits,
        kind,
        array("I", message.item_indices),
        nonzero=message.ternary.nonzero,
        positive=message.ternary.positive,
        gradients=message.exact.gradients,
        user_code=message.user_code,
    )


def test_the_counts_of_a_gate_refresh():
    known = vector("gate")
    model, devices = model_of({**known, "code_bits": 8}, None), len(known["rated"])
    total = Vector(gate_blocks(known["item_count"], devices))
    for rated, random, packed in zip(known["rated"], known["random"], known["packed"], strict=True):
        made = gate_vector(model, Interactions((i, 0) for i in rated), devices, Replay(random))
        assert listed(made.blocks) == known["blocks"]
        assert made.pack().hex() == packed
        total.add_packed(made.pack())
    (block,) = total.blocks
    assert [count % 2**block.bits for count in total["counts"]] == [count % 2**block.bits for count in known["sum"]]


def test_the_counts_of_a_gate_refresh_with_an_epsilon():
    known = vector("gate")["with_epsilon"]
    random = Replay(known["random"])
    model = model_of({**known, "code_bits": 8}, known["noise"])
    made = gate_vector(model, Interactions((i, 0) for i in known["rated"]), known["devices"], random)
    assert not random.left
    assert listed(made.blocks) == known["blocks"]
    assert made.pack().hex() == known["packed"]
