"""A bad option ends a command in one sentence that names it, whatever the command; never in a traceback."""

import json

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.records import to_dict
from tests.harness.record_examples import EXAMPLES

TRAIN = ["train", "--synthetic", "tiny", "--rounds", "1"]
PAPER = ["paper", "accuracy", "--synthetic", "tiny", "--method", "popularity"]
THREE_FILES = ["--data", "a", "--data", "b", "--data", "c", "--format", "ml-1m"]
SERVE = ["--authority", "authority", "--catalogue", "items.tsv"]
TOPK = ["bench", "topk", "--items", "1000", "--seconds", "0.1"]
TOKEN = ["ca", "token", "authority", "--server", "https://localhost:1"]


def run(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file where a folder is wanted")
    (tmp_path / "items.tsv").write_text("a\nb\n")
    assert run("ca", "init", "authority", "--host", "localhost").exit_code == 0
    return tmp_path


@pytest.mark.parametrize(
    ("command", "exit_code", "said"),
    [
        ([*TRAIN, "--seed", "-1"], 2, "--seed"),
        ([*TRAIN, "--save", "file"], 2, "cannot use file"),
        ([*TRAIN, "--report", "file"], 2, "cannot use file"),
        ([*TRAIN, "--checkpoint", "file"], 1, "file is no checkpoint"),
        ([*TRAIN, "--checkpoint", "/proc/run.npz"], 2, "cannot use /proc/run"),
        (["sweep", "--synthetic", "tiny", "--rounds", "1", "--report", "file"], 2, "cannot use file"),
        ([*PAPER, "--method", "svd"], 2, "unknown method 'svd', choose from: pmf"),
        ([*PAPER, "--protocol", "last-out"], 2, "unknown protocol 'last-out', choose from: last-out-49"),
        ([*PAPER, "--settings", "best"], 2, "unknown settings 'best', choose from: authors"),
        ([*PAPER, "--seeds", "0"], 2, "seeds is 0"),
        ([*PAPER, "--report", "file"], 2, "cannot use file"),
        (["paper", "costs", "--dataset", "netflix"], 2, "unknown data set 'netflix', choose one of: ml-1m"),
        (["paper", "costs", "--open-rows", "-1"], 2, "--open-rows"),
        (["paper", "costs", "--report", "file"], 2, "cannot use file"),
        (["paper", "figures", *THREE_FILES, "--format", "ciao"], 2, "3 --data and 2 --format"),
        (["paper", "figures", "--data", "nowhere"], 1, "nowhere: it does not exist"),
        (["paper", "all", "--data", "nowhere"], 1, "nowhere: it does not exist"),
        (["paper", "all", "--synthetic", "tiny", "--report", "file"], 2, "cannot use file"),
        (["audit", "privacy", "--synthetic", "tiny", "--seed", "-1"], 2, "--seed"),
        (["demo", "--report", "file"], 2, "cannot use file"),
        ([*TOPK, "--bits", "7"], 1, "7 bits"),
        ([*TOPK, "--bits", "-8"], 1, "-8 bits"),
        ([*TOPK, "--bits", "99999"], 1, "99999 bits"),
        ([*TOPK, "--seed", "-1"], 2, "--seed"),
        (["bench", "fit", "--seed", "-1"], 2, "--seed"),
        (["bench", "rounds", "--seed", "-1"], 2, "--seed"),
        (["bench", "report", "--seed", "-1"], 2, "--seed"),
        (["serve", "state", *SERVE, "--port", "65536"], 2, "--port"),
        (["serve", "state", *SERVE, "--enrollment-port", "-1"], 2, "--enrollment-port"),
        (["serve", "state", *SERVE, "--operations-port", "65536"], 2, "--operations-port"),
        (["serve", "state", *SERVE, "--web-port", "65536"], 2, "--web-port"),
        (["serve", "state", *SERVE, "--web-origin", "https://app.example"], 1, "need --web-port"),
        (
            ["serve", "state", *SERVE, "--web-port", "0", "--web-origin", "app.example"],
            1,
            "--web-origin is app.example",
        ),
        (["serve", "state", *SERVE, "--web-port", "0", "--web-key", "file"], 1, "--web-certificate and --web-key"),
        (["serve", "state", *SERVE, "--seed", "-1"], 2, "--seed"),
        (["serve", "state", *SERVE, "--gate", "-1"], 2, "--gate"),
        (["serve", "state", *SERVE, "--privacy", "secagg+dp", "--noise-rows", "nan"], 1, "must be finite numbers"),
        (["serve", "state", *SERVE, "--privacy", "secagg+dp", "--noise-sums", "inf"], 1, "must be finite numbers"),
        (["serve", "file", *SERVE], 2, "cannot use file"),
        ([*TOKEN, "--enrollment", "https://localhost:port"], 1, "https://localhost:port' is no address"),
        ([*TOKEN, "--enrollment", "https://[::1"], 1, "https://[::1' is no address"),
    ],
)
def test_a_bad_option_ends_in_one_sentence_that_names_it(command, exit_code, said):
    answer = run(*command)
    assert answer.exit_code == exit_code, answer.output
    assert isinstance(answer.exception, SystemExit)
    assert said in answer.output


@pytest.mark.parametrize(("kind", "field", "value"), [("fit", "numpy_ratio", "fast"), ("demo", "accuracy", [])])
def test_a_record_with_a_wrong_field_ends_in_one_sentence_that_names_the_file(folder, kind, field, value):
    (folder / "record.json").write_text(json.dumps({**to_dict(EXAMPLES[kind]), field: value}))
    for command in (["report", "record.json"], ["compare", "record.json", "record.json"]):
        answer = run(*command)
        assert answer.exit_code == 2
        assert answer.output.startswith("Error: record.json has a field that does not hold")
