"""Cases by id, selections, and the list of those that are known to fail."""

import re
from pathlib import Path

import pytest

from lightfr_harness.conformance import cases
from lightfr_harness.conformance.registry import Registry, read_known_failing, registry
from lightfr_harness.errors import CannotRunError

ROOT = Path(__file__).parents[3]
PLACE = "docs/protocol.md#tls"


def declared(*ids, **options):
    made = Registry()
    for one in ids:
        made.case(one, "It matters.", PLACE, **options)(lambda world: None)
    return made


def test_cases_come_in_the_order_in_which_they_were_declared():
    made = declared("b.two", "a.one", "b.three")
    assert [one.id for one in made.cases()] == ["b.two", "a.one", "b.three"]
    assert [one.id for one in made.cases(only=["b.*", "a.one"])] == ["b.two", "a.one", "b.three"]
    assert [one.id for one in made.cases("clear", ["*.one"])] == ["a.one"]


def test_a_case_runs_on_the_kits_that_it_names():
    made = declared("a.one", kits=("secagg", "crowd"))
    assert made.cases("crowd")
    with pytest.raises(CannotRunError, match="no case"):
        made.cases("clear")


@pytest.mark.parametrize(
    ("id", "why", "place", "kits"),
    [
        ("upload", "It matters.", PLACE, ("clear",)),
        ("Upload.one", "It matters.", PLACE, ("clear",)),
        ("upload.one_two", "It matters.", PLACE, ("clear",)),
        ("upload.one", "It matters", PLACE, ("clear",)),
        ("upload.one", "It matters.", "docs/protocol.md", ("clear",)),
        ("upload.one", "It matters.", PLACE, ("clear", "fog")),
        ("upload.one", "It matters.", PLACE, ()),
    ],
)
def test_a_case_must_be_well_formed(id, why, place, kits):
    with pytest.raises(ValueError, match=r"case [uU]pload"):
        Registry().case(id, why, place, kits=kits)(lambda world: None)


def test_two_cases_cannot_share_an_id():
    with pytest.raises(ValueError, match=r"two cases are called a\.one"):
        declared("a.one", "a.one")


def test_the_known_failing_list_has_comments(tmp_path):
    path = tmp_path / "known.txt"
    path.write_text("# all of these are being worked on\na.one   # since March\n\n  b.two\n")
    assert read_known_failing(path, ["a.one", "b.two", "c.three"]) == {"a.one", "b.two"}


def test_a_known_failing_id_that_there_is_not_is_an_error(tmp_path):
    path = tmp_path / "known.txt"
    path.write_text("a.one\na.on\n")
    with pytest.raises(CannotRunError, match=r"names unknown cases: a\.on$"):
        read_known_failing(path, ["a.one"])
    with pytest.raises(CannotRunError, match="cannot be read"):
        read_known_failing(tmp_path / "none.txt", [])


def every_case():
    cases.load()
    return registry.cases()


def headings(path):
    """The anchors of a document's headings, or the names that a proto file declares."""
    text = (ROOT / path).read_text()
    if path.endswith(".proto"):
        return set(re.findall(r"^(?:message|enum|service) (\w+)", text, re.M))
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_place_of_every_case_is_in_the_document():
    places = {one.place for one in every_case()}
    missing = {place for place in places if place.split("#")[1] not in headings(place.split("#")[0])}
    assert missing == set()


def test_no_two_cases_give_the_same_reason():
    whys = [one.why for one in every_case()]
    assert len(whys) == len(set(whys))


def test_there_are_cases_for_every_kit():
    every_case()
    assert len(registry.cases("clear")) >= 150
    assert len(registry.cases("secagg")) >= 80


def test_every_group_is_in_the_document():
    text = (ROOT / "docs/conformance.md").read_text()
    groups = {one.group for one in every_case()}
    firsts = re.findall(r"^\| (`.*?) \|", text, re.M)
    named = [name for first in firsts for name in re.findall(r"`(\w+)\.`", first)]
    assert sorted(groups) == sorted(named)
