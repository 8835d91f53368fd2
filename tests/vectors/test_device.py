"""What a device computes equals the known answers of vectors/v1."""

from array import array
from pathlib import Path

import numpy as np
import pytest

from lightfr import ItemCodes, ItemSet, UserCode, _kernel, rank
from lightfr._wire.training import encode_update
from lightfr.interactions import Interactions
from lightfr.training import PublishedModel, fit_for_round, fit_for_use, make_update
from lightfr.training.constants import RECENCY_WEIGHTS, Recency
from lightfr.v1 import model_pb2
from tests.vectors.reading import FOLDER, by_name, item_codes, vector


@pytest.mark.parametrize("known", vector("codes")["codes"])
def test_signs_and_bytes(known):
    n, packed = len(known["signs"]), bytearray(len(known["signs"]) // 8)
    _kernel.pack(array("b", known["signs"]), n, packed)
    assert packed.hex() == known["code"] != known["other_bit_order"]
    unpacked = array("b", bytes(n))
    _kernel.unpack(packed, n, unpacked)
    assert unpacked.tolist() == known["signs"]


@pytest.mark.parametrize("known", vector("codes")["codes"])
def test_numpy_has_the_same_bits_with_bitorder_little(known):
    signs = np.array(known["signs"])
    assert np.packbits(signs > 0, bitorder="little").tobytes().hex() == known["code"]
    assert np.packbits(signs > 0).tobytes().hex() == known["other_bit_order"]


def test_a_file_of_codes():
    known = vector("codes")["matrix"]
    with ItemCodes.open(Path(FOLDER) / known["file"], known["code_bits"]) as codes:
        for i, signs in enumerate(known["rows"]):
            unpacked = array("b", bytes(len(signs)))
            _kernel.unpack(codes.row(i), len(signs), unpacked)
            assert unpacked.tolist() == signs


@pytest.mark.parametrize(("name", "kind"), [("uint32", "<u4"), ("int16", "<i2"), ("int32", "<i4")])
def test_numbers_in_bytes_fields(name, kind):
    known = vector("codes")["numbers"][name]
    assert np.array(known["numbers"], kind).tobytes().hex() == known["bytes"]


@pytest.mark.parametrize("known", vector("hamming"))
def test_distances_and_the_nearest(known):
    codes = ItemCodes(bytes.fromhex(known["codes"]), known["code_bits"])
    user = UserCode(bytes.fromhex(known["query"]))
    distances = array("H", bytes(2 * known["item_count"]))
    _kernel.distances(codes.kernel_pointer(), user._pointer, distances)
    assert distances.tolist() == known["distances"]
    assert [known["code_bits"] - 2 * d for d in distances] == known["similarities"]
    bitmap = bytes.fromhex(known["excluded"])
    excluded = ItemSet(known["item_count"], [i for i in range(8 * len(bitmap)) if bitmap[i // 8] >> i % 8 & 1])
    ranked = rank(user, codes, known["k"], exclude=excluded)
    best = [(i, 1 - d / known["code_bits"]) for i, d in known["best"]]
    assert [(one.item_index, one.similarity) for one in ranked] == best


@pytest.mark.parametrize("known", vector("gram"))
def test_gram_matrix_and_column_sums(known):
    f = known["code_bits"]
    gram, sums = array("q", bytes(8 * f * f)), array("q", bytes(8 * f))
    _kernel.gram(ItemCodes(bytes.fromhex(known["codes"]), f).kernel_pointer(), gram, sums)
    assert np.array(gram).reshape(f, f).tolist() == known["gram"]
    assert sums.tolist() == known["column_sums"]


def published(known, **fields):
    message = model_pb2.RoundModel(
        code_bits=known["code_bits"],
        item_count=known["item_count"],
        **{"objective": model_pb2.OBJECTIVE_CATALOGUE, "upload_kind": model_pb2.UPLOAD_KIND_TERNARY, **fields},
    )
    codes = item_codes(bytes.fromhex(known["codes"]), known["code_bits"], known.get("open_rows", ""))
    return PublishedModel(codes, message)


def test_recency_weights():
    known = vector("user_fit")["recency_weights"]
    weak, strong = (list(RECENCY_WEIGHTS[recency]) for recency in (Recency.WEAK, Recency.STRONG))
    assert strong == known["strong"]
    assert weak == known["weak"] + [16] * (len(weak) - len(known["weak"]))


@pytest.mark.parametrize(**by_name(vector("user_fit")["cases"]))
def test_user_fit(known):
    model = published(known, mean_user=np.array(known["mean_user"], "<i2").tobytes())
    rated = Interactions(zip(known["rated_oldest_first"], known["levels"], strict=True))
    old = UserCode(bytes.fromhex(known["old_code"]))
    if known["purpose"] == "round":
        fitted = fit_for_round(model, rated, old)
    else:
        fitted = fit_for_use(model, rated, old, recency=Recency[known["recency"].upper()])
    assert fitted.reveal().hex() == known["result"]


@pytest.mark.parametrize(**by_name(vector("user_fit")["cases"]))
def test_both_starts_of_the_user_fit(known):
    model = published(known, mean_user=np.array(known["mean_user"], "<i2").tobytes())
    fit = prepared(model, known)
    old = bytes.fromhex(known["old_code"])
    assert fit.linear_signs(old).hex() == known["from_linear_signs"]["start"]
    for start in (known["from_old_code"], known["from_linear_signs"]):
        first, whole = bytearray.fromhex(start["start"]), bytearray.fromhex(start["start"])
        fit.sweep(first, 1)
        assert first.hex() == start["after_one_sweep"]
        assert fit.sweep(whole, known["max_sweeps"]) == start["loss"]
        assert whole.hex() == start["code"]


def prepared(model, known):
    """The fit as docs/protocol.md has it, with the weights of the vector."""
    n, m, weights = len(known["weights"]), known["item_count"], array("H", known["weights"])
    rows = _kernel.gather(model.codes.kernel_pointer(), array("I", known["rated_oldest_first"]), n)
    near = [weight for weight, target in zip(weights, known["targets"], strict=True) if target > 0]
    catalogue = 2 * (sum(near) + 16 * max(0, 32 - len(near)))
    model.fit.prepare(
        rows,
        array("i", known["targets"]),
        n,
        weights=weights,
        row_factor=m,
        target_factor=m,
        gram_factor=catalogue + 80,
        column_factor=-catalogue * ((4 * known["code_bits"] + 5) // 10),
    )
    return model.fit


@pytest.mark.parametrize("known", vector("gradients"))
def test_row_gradients(known):
    f, rows = known["code_bits"], bytes.fromhex(known["rows"])
    n = len(rows) * 8 // f
    gradients = _kernel.row_gradients(
        rows, n, bytes.fromhex(known["user_code"]), f, array("i", [known["target"]] * n), 1
    )
    assert np.frombuffer(bytes(gradients), "<i4").reshape(n, f).tolist() == known["gradients"]


@pytest.mark.parametrize("known", vector("ternary"))
def test_ternary_rounding(known):
    gradients = array("i", known["gradients"])
    planes = _kernel.ternary(gradients, len(gradients), known["full"], bytes.fromhex(known["random"]))
    assert [plane.hex() for plane in planes] == [known["nonzero"], known["positive"]]


@pytest.mark.parametrize("kind", ["ternary", "exact"])
def test_a_whole_row_update(kind):
    known = vector("row_update")
    upload_kind = model_pb2.UploadKind.Value(f"UPLOAD_KIND_{kind.upper()}")
    model = published(known, upload_kind=upload_kind, max_rows=known["max_rows"])
    random = bytes.fromhex(known["random"])
    user, rated = UserCode(bytes.fromhex(known["user_code"])), Interactions((i, 0) for i in known["rated"])
    update = make_update(model, rated, user, lambda n: random[:n])
    assert encode_update(update).hex() == known[kind]


def paper_model(known, kind):
    return published(known, objective=model_pb2.OBJECTIVE_PAPER, upload_kind=kind, balance=known["balance"])


@pytest.mark.parametrize("known", vector("paper")["rounds"])
def test_the_objective_of_the_paper(known):
    exact, codes = (paper_model(known, kind) for kind in (model_pb2.UPLOAD_KIND_EXACT, model_pb2.UPLOAD_KIND_CODES))
    for device in known["devices"]:
        rated = Interactions(zip(device["rated"], device["levels"], strict=True))
        old = UserCode(bytes.fromhex(device["old_code"]))
        fitted = fit_for_round(exact, rated, old)
        assert fitted.reveal().hex() == device["fitted_for_round"]
        assert fit_for_use(exact, rated, old).reveal().hex() == device["fitted_for_use"]
        assert encode_update(make_update(exact, rated, fitted)).hex() == device["exact"]
        assert encode_update(make_update(codes, rated, fitted)).hex() == device["codes"]
