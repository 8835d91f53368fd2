"""Training runs end to end, small: learning beats popularity, records say what they must, bad options are explained."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lightfr import ItemCodes, OpenRows, UserCode, errors, rank
from lightfr.model.bitmaps import read_bitmap
from lightfr_harness.cli import app
from lightfr_harness.data.errors import DatasetWarning
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import train


def run(**options):
    return train(TrainOptions(**{"synthetic": "small", "rounds": 15, **options})).record


@pytest.fixture(scope="module")
def catalogue():
    return run(recency="strong")


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
    record = run(split="80-10-10", rounds=8, recency="off")
    assert record.recall > record.popularity["recall"]


def test_a_record_of_the_paper_says_how_far_it_is_from_the_paper(tmp_path):
    record = run(data=filmtrust(tmp_path), format="filmtrust", objective="paper", rounds=2)
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
    n_items = record["data"]["items"]
    open_rows = OpenRows(read_bitmap(tmp_path / "model" / "open_rows.bitmap", n_items), n_items)
    with ItemCodes.open(tmp_path / "model" / "items.codes", 32, open_rows=open_rows) as codes:
        assert (codes.n_items, codes.n_rows) == (n_items, record["open_rows"] + 1)
        assert len(rank(UserCode.random(32), codes, 5)) == 5
    assert len((tmp_path / "model" / "item_ids.txt").read_text().splitlines()) == record["data"]["items"]


def test_the_speed_of_a_run_that_goes_on_counts_the_rounds_that_were_timed(tmp_path):
    asked = {"synthetic": "tiny", "recency": "off", "checkpoint": tmp_path / "run.npz"}
    first = run(**asked, rounds=3)
    after = run(**asked, rounds=4)
    assert (first.device_rounds, after.device_rounds) == (3 * 38, 4 * 38)
    seconds = after.seconds["devices"] + after.seconds["server"]
    assert after.device_rounds_per_second * seconds == pytest.approx(38)
    assert run(**asked, rounds=4).device_rounds_per_second is None


def test_a_model_saved_over_another_has_no_bitmap_of_that_one(tmp_path):
    for gate, has_bitmap in ((10, True), (0, False)):
        options = TrainOptions(synthetic="tiny", rounds=0, gate=gate, recency="off")
        train(options).save(tmp_path)
        assert (tmp_path / "open_rows.bitmap").exists() == has_bitmap


def test_secure_training_is_as_accurate_as_training_in_the_clear_and_says_what_noise_promises():
    tiny = {"synthetic": "tiny", "rounds": 2, "bits": 16}
    clear, secure = (run(**tiny, recency="off", privacy=mode) for mode in ("clear", "secagg"))
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


def test_people_get_a_table_with_popularity_both_rules_for_ties_and_groups_of_users():
    wide = CliRunner(env={"COLUMNS": "200"})
    answer = wide.invoke(app, ["train", "--synthetic", "tiny", "--rounds", "1", "--bits", "16"])
    assert answer.exit_code == 0, answer.output
    shown = ("popularity HR@10", "ties at random", "ties as on a device", "users with 20-99 ratings")
    for part in (*shown, "disliked", "what the fleet said about each ranking", "recency strong, prior 2", "* is used"):
        assert part in answer.output
    assert "Held out: the newest rating of each user by time" in answer.output


@pytest.mark.parametrize("split", ["last-out", "80-10-10"])
def test_the_groups_of_users_add_up_to_all_of_them(split):
    record = run(synthetic="100x60x1000", rounds=2, split=split)
    first = "hr" if split == "last-out" else "recall"
    assert [each["ratings"] for each in record.by_count] == ["1-4", "5-19", "20-99"]
    for mine, figures in (("learned", vars(record)), ("popularity", record.popularity)):
        for name in (first, "ndcg", f"{first}_device", "ndcg_device"):
            parts = [each[mine][name] * each[mine]["n_users"] for each in record.by_count]
            assert sum(parts) == pytest.approx(figures[name] * record.n_users)


def test_ties_of_untrained_equal_codes_are_broken_by_popularity_on_a_device():
    # With a gate that no item passes all rows are one code: every score is a tie.
    record = run(synthetic="tiny", rounds=1, gate=10_000, recency="off")
    assert record.hr == pytest.approx(10 / 50)
    assert record.hr_device == record.popularity["hr_device"]


def filmtrust(folder):
    lines = [f"{user} {item} {1 + (user + item) % 3}" for user in range(30) for item in range(20) if (user + item) % 3]
    path = folder / "ratings.txt"
    path.write_text("\n".join(lines))
    return path


def test_without_times_the_record_says_that_the_hold_out_is_random_and_recency_is_refused(tmp_path):
    data = {"data": filmtrust(tmp_path), "format": "filmtrust", "rounds": 1}
    assert run(**data).data["held_out"] == "random, since there are no times; seed 20230401"
    with pytest.raises(errors.InvalidInputError, match="no times"):
        run(**data, recency="weak")


def test_a_prepared_split_with_own_items_among_the_negatives_gives_both_figures(tmp_path):
    header = "user_id,item_id,ratings\n"
    train_lines = "".join(f"u{user},i{(user + n) % 12},{n}\n" for user in range(12) for n in range(1, 6))
    test_lines = "".join(
        f"u{user},i{user},5\n" + "".join(f"u{user},i{(user + n) % 12},0\n" for n in range(1, 12)) for user in range(12)
    )
    (tmp_path / "train.csv").write_text(header + train_lines)
    (tmp_path / "test.csv").write_text(header + test_lines)
    with pytest.warns(DatasetWarning, match="60 test negatives of 12 users"):
        record = run(data=tmp_path, format="prepared", rounds=2, gate=0)
    assert record.data["negatives_dropped"] == 60
    assert record.hr == 1.0  # Six negatives are left: nothing can fall out of the first ten.
    assert record.as_given["learned"]["hr"] < 1.0
    assert record.as_given["popularity"]["hr"] < 1.0


def test_defaults_follow_the_objective_and_a_zero_is_not_a_default():
    ours, paper = TrainOptions(), TrainOptions(objective="paper")
    assert (ours.upload, ours.gate, ours.max_rows) == ("ternary", 10, 64)
    assert (paper.upload, paper.gate, paper.max_rows, paper.aggregate) == ("exact", 0, 0, "grad")
    assert TrainOptions(gate=0, max_rows=0).gate == TrainOptions(gate=0, max_rows=0).max_rows == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"objective": "other"}, "--objective: unknown name 'other'"),
        ({"objective": "paper", "upload": "ternary"}, "--upload: unknown name 'ternary'"),
        ({"aggregate": "grad"}, "--aggregate: unknown name 'grad'"),
        ({"rounds": -1}, "rounds is -1"),
        ({"fraction": 0.0}, "fraction is 0.0"),
        ({"fraction": np.nan}, "fraction is nan"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"regularization": 0.2}, "lambda belongs to --objective paper"),
        ({"objective": "paper", "recency": "off"}, "--refine and --prior belong to --objective catalogue"),
        ({"objective": "paper", "positives": "all"}, "--positives, --recency, --refine"),
        ({"recency": "some"}, "--recency: unknown name 'some'"),
        ({"positives": "some"}, "--positives: unknown name 'some'"),
        ({"refine": True}, "refine needs --bits of at least 128"),
        ({"prior": -1}, "prior is -1"),
        ({"prior": 257.0}, "prior is 257.0, expected 0 to 256"),
        ({"split": "half"}, "--split: unknown name"),
        ({"gate": -1}, "gate is -1"),
        ({"privacy": "none"}, "--privacy: unknown name 'none'"),
        ({"privacy": "secagg", "upload": "exact"}, "sums ternary rows"),
        ({"privacy": "secagg", "objective": "paper"}, "needs --objective catalogue"),
        ({"privacy": "secagg", "max_rows": 65}, "--max-rows is 65"),
        ({"privacy": "secagg", "max_rows": 0}, "--max-rows is 0"),
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
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output
