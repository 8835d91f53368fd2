import json
import sys
import types

import numpy as np
import pytest
from typer.testing import CliRunner

from lightfr_harness.bench import fit, open_rows, timing, topk
from lightfr_harness.cli import app


class Index:
    """What faiss.IndexBinaryFlat does, as plainly as can be."""

    def __init__(self, code_bits):
        self.codes = np.empty((0, code_bits // 8), np.uint8)

    def add(self, codes):
        self.codes = np.concatenate([self.codes, codes])

    def search(self, queries, k):
        distances = np.unpackbits(self.codes[None] ^ queries[:, None], axis=2).sum(axis=2, dtype=np.int32)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distances, order, axis=1), order


@pytest.fixture
def faiss(monkeypatch):
    """A stand-in: the real package is large, and only the benchmark's own users have it."""
    stand_in = types.SimpleNamespace(omp_set_num_threads=lambda n: None, IndexBinaryFlat=Index)
    monkeypatch.setitem(sys.modules, "faiss", stand_in)


@pytest.mark.parametrize("items", [1, 4, 9, 10, 11])
def test_real_values_are_searched_also_where_there_are_fewer_items_than_a_list_has(items):
    samples = topk.against_real_values(items, 64, seed=0, seconds=0, least=1)
    assert all(min(each) > 0 for each in samples.values())


@pytest.mark.usefixtures("faiss")
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", ["random", "learned"])
def test_a_small_run_reports_every_ratio(batch, kind):
    record = topk.run(2000, 64, batch, kind, seed=1, seconds=0)
    assert min(record.float64_ratio, record.floor_ratio, record.faiss_ratio) > 0
    assert record.faiss_ratio == record.faiss_ns / record.ours_ns
    assert record.codes == kind


def test_learned_codes_cluster():
    rng = np.random.default_rng(0)
    spread = {kind: mean_nearest(topk.make_codes(400, 64, kind, rng)) for kind in ("random", "learned")}
    assert spread["learned"] < spread["random"] - 3


def mean_nearest(codes):
    bits = np.unpackbits(codes, axis=1).astype(int)
    distance = (bits[:, None] != bits[None]).sum(axis=2) + 64 * np.eye(len(codes), dtype=int)
    return distance.min(axis=1).mean()


def test_a_contender_that_finds_something_else_stops_the_benchmark():
    codes = np.arange(160, dtype=np.uint8).reshape(20, 8)
    wrong = (np.zeros((1, 10), np.int32), None)
    with pytest.raises(AssertionError, match="differ from those of nobody"):
        topk.require_equal(codes, codes[:1].copy(), lambda: wrong, "nobody")


def test_the_fit_benchmark_asserts_equal_bits_and_reports_a_ratio():
    assert fit.run(20, 64, 200, seed=0, seconds=0).numpy_ratio > 1


@pytest.mark.usefixtures("faiss")
def test_the_command_line_prints_json_with_the_promised_keys():
    answer = CliRunner().invoke(app, ["bench", "topk", "--items", "1000", "--seconds", "0", "--json", "-"])
    assert answer.exit_code == 0, answer.output
    assert {"faiss_ratio", "float64_ratio", "floor_ratio"} <= json.loads(answer.output).keys()


def test_without_faiss_the_command_says_in_one_sentence_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    answer = CliRunner().invoke(app, ["bench", "topk", "--items", "1000", "--seconds", "0"])
    assert answer.exit_code == 2
    assert answer.output.startswith("Error: The top-K benchmark needs the package faiss-cpu. Run: ")


def test_timing_takes_turns_and_counts_samples():
    timings = timing.interleave({"a": lambda: None, "b": lambda: sum(range(2000))}, seconds=0, least=2)
    assert timings["a"].repeats == 10
    assert timings["a"].min_ns <= timings["a"].median_ns < timings["b"].min_ns


def test_packed_codes_take_an_eighth_of_the_printed_formula():
    storage = topk.storage_bytes(10_000_000, 128)
    assert storage["codes, packed"] * 8 == storage["codes, the paper's formula"]
    assert round(storage["codes, packed"] / 1e6) == 160


@pytest.mark.parametrize("kind", ["prefix", "random"])
def test_open_rows_are_timed_against_all_rows(kind):
    record = open_rows.run(3000, 200, 64, kind, seed=1, seconds=0)
    assert (record.items, record.open_items, record.bitmap) == (3000, 200, kind)
    assert record.ratio == record.full_ns / record.open_ns > 0
    assert record.prior_ratio == record.prior_full_ns / record.prior_open_ns > 0


def test_a_bitmap_that_is_nearly_a_prefix_is_one_but_for_its_end():
    rng = np.random.default_rng(0)
    is_open = open_rows.open_items(10_000, 1000, "prefix", rng)
    assert is_open.sum() == 1000
    assert is_open[:900].all()
    assert not is_open[1100:].any()
    assert open_rows.open_items(10_000, 1000, "random", rng)[5000:].sum() > 300
