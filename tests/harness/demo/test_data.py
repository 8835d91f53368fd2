from pathlib import Path

import pytest

from lightfr_harness.data.errors import DataFileError, InvalidOptionError
from lightfr_harness.demo.data import generated, own

ROWS = [(f"u{user}", item, 1 + (user + item) % 5, 1000 * user + item) for user in range(4) for item in range(3, 9)]


def write(folder, head, line):
    """A file of these ratings: its first line, and how the others are written."""
    path = folder / "ratings"
    path.write_text(head + "".join(line.format(*row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize(
    ("head", "line", "guess"),
    [
        ("userId,movieId,stars,when\n", "{0},{1},{2},{3}", "comma-separated text and is read as csv"),
        ("", "{0},{1},{2}", "comma-separated text and is read as csv"),
        ("user_id:token\titem_id:token\trating:float\n", "{0}\t{1}\t{2}", "a RecBole .inter file and is read as inter"),
    ],
)
def test_the_format_and_the_scale_of_a_file_are_guessed_and_the_guess_is_told(tmp_path, head, line, guess):
    material = own(write(tmp_path, head, line), None)
    assert guess in material.source
    assert "ratings from 1 to 5" in material.source
    assert (material.split.train.n_users, material.split.train.n_items) == (4, 6)


def test_events_without_stars_are_all_likes(tmp_path):
    train = own(write(tmp_path, "user,item,rating\n", "{0},{1},1"), None).split.train
    assert set(train.levels()) == {2520}


def test_titles_go_by_item_id_and_an_item_without_one_shows_its_id(tmp_path):
    data = write(tmp_path, "user,item,rating\n", "{0},{1},{2}")
    (tmp_path / "titles").write_text("3\tThe Third\tSea|Space\n99\tUnrated\n")
    material = own(data, tmp_path / "titles")
    assert [str(material.title(item)) for item in ("3", "4")] == ["The Third (Sea, Space)", "4"]


def test_what_is_no_file_of_ratings_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "words").write_text("Once upon a time\n")
    with pytest.raises(InvalidOptionError, match="name a file of ratings for --data"):
        own(tmp_path / "words", None)
    (tmp_path / "json").write_text('{"user": 1}')
    with pytest.raises(InvalidOptionError, match=r"looks like JSON\. Convert it to CSV"):
        own(tmp_path / "json", None)
    with pytest.raises(DataFileError, match="does not exist"):
        own(Path(tmp_path / "nothing"), None)


def test_a_generated_catalogue_has_a_title_for_every_item():
    material = generated("tiny", 0)
    assert set(material.titles) == set(material.split.train.item_ids)
