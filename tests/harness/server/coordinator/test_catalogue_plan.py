"""A change of the catalogue moves items, and what is known of them, as sets of ids say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.server.coordinator.catalogue_plan import MOST_PARTS, plan_change

IDS = st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True)


def planned(old, was_removed, parts, new, counts=None):
    known = {item: index for index, item in enumerate(old)}
    found = np.array([known.get(item, -1) for item in new])
    return plan_change(found, np.array(was_removed, bool), parts, np.array(counts or [0] * len(new), np.int64))


def ids_after(change, old, new):
    return [
        new[place] if place >= 0 else old[index]
        for place, index in zip(change.place_of_new, change.old_index_of_new, strict=True)
    ]


@st.composite
def catalogues(draw):
    old, new = draw(IDS), draw(IDS)
    was_removed = draw(st.lists(st.booleans(), min_size=len(old), max_size=len(old)))
    cuts = sorted(draw(st.sets(st.integers(1, max(len(old) - 1, 1)), max_size=5)))
    parts = [size for size in np.diff([0, *(cut for cut in cuts if cut < len(old)), len(old)]).tolist() if size]
    counts = draw(st.lists(st.integers(0, 2**62), min_size=len(new), max_size=len(new)))
    return old, was_removed, parts, new, counts


@given(catalogues())
def test_items_join_leave_and_return_as_sets_of_ids_say(drawn):
    old, was_removed, _, new, counts = drawn
    change = planned(*drawn)
    ids = ids_after(change, old, new)
    present = {item for item, gone in zip(old, was_removed, strict=True) if not gone}
    assert len(set(ids)) == len(ids)
    assert {item for item, gone in zip(ids, change.removed, strict=True) if not gone} == set(new)
    assert change.joined == len(set(new) - set(old))
    assert change.left == len(present - set(new))
    assert change.returned == len(set(new) & (set(old) - present))
    for index, item in enumerate(ids):
        assert change.old_index_of_new[index] == (old.index(item) if item in old else -1)
    if not change.is_renumbered:
        assert ids == old + [item for item in new if item not in old]
    else:
        assert ids == [new[i] for i in sorted(range(len(new)), key=lambda i: (-counts[i], i))]


@given(catalogues())
def test_parts_are_few_and_hold_all_items(drawn):
    change = planned(*drawn)
    kept = list(drawn[2][: change.n_kept_parts])
    assert sum(kept) + change.new_part == change.n_items
    assert len(kept) + (change.new_part > 0) <= MOST_PARTS
    if kept:
        assert kept[-1] > change.new_part


@given(catalogues())
def test_what_is_known_moves_with_its_item_and_is_0_for_others(drawn):
    old, _, _, new, _ = drawn
    change = planned(*drawn)
    known, said = np.array(old) + 100, np.array(new) + 200
    for item, kept, listed in zip(ids_after(change, old, new), change.kept(known), change.listed(said), strict=True):
        assert kept == (item + 100 if item in old and item in new else 0)
        assert listed == (item + 200 if item in new else 0)


def test_joining_items_take_smaller_parts_before_them_along():
    old = list(range(100))
    for parts, kept, size in [([100], 1, 10), ([85, 15], 2, 10), ([90, 10], 1, 20), ([65, 25, 6, 4], 2, 20)]:
        change = planned(old, [False] * 100, parts, list(range(110)))
        assert (change.n_kept_parts, change.new_part) == (kept, size)
    assert planned(old, [False] * 100, [90, 10], old[5:]).new_part == 0


def test_more_than_16_parts_are_numbered_anew():
    sizes = list(range(40, 24, -1))
    old = list(range(sum(sizes)))
    assert planned(old, [False] * len(old), sizes[:-1] + sizes[-1:], [*old, 10_000]).is_renumbered
    assert not planned(old, [False] * len(old), [*sizes[:-2], sum(sizes[-2:])], old).is_renumbered


def test_items_are_numbered_anew_when_a_quarter_of_all_indices_belongs_to_items_that_left():
    old = list(range(100))
    assert not planned(old, [False] * 100, [100], old[24:]).is_renumbered
    assert planned(old, [False] * 100, [100], old[25:]).is_renumbered
    # Those that left before count too.
    assert planned(old, [True] * 20 + [False] * 80, [100], old[25:]).is_renumbered


@pytest.mark.parametrize(("share", "is_renumbered"), [(99, False), (112, True)])
def test_items_are_numbered_anew_when_a_tenth_of_all_counts_is_out_of_place(share, is_renumbered):
    """The last of ten items has this count, and all others together have 1,000: it should be the third."""
    counts = [400, 200, 80, 70, 60, 55, 50, 45, 40, share]
    change = planned(list(range(10)), [False] * 10, [10], list(range(10)), counts)
    assert change.is_renumbered == is_renumbered
    assert change.old_index_of_new.tolist() == ([0, 1, 9, *range(2, 9)] if is_renumbered else list(range(10)))


def test_small_moves_and_equal_counts_number_nothing_anew():
    old = list(range(50))
    assert not planned(old, [False] * 50, [50], old[::-1], [7] * 50).is_renumbered
    assert not planned(old, [False] * 50, [50], old, [0] * 50).is_renumbered
    assert not planned(old, [False] * 50, [50], old[::-1]).is_renumbered
    neighbours = [100 - (index ^ 1) for index in range(50)]
    assert not planned(old, [False] * 50, [50], old, neighbours).is_renumbered
