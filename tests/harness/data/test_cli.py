"""`lightfr-harness data`, as a user types it."""

import pytest
from typer.testing import CliRunner

from lightfr_harness.data import load
from lightfr_harness.data.cli import app


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, [str(each) for each in arguments])


@pytest.fixture
def ratings_file(tmp_path):
    path = tmp_path / "ratings.txt"
    path.write_text("1 1 2\n1 2 0.5\n2 2 4\n2 2 3\n")
    return path


def test_show_tells_counts_density_histogram_and_first_ratings(ratings_file):
    result = run("show", ratings_file, "--format", "filmtrust")
    assert result.exit_code == 0
    for part in ("75.0000%", "0.5 to 4", "0.5", "###", "There are no times."):
        assert part in result.stdout


def test_show_takes_the_columns_of_a_csv(tmp_path):
    path = tmp_path / "any.csv"
    path.write_text("who,what,stars\n" + "".join(f"u,i{n},{n / 2}\n" for n in range(20)))
    columns = ("--user", "who", "--item", "what", "--rating", "stars")
    result = run("show", path, "--format", "csv", *columns, "--rating-min", 0, "--rating-max", 10)
    assert result.exit_code == 0
    assert "from 9" in result.stdout  # More values than bars: tenths of the scale.


def test_show_prints_ids_with_brackets_as_they_are(tmp_path):
    path = tmp_path / "any.csv"
    path.write_text("user_id,item_id,rating\n[/red],[bold]x,1\nu,b,0\n")
    result = run("show", path, "--format", "csv", "--rating-min", 0, "--rating-max", 1)
    assert result.exit_code == 0
    assert "[/red]" in result.stdout
    assert "[bold]x" in result.stdout


def test_show_tells_that_a_prepared_folder_is_split(tmp_path):
    for name, items in (("train", "ab"), ("test", "cd")):
        lines = "".join(f"u,{item},{stars}\n" for stars, item in enumerate(items))
        (tmp_path / f"{name}.csv").write_text("user_id,item_id,ratings\n" + lines)
    result = run("show", tmp_path, "--format", "prepared")
    assert "0 users to validate, 1 to test" in result.stdout


def test_a_broken_file_ends_in_one_sentence_and_exit_code_1(ratings_file):
    result = run("show", ratings_file, "--format", "ml-1m")
    assert result.exit_code == 2
    assert "line 1" in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


def test_list_names_data_sets_formats_and_sizes():
    result = run("list")
    assert result.exit_code == 0
    for part in ("ml-25m", "MD5 known", "none known", "prepared", "1,000,000"):
        assert part in result.stdout


def test_fetch_prints_the_path_of_what_is_already_there(tmp_path):
    path = tmp_path / "ml-1m" / "ratings.dat"
    path.parent.mkdir()
    path.write_text("1::1::1::1\n")
    result = run("fetch", "ml-1m", "--to", tmp_path)
    assert (result.exit_code, result.stdout.strip()) == (0, str(path))


def test_fetch_of_an_unknown_name_lists_the_known_ones(tmp_path):
    result = run("fetch", "netflix", "--to", tmp_path)
    assert result.exit_code == 2
    assert "ml-latest-small" in result.stderr


def test_cut_writes_the_first_ratings_as_a_file_that_can_be_read_again(tmp_path):
    source, target = tmp_path / "u.data", tmp_path / "cut.inter"
    source.write_text("7\t20\t3\t881\n7\t9\t1.5\t870\n7\t8\t5\t890\n8\t20\t5\t882\n")
    result = run("cut", source, "--format", "ml-100k", "--first", 2, "--to", target)
    assert result.exit_code == 0
    assert "2 users, 2 items, 3 ratings" in result.stdout.replace("\n", " ")
    header, *lines = target.read_text().splitlines()
    assert header == "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    assert lines == ["7\t9\t1.5\t870", "7\t20\t3.0\t881", "8\t20\t5.0\t882"]
    assert len(load(target, "ml-100k")) == len(load(target, "inter", rating_min=1, rating_max=5)) == 3


def test_cut_of_data_without_times_or_with_ids_that_do_not_fit_is_refused(tmp_path, ratings_file):
    result = run("cut", ratings_file, "--format", "filmtrust", "--first", 2, "--to", tmp_path / "cut")
    assert (result.exit_code, "no times" in result.stderr) == (2, True)
    quoted = tmp_path / "any.csv"
    quoted.write_text('user_id,item_id,rating,t\nu,"a\tb",1,1\nu,c,1,2\n')
    scale = ("--rating-min", 0, "--rating-max", 1, "--timestamp", "t")
    result = run("cut", quoted, "--format", "csv", "--first", 2, "--to", tmp_path / "cut", *scale)
    assert (result.exit_code, "holds a tab" in result.stderr) == (2, True)
    assert not (tmp_path / "cut").exists()


def test_cut_of_a_prepared_split_and_into_a_folder_that_is_not_there_are_refused(tmp_path, ratings_file):
    (tmp_path / "train.csv").write_text("user_id,item_id,ratings\nu,a,1\nu,d,2\n")
    (tmp_path / "test.csv").write_text("user_id,item_id,ratings\nu,b,1\nu,c,0\n")
    result = run("cut", tmp_path, "--format", "prepared", "--first", 2, "--to", tmp_path / "cut")
    assert (result.exit_code, "prepared split" in result.stderr) == (2, True)
    source = tmp_path / "u.data"
    source.write_text("7\t20\t3\t881\n7\t9\t1\t870\n")
    result = run("cut", source, "--format", "ml-100k", "--first", 2, "--to", tmp_path / "absent" / "cut")
    assert (result.exit_code, "Traceback" in result.stderr) == (2, False)


@pytest.mark.parametrize("command", ["cut", "fetch", "list", "show"])
def test_every_command_explains_itself(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
