"""What a fleet chose, for people."""

from dataclasses import replace

from lightfr_harness.reports import choices
from lightfr_harness.reports.training import train_page
from tests.harness.record_examples import EXAMPLES

RECORD = EXAMPLES["train"]


def test_liked_and_disliked_items_stand_side_by_side_for_both_lists():
    assert dict(choices.opinion_rows(RECORD)) == {
        "learned": ["0.860", "0.570", "0.530"],
        "popularity list": ["0.520", "0.310", "0.440"],
        "users": ["486", "", "216"],
    }
    assert choices.opinion_rows(replace(RECORD, disliked_hr=None, n_disliked=0)) == []


def test_where_nobody_likes_what_is_held_out_its_figures_are_left_open():
    popular = {name: value for name, value in RECORD.popularity.items() if not name.startswith("liked")}
    record = replace(RECORD, liked_hr=None, liked_ndcg=None, n_liked=0, popularity={**popular, "disliked_hr": 0.0})
    assert choices.opinion_rows(record) == [
        ("learned", ["-", "-", "0.530"]),
        ("popularity list", ["-", "-", "0.000"]),
        ("users", ["0", "", "216"]),
    ]


def test_every_candidate_has_what_the_fleet_and_the_test_say_and_each_group_one_mark():
    rows = dict(choices.candidate_rows(RECORD))
    assert choices.candidate_heads(RECORD) == ["", "20-99 ratings", "100+ ratings"]
    assert rows["recency weak, prior 1"] == ["*.400 .360", ".390 .360"]
    assert rows["recency weak, prior 2"] == [".390 .360", "*.400 .360"]
    assert rows["recency strong, refined"] == [".360 .370", ".370 .370"]
    assert "popularity alone" in rows
    assert "".join(cell for cells in rows.values() for cell in cells).count("*") == 2


def test_a_page_shows_of_a_group_what_the_fleet_likes_best_the_best_of_the_test_and_popularity():
    rows = choices.best_rows(RECORD.by_count[0])
    assert rows[0] == ("* recency weak, prior 1", [".400", ".360"])
    assert [name for name, _ in rows[-2:]] == ["popularity alone", "recency strong, refined"]
    assert len(rows) == 7


def test_the_page_says_what_was_chosen_or_that_the_options_said_it():
    assert "The fleet&#39;s evaluation chose how to rank. 20-99 ratings: recency weak, prior 1;" in train_page(RECORD)
    bare = [{key: value for key, value in each.items() if key != "candidates"} for each in RECORD.by_count]
    fixed = train_page(replace(RECORD, by_count=bare))
    assert "The options say how to rank" in fixed
    assert "How the fleet ranks" not in fixed
    unsaid = [{key: each[key] for key in ("ratings", "learned", "popularity")} for each in RECORD.by_count]
    assert "how to rank" not in train_page(replace(RECORD, by_count=unsaid))
