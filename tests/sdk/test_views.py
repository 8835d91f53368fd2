"""What a server told is kept for the last sixteen rounds, and survives export and import bit for bit."""

import json
from types import SimpleNamespace

import pytest

from lightfr.errors import InvalidInputError
from lightfr.views import KEPT_VIEWS, View, exported, imported, kept_views, views_in


def view(number, **changes):
    fields = {name: bytes([number]) * 4 for name in View._fields if name != "kind"}
    return View(**{**fields, "kind": 1, **changes})


def test_a_view_survives_export_and_import():
    views = [view(1), view(2, survivors=b"", survivors_signature=b"")]
    assert imported(exported(views)) == views


def test_a_view_is_what_a_session_knows_of_its_round():
    known = SimpleNamespace(**view(1)._asdict(), seed=b"is no part of it")
    assert View.of(known) == view(1)


def test_the_newest_sixteen_are_kept_oldest_first():
    assert KEPT_VIEWS == 16
    kept = {}
    for number in range(KEPT_VIEWS + 3):
        kept.update(kept_views(view(number), kept.get))
    assert views_in(kept.get) == [view(number) for number in range(3, KEPT_VIEWS + 3)]


def test_a_round_without_a_roster_leaves_no_view():
    assert kept_views(view(1, roster_digest=b""), {}.get) == {}
    assert kept_views(None, {}.get) == {}
    assert views_in({}.get) == []


def good():
    return json.loads(exported([view(1)]))


def spoilt(change):
    fields = good()
    change(fields)
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b"[" * 100_000,
        spoilt(lambda fields: fields.update(format="lightfr views v0")),
        spoilt(lambda fields: fields.update(views={})),
        spoilt(lambda fields: fields.update(views=[7])),
        spoilt(lambda fields: fields["views"][0].pop("included")),
        spoilt(lambda fields: fields["views"][0].pop("kind")),
        spoilt(lambda fields: fields["views"][0].update(more="00")),
        spoilt(lambda fields: fields["views"][0].update(included="xy")),
        spoilt(lambda fields: fields["views"][0].update(included=7)),
        spoilt(lambda fields: fields["views"][0].update(kind="one")),
        spoilt(lambda fields: fields["views"][0].update(kind=None)),
        spoilt(lambda fields: fields["views"][0].update(kind=float("inf"))),
    ],
)
def test_anything_else_is_refused(content):
    with pytest.raises(InvalidInputError, match=r"no file of views|a view of a round"):
        imported(content)
