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
    (tmp_path / "folder").mkdir()
    (tmp_path / "items.tsv").write_text("a\nb\n")
    (tmp_path / "ratings.inter").write_text("user_id:token\titem_id:token\trating:float\nu\ta\t3\nv\ta\t4\nv\tb\t5\n")
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "spoilt" / "runs.jsonl").write_text("[]\n")
    assert run("ca", "init", "authority", "--host", "localhost").exit_code == 0
    return tmp_path


# test_hostile_values.py walks every option by itself; here are options that do not go together, files that hold
# something else, and what is lost if it is noticed after the work.
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([*TRAIN, "--save", "file"], "cannot use file"),
        ([*TRAIN, "--report", "file"], "cannot use file"),
        ([*TRAIN, "--json", "folder"], "cannot use folder"),
        ([*TRAIN, "--checkpoint", "file"], "file is no checkpoint"),
        ([*TRAIN, "--checkpoint", "/proc/run.npz"], "cannot use /proc/run"),
        ([*TRAIN, "--refine"], "--refine needs --bits"),
        ([*TRAIN, "--lambda", "0.1"], "--lambda belongs to --objective paper"),
        ([*TRAIN, "--epsilon", "1"], "--epsilon belongs to --privacy secagg+dp"),
        (["train", "--synthetic", "1000000000x1000000000x1000000000000"], "give at most"),
        (["train", "--data", "file"], "Cannot guess the format of file: name it with --format"),
        (["train", "--data", "ratings.inter"], "Declare --rating-min and --rating-max"),
        (["train", "--data", "ratings.inter", "--format", "ml-1m", "--rating-min", "1"], "has no option --rating-min"),
        (["sweep", "--synthetic", "tiny", "--rounds", "1", "--report", "spoilt"], "runs.jsonl does not hold finished"),
        ([*PAPER, "--method", "svd"], "unknown name 'svd', choose from: pmf"),
        (["paper", "figures", *THREE_FILES, "--format", "ciao"], "3 --data and 2 --format"),
        (["paper", "figures", "--data", "nowhere", "--format", "ml-1m"], "nowhere: it does not exist"),
        (["paper", "all", "--data", "nowhere", "--format", "ml-1m"], "nowhere: it does not exist"),
        (["audit", "privacy", "--data", "ratings.inter"], "Declare --rating-min and --rating-max"),
        ([*TOPK, "--bits", "12"], "12 bits are not whole bytes"),
        (["bench", "topk", "--items", "1000000000000"], "--items"),
        (["bench", "open-rows", "--items", "10", "--open-items", "11"], "there are 10 items"),
        (["bench", "device", "--items", "1000", "--ratings", "1001"], "more than the 1000 items"),
        (["serve", "state", *SERVE, "--web-origin", "https://app.example"], "need --web-port"),
        (["serve", "state", *SERVE, "--web-port", "0", "--web-origin", "app.example"], "--web-origin is app.example"),
        (["serve", "state", *SERVE, "--web-port", "0", "--web-key", "file"], "--web-certificate and --web-key"),
        (["serve", "state", *SERVE, "--privacy", "secagg+dp", "--noise-rows", "nan"], "--noise-rows"),
        (["serve", "file", *SERVE], "cannot use file"),
        ([*TOKEN, "--enrollment", "https://localhost:port"], "https://localhost:port' is no address"),
        ([*TOKEN, "--enrollment", "https://[::1"], "https://[::1' is no address"),
    ],
)
def test_what_cannot_be_done_ends_in_one_sentence_that_names_it(command, said):
    answer = run(*command)
    assert answer.exit_code == 2, answer.output
    assert isinstance(answer.exception, SystemExit)
    assert said in answer.output


def test_a_file_is_read_in_the_format_that_it_looks_like_and_the_guess_is_shown(folder):
    (folder / "scored.csv").write_text("userId,movieId,rating,timestamp\n7,20,3.0,881\n7,21,4.0,882\n")
    answer = run("data", "show", "scored.csv")
    assert answer.exit_code == 0, answer.output
    assert answer.stderr.startswith("scored.csv looks like a MovieLens ratings.csv: reading it as ml-csv (--format")
    with_scale = run("data", "show", "ratings.inter", "--rating-min", "1", "--rating-max", "5")
    assert "reading it as inter" in with_scale.stderr
    assert with_scale.exit_code == 0, with_scale.output


@pytest.mark.parametrize(("kind", "field", "value"), [("fit", "numpy_ratio", "fast"), ("demo", "accuracy", [])])
def test_a_record_with_a_wrong_field_ends_in_one_sentence_that_names_the_file(folder, kind, field, value):
    (folder / "record.json").write_text(json.dumps({**to_dict(EXAMPLES[kind]), field: value}))
    for command in (["report", "record.json"], ["compare", "record.json", "record.json"]):
        answer = run(*command)
        assert answer.exit_code == 2
        assert answer.output.startswith("Error: record.json has a field that does not hold")
