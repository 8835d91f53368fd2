"""The server's rules give the known answers of vectors/v1."""

from contextlib import nullcontext

import numpy as np
import pytest

from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import CatalogueRule, PaperRule, balance_of
from lightfr_harness.server.rules.cohorts import combined
from lightfr_harness.server.rules.plausible import ImplausibleSumError, require_plausible_counts
from tests.vectors.reading import by_name, noise_of, vector


def matrix_of(known, name="codes"):
    return np.frombuffer(bytes.fromhex(known[name]), np.uint8).reshape(-1, known["code_bits"] // 8).copy()


def catalogue_server(known, counts=None, gate=0, kind=model_pb2.UPLOAD_KIND_TERNARY, **state):
    """A server with these codes and, unless it is given, an empty memory."""
    counts = np.full(known["item_count"], 10) if counts is None else counts
    server = CatalogueRule(counts, known["code_bits"], upload_kind=kind, gate=gate, max_rows=64, seed=1)
    server.set_codes(matrix_of(known))
    server.restore({**server.state(), **state})
    return server


def matrix_in(server):
    """D, in hexadecimal."""
    return np.packbits(server.signs() > 0, axis=1, bitorder="little").tobytes().hex()


def by_item(server, rows):
    """What the server keeps by row, with that of the shared row for each closed item."""
    places = np.cumsum(server.open_rows) - 1
    return rows[np.where(server.open_rows, places, -1)].tolist()


def add_sums(server, known):
    rows, user_sum = np.array(known["row_sums"]), np.array(known["user_sum"])
    server.add_sums(rows.reshape(-1), user_sum, np.array([known["weight"]]))


def test_three_rounds_of_aggregation():
    known = vector("aggregation")
    open_rows = np.unpackbits(np.frombuffer(bytes.fromhex(known["open_rows"]), np.uint8), bitorder="little")
    server = catalogue_server(known, np.where(open_rows, 10, 9), gate=10)
    assert server.open_rows_bitmap().hex() == known["open_rows"]
    for one in known["rounds"]:
        for upload in one["uploads"]:
            server.add(bytes.fromhex(upload))
        server.finish_round()
        assert matrix_in(server) == one["codes"]
        assert server.mean_user.tolist() == one["mean_user"]
        assert by_item(server, server.memory) == one["memory"]


def has_moved_to(server, known):
    assert by_item(server, server.memory) == known["sums"]
    assert server.codes.tobytes().hex() == known["codes_after"]
    assert server.mean_user.tolist() == known["mean_user"]
    return True


@pytest.mark.parametrize(**by_name(vector("catalogue_term")))
def test_the_sums_of_a_round_from_an_empty_memory(known):
    kind, mean = (
        model_pb2.UploadKind.Value(known["upload_kind"]),
        np.array(known["mean_user_before"], np.int16),
    )
    server = catalogue_server(known, kind=kind, mean_user=mean)
    for upload in known["uploads"]:
        server.add(bytes.fromhex(upload))
    if not known["uploads"]:
        add_sums(server, known)
    server.finish_round()
    assert has_moved_to(server, known)


@pytest.mark.parametrize("known", vector("paper")["balances"])
def test_the_balance_of_the_paper(known):
    numerator, denominator = known["lambda"]
    assert balance_of(numerator / denominator, known["code_bits"]) == known["balance"]


def paper_server(known, kind):
    server = PaperRule(
        np.full(known["item_count"], 10), known["code_bits"], regularization=0.0, upload_kind=kind, gate=0, max_rows=0,
        seed=1,
    )  # fmt: skip
    server.balance = known["balance"]
    server.set_codes(matrix_of(known))
    return server


@pytest.mark.parametrize(
    ("field", "kind", "after"),
    [
        ("exact", model_pb2.UPLOAD_KIND_EXACT, "codes_after_agg_grad"),
        ("codes", model_pb2.UPLOAD_KIND_CODES, "codes_after_agg_para"),
    ],
)
@pytest.mark.parametrize("known", vector("paper")["rounds"])
def test_the_rules_of_the_paper(known, field, kind, after):
    server = paper_server(known, kind)
    for device in known["devices"]:
        server.add(bytes.fromhex(device[field]))
    server.finish_round()
    assert server.codes.tobytes().hex() == known[after]


def test_the_rows_that_a_pair_of_gate_refreshes_opens():
    known = vector("gate")
    server = CatalogueRule(
        np.array(known["pair"]["before"]), 8, upload_kind=model_pb2.UPLOAD_KIND_TERNARY, gate=known["k_min"],
        max_rows=64, seed=1,
    )  # fmt: skip
    server.set_gate(np.array(known["sum"]), seed=2)
    server.set_gate(np.array(known["pair"]["second"]), seed=2)
    assert server.device_counts.tolist() == known["pair"]["counts"]
    assert server.open_rows_bitmap().hex() == known["pair"]["open_rows"]


def judging_server(known, counts, trail=None, noise=None):
    """A server in front of a sum; there is a gate where counts are known."""
    is_noisy = noise is not None
    server = CatalogueRule(
        np.array(counts or [0] * len(known["rows"])), vector("plausible")["code_bits"], gate=2 if counts else 0,
        upload_kind=model_pb2.UPLOAD_KIND_EXACT if is_noisy else model_pb2.UPLOAD_KIND_TERNARY, max_rows=64, seed=1,
        privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP if is_noisy else model_pb2.PRIVACY_MODE_SECAGG, noise=noise,
    )  # fmt: skip
    if trail:
        server.trails[:-1] = trail
    return server


@pytest.mark.parametrize("known", vector("plausible")["sums"], ids=lambda known: known["name"])
def test_what_is_learnt_from_a_sum(known):
    server = judging_server(known, known["counts"], known["trail"])
    server.counting_devices = np.array([0, known["counted"]])
    sums = {"rows": np.ravel(known["rows"]), "user_sum": np.array(known["user_sum"]), "weight": [known["weight"]]}
    if known["dropped"]:
        with pytest.raises(ImplausibleSumError):
            server.add_cohort(sums, known["devices"])
        return
    assert server.add_cohort(sums, known["devices"]) == len(known["frozen"])
    server.finish_round()
    assert by_item(server, server.trails) == known["trail_after"]


@pytest.mark.parametrize("known", vector("plausible")["clipped"], ids=lambda known: known["name"])
def test_which_clipped_sums_are_dropped(known):
    server = judging_server(known, [], noise=noise_of(vector("plausible")["noise"]))
    sums = {"rows": np.ravel(known["rows"]), "user_sum": np.array(known["user_sum"])}
    with pytest.raises(ImplausibleSumError) if known["dropped"] else nullcontext():
        server.add_cohort(sums, known["devices"])


@pytest.mark.parametrize("known", vector("plausible")["counts"])
def test_which_counts_are_dropped(known):
    with pytest.raises(ImplausibleSumError) if known["dropped"] else nullcontext():
        require_plausible_counts(np.array(known["counts"]), known["devices"], noise_of(known["noise"]))


@pytest.mark.parametrize("known", vector("cohorts")["cases"], ids=lambda known: known["name"])
def test_how_cohorts_are_combined(known):
    assert combined([np.array(one) for one in known["sums"]], known["survivors"]).tolist() == known["combined"]
