"""`lightfr-harness data`, as a user types it."""

import pytest
from typer.testing import CliRunner

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
    for part in ("75.0000%", "0.5 to 4", "0.5", "###"):
        assert part in result.stdout


def test_show_takes_the_columns_of_a_csv(tmp_path):
    path = tmp_path / "any.csv"
    path.write_text("who,what,stars\n" + "".join(f"u,i{n},{n / 2}\n" for n in range(20)))
    columns = ("--user", "who", "--item", "what", "--rating", "stars")
    result = run("show", path, "--format", "csv", *columns, "--rating-min", 0, "--rating-max", 10)
    assert result.exit_code == 0
    assert "from 9" in result.stdout  # More values than bars: tenths of the scale.


def test_show_tells_that_a_prepared_folder_is_split(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text("user_id,item_id,ratings\nu,a,1\nu,b,2\n")
    result = run("show", tmp_path, "--format", "prepared")
    assert "0 users to validate, 1 to test" in result.stdout


def test_a_broken_file_ends_in_one_sentence_and_exit_code_1(ratings_file):
    result = run("show", ratings_file, "--format", "ml-1m")
    assert result.exit_code == 1
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
    assert result.exit_code == 1
    assert "ml-latest-small" in result.stderr


@pytest.mark.parametrize("command", ["fetch", "list", "show"])
def test_every_command_explains_itself(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
