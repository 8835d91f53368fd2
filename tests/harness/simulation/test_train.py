"""Training runs end to end, small: learning beats popularity, records say what they must, bad options are explained."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lightfr import ItemCodes, UserCode, errors, rank
from lightfr_harness.cli import app
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import train


def run(**options):
    return train(TrainOptions(**{"synthetic": "small", "rounds": 15, **options})).record


@pytest.fixture(scope="module")
def catalogue():
    return run()


def test_learned_codes_clearly_beat_the_popularity_list(catalogue):
    """A small version of the benchmark in docs/accuracy.md."""
    assert catalogue.hr > catalogue.popularity["hr"] + 0.05
    assert catalogue.ndcg > catalogue.popularity["ndcg"] + 0.03
    assert catalogue.hr_optimistic >= catalogue.hr


def test_exact_gradients_learn_as_well_as_ternary_rows(catalogue):
    assert abs(run(upload="exact").hr - catalogue.hr) < 0.08


def test_the_catalogue_objective_beats_the_printed_one(catalogue):
    assert catalogue.ndcg > run(objective="paper").ndcg + 0.05


def test_the_ablations_stand_in_their_order():
    random, init = (run(objective="paper", aggregate=name).hr for name in ("random", "init"))
    assert random < 0.3
    assert init > random


def test_the_record_names_what_it_needs_to_be_understood(catalogue):
    assert catalogue.options["seed"] == 0
    assert catalogue.isa
    assert {"load", "devices", "server", "evaluate"} <= catalogue.seconds.keys()
    assert catalogue.up_bytes_per_device_round < 64 * (4 + 2 * 8) + 40
    assert catalogue.paper is None


def test_the_whole_catalogue_can_be_judged_too():
    record = run(split="80-10-10", rounds=8)
    assert record.recall > record.popularity["recall"]


def test_a_record_of_the_paper_says_how_far_it_is_from_the_paper(tmp_path):
    lines = [f"{user} {item} {1 + (user + item) % 3}" for user in range(30) for item in range(20) if (user + item) % 3]
    path = tmp_path / "ratings.txt"
    path.write_text("\n".join(lines))
    record = run(data=path, format="filmtrust", objective="paper", rounds=2)
    assert record.paper["stated"] == {"hr": 0.8615, "ndcg": 0.6565}
    assert record.paper["hr_difference"] == pytest.approx(record.hr - 0.8615)
    assert run(objective="paper", rounds=1).paper["stated"] is None


def test_the_command_line_trains_prints_json_and_saves_a_matrix_that_ranks(tmp_path):
    arguments = [
        "train",
        "--synthetic",
        "tiny",
        "--rounds",
        "2",
        "--bits",
        "32",
        "--json",
        "-",
        "--save",
        str(tmp_path / "model"),
    ]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    record = json.loads(answer.output)
    assert {"hr", "ndcg", "hr_optimistic", "ndcg_optimistic", "popularity"} <= record.keys()
    with ItemCodes.open(tmp_path / "model" / "items.codes", 32) as codes:
        assert codes.n_items == record["data"]["items"]
        assert len(rank(UserCode.random(32), codes, 5)) == 5
    assert len((tmp_path / "model" / "item_ids.txt").read_text().splitlines()) == record["data"]["items"]


def test_secure_training_is_as_accurate_as_training_in_the_clear_and_says_what_noise_promises():
    tiny = {"synthetic": "tiny", "rounds": 2, "bits": 16}
    clear, secure = run(**tiny), run(**tiny, privacy="secagg", dropout=0.0)
    assert secure.hr == pytest.approx(clear.hr, abs=0.1)
    assert secure.up_bytes_per_device_round > clear.up_bytes_per_device_round
    assert clear.privacy_loss is secure.privacy_loss is None
    noisy = run(**tiny, privacy="secagg+dp", epsilon=8.0, unmasked=True)
    assert noisy.privacy_loss["delta"] == 1e-5
    assert noisy.privacy_loss["rounds"] == 2
    assert noisy.privacy_loss["epsilon"] == pytest.approx(8, rel=0.02)
    counted = run(**tiny, privacy="secagg+dp", epsilon=8.0, unmasked=True, gate=3)
    assert counted.privacy_loss["epsilon"] == pytest.approx(8, rel=0.02)
    assert 0 < counted.open_rows < noisy.open_rows


def test_people_get_a_table_with_both_rows():
    answer = CliRunner().invoke(app, ["train", "--synthetic", "tiny", "--rounds", "1", "--bits", "16"])
    assert answer.exit_code == 0, answer.output
    assert "learned codes" in answer.output
    assert "popularity" in answer.output


def test_defaults_follow_the_objective_and_a_zero_is_not_a_default():
    ours, paper = TrainOptions(), TrainOptions(objective="paper")
    assert (ours.upload, ours.gate, ours.max_rows) == ("ternary", 10, 64)
    assert (paper.upload, paper.gate, paper.max_rows, paper.aggregate) == ("exact", 0, 0, "grad")
    assert TrainOptions(gate=0, max_rows=0).gate == TrainOptions(gate=0, max_rows=0).max_rows == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"objective": "other"}, "unknown objective 'other'"),
        ({"objective": "paper", "upload": "ternary"}, "unknown upload 'ternary'"),
        ({"aggregate": "grad"}, "unknown aggregate of objective catalogue 'grad'"),
        ({"rounds": -1}, "rounds is -1"),
        ({"fraction": 0.0}, "fraction is 0.0"),
        ({"fraction": np.nan}, "fraction is nan"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"regularization": 0.2}, "lambda belongs to --objective paper"),
        ({"objective": "paper", "recency": True}, "recency and refine belong to --objective catalogue"),
        ({"split": "half"}, "unknown split"),
        ({"gate": -1}, "gate is -1"),
        ({"privacy": "none"}, "unknown privacy 'none'"),
        ({"privacy": "secagg", "upload": "exact"}, "sums ternary rows"),
        ({"privacy": "secagg", "objective": "paper"}, "needs --objective catalogue"),
        ({"privacy": "secagg", "max_rows": 65}, "max_rows of a secure sum is 65"),
        ({"privacy": "secagg", "max_rows": 0}, "max_rows of a secure sum is 0"),
        ({"privacy": "secagg", "epsilon": 2.0}, "epsilon belongs to --privacy secagg"),
        ({"privacy": "secagg+dp"}, "epsilon is 0.0, expected 0.01 to 1000"),
        ({"privacy": "secagg+dp", "epsilon": 2.0, "upload": "ternary"}, "sums exact rows"),
    ],
)
def test_options_outside_their_domain_are_refused(options, reason):
    with pytest.raises(errors.InvalidInputError, match=reason):
        TrainOptions(**options)


@pytest.mark.parametrize("arguments", [["--bits", "12"], ["--data", "/nowhere/u.data"], ["--synthetic", "huge"]])
def test_bad_arguments_end_as_one_sentence(arguments):
    answer = CliRunner().invoke(app, ["train", "--rounds", "1", *arguments])
    assert answer.exit_code == 1
    assert "Error: " in answer.output
    assert "Traceback" not in answer.output
