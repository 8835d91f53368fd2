import os

import pytest

from lightfr import ItemCodes, ItemSet, Ranked, UserCode, errors, rank, rank_batch, recommend
from lightfr.ranking import similarity_of


@pytest.fixture
def catalogue():
    """Four items at distances 0, 1, 1 and 8 from the user code 0xff."""
    return ItemCodes(bytes([0xFF, 0xFE, 0x7F, 0x00]), 8)


USER = UserCode(b"\xff")


def test_similarity_is_the_share_of_equal_bits_and_ties_go_to_the_lower_index(catalogue):
    assert rank(USER, catalogue, 4) == [Ranked(0, 1.0), Ranked(1, 0.875), Ranked(2, 0.875), Ranked(3, 0.0)]


def test_asking_for_more_than_there_is_gives_all(catalogue):
    assert len(rank(USER, catalogue, 1000)) == 4


def test_recommendations_leave_out_what_was_rated(catalogue):
    assert [r.item_index for r in recommend(USER, catalogue, 2, rated=[0, 2])] == [1, 3]


def test_everything_rated_leaves_nothing_to_recommend(catalogue):
    assert rank(USER, catalogue, 3, exclude=ItemSet(4, range(4))) == []


def test_a_batch_ranks_each_user_alike(catalogue):
    users = [USER, UserCode(b"\x00")]
    assert rank_batch(users, catalogue, 2) == [rank(user, catalogue, 2) for user in users]
    assert rank_batch([], catalogue, 2) == []


def test_a_user_code_of_another_length_is_refused(catalogue):
    with pytest.raises(errors.CodeLengthError, match="16 bits, expected 8"):
        rank(UserCode(bytes(2)), catalogue, 1)


def test_a_ranking_among_some_items_is_the_whole_ranking_without_the_others():
    codes, user = ItemCodes(os.urandom(200), 8), UserCode(b"\x5a")  # short codes, so that there are many ties
    every, asked = rank(user, codes, 200), set(range(0, 200, 3))
    left_out = ItemSet(200, range(0, 200, 2))
    wanted = [hit for hit in every if hit.item_index in asked]
    assert rank(user, codes, 200, among=asked) == wanted
    assert rank(user, codes, 5, among=[*asked, *asked]) == wanted[:5]
    assert rank(user, codes, 200, among=asked, exclude=left_out) == [hit for hit in wanted if hit.item_index % 2]
    assert rank(user, codes, 5, among=[]) == []
    assert all(similarity_of(user, codes, index) == similarity for index, similarity in every)


@pytest.mark.parametrize("item_index", [-1, 200, 2**40])
def test_an_index_outside_the_catalogue_cannot_be_asked_about(item_index):
    codes = ItemCodes(os.urandom(200), 8)
    with pytest.raises(errors.ItemIndexError):
        rank(UserCode(b"\x5a"), codes, 5, among=[1, item_index])
