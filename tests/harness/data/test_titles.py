import numpy as np
import pytest

from lightfr_harness.data import generate
from lightfr_harness.data.errors import DataFileError
from lightfr_harness.data.titles import Title, made_up_titles, read_titles

FLAGS = "0|" * 5 + "1|" + "0|" * 8 + "1|0|0|0|0"
FILES = {
    "tabs": "1\tToy Story\tComedy|Family\n2\tHeat\n",
    "commas between genres": "1\tToy Story\tComedy, Family\n2\tHeat\n",
    "movies.dat": "1::Toy Story::Comedy|Family\n2::Heat::\n",
    "movies.csv": 'movieId,title,genres\n1,Toy Story,Comedy|Family\n2,"Heat",(no genres listed)\n',
    ".item": "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
    "1\tToy Story\t1995\tComedy Family\n2\tHeat\t1995\t\n",
}


@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_file_gives_the_same_titles(tmp_path, name):
    (tmp_path / "titles").write_text(FILES[name])
    assert read_titles(tmp_path / "titles") == {"1": Title("Toy Story", ("Comedy", "Family")), "2": Title("Heat")}


def test_the_flags_of_u_item_are_genres_and_its_letters_are_latin(tmp_path):
    (tmp_path / "u.item").write_bytes(f"7|Les Misérables (1995)|01-Jan-1995||http://a|{FLAGS}\n".encode("latin-1"))
    assert read_titles(tmp_path / "u.item") == {"7": Title("Les Misérables (1995)", ("Comedy", "Romance"))}


@pytest.mark.parametrize(("text", "reason"), [("1\tA\n2\n", "line 2: the line has no title"), ("", "no titles in it"),
                                              ("\tA\n", "line 1: the item id or the title is empty")])  # fmt: skip
def test_a_line_without_a_title_is_named_by_its_number(tmp_path, text, reason):
    (tmp_path / "titles").write_text(text)
    with pytest.raises(DataFileError, match=reason):
        read_titles(tmp_path / "titles")


@pytest.mark.parametrize("size", ["tiny", "ml-100k", "filmtrust", "300x20000x5000"])
def test_every_made_up_title_is_another_and_the_same_seed_gives_the_same(size):
    titles = made_up_titles(size, 0)
    assert len({title.name for title in titles.values()}) == len(titles)
    assert made_up_titles(size, 0) == titles
    assert made_up_titles(size, 1) != titles


def test_a_genre_is_a_taste_so_users_keep_to_few_of_them():
    """A user has two home clusters: the two most rated genres hold far more than an eighth each."""
    ratings, titles = generate("small", seed=0), made_up_titles("small", 0)
    names = sorted({title.genres[0] for title in titles.values()})
    genre = np.array([names.index(titles[item].genres[0]) for item in ratings.item_ids])[ratings.item_index]
    shares = []
    for user in range(ratings.n_users):
        counts = np.sort(np.bincount(genre[ratings.user_index == user], minlength=len(names)))
        shares.append(counts[-2:].sum() / counts.sum())
    assert len(names) == 8
    assert np.mean(shares) > 0.45
