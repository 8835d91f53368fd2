import pytest

from lightfr import ItemCodes, ItemSet, Ranked, UserCode, errors, rank, rank_batch, recommend


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
