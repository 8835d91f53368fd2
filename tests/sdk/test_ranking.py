import os

import pytest

from lightfr import ItemCodes, ItemSet, Prior, Ranked, UserCode, _kernel, errors, rank, rank_batch, recommend
from lightfr.ranking import popular


@pytest.fixture
def catalogue():
    """Four items at distances 0, 1, 1 and 8 from the user code 0xff."""
    return ItemCodes(bytes([0xFF, 0xFE, 0x7F, 0x00]), 8)


USER = UserCode(b"\xff")


def test_similarity_is_the_share_of_equal_bits_and_ties_go_to_the_lower_index(catalogue):
    assert rank(USER, catalogue, 4) == [Ranked(0, 1.0, 8), Ranked(1, 0.875, 6), Ranked(2, 0.875, 6), Ranked(3, 0.0, -8)]


def test_asking_for_more_than_there_is_gives_all(catalogue):
    assert len(rank(USER, catalogue, 1000)) == 4


def test_recommendations_leave_out_what_was_rated(catalogue):
    assert [r.item_index for r in recommend(USER, catalogue, 2, rated=[0, 2])] == [1, 3]


def test_everything_rated_leaves_nothing_to_recommend(catalogue):
    assert rank(USER, catalogue, 3, exclude=ItemSet(4, range(4))) == []


def test_a_batch_ranks_each_user_alike(catalogue):
    users = [USER, UserCode(b"\x00")]
    assert rank_batch(users, catalogue, 2) == [rank(user, catalogue, 2) for user in users]
    assert rank_batch(iter(users), catalogue, 2) == [rank(user, catalogue, 2) for user in users]
    assert rank_batch([], catalogue, 2) == []


def test_a_user_code_of_another_length_is_refused(catalogue):
    with pytest.raises(errors.CodeLengthError, match="16 bits, expected 8"):
        rank(UserCode(bytes(2)), catalogue, 1)


@pytest.mark.parametrize("lengths", [[2], [1, 2], [3, 8, 5]])
def test_a_batch_refuses_a_user_code_of_another_length_also_where_all_together_are_whole_rows(lengths):
    codes = ItemCodes(bytes(64), 64)
    with pytest.raises(errors.CodeLengthError, match=f"{8 * lengths[0]} bits, expected 64"):
        rank_batch([UserCode(bytes(n_bytes)) for n_bytes in lengths], codes, 1)
    with pytest.raises(errors.CodeLengthError, match="128 bits, expected 64"):
        rank_batch([UserCode(bytes(8)), UserCode(bytes(16))], codes, 1)


def test_a_ranking_among_some_items_is_the_whole_ranking_without_the_others():
    codes, user = ItemCodes(os.urandom(200), 8), UserCode(b"\x5a")  # short codes, so that there are many ties
    every, asked = rank(user, codes, 200), set(range(0, 200, 3))
    left_out = ItemSet(200, range(0, 200, 2))
    wanted = [hit for hit in every if hit.item_index in asked]
    assert rank(user, codes, 200, among=asked) == wanted
    assert rank(user, codes, 5, among=[*asked, *asked]) == wanted[:5]
    assert rank(user, codes, 200, among=asked, exclude=left_out) == [hit for hit in wanted if hit.item_index % 2]
    assert rank(user, codes, 5, among=[]) == []
    assert all(similarity == 1 - distance_of(user, codes, index) / 8 for index, similarity, _ in every)


@pytest.mark.parametrize("item_index", [-1, 200, 2**40])
def test_an_index_outside_the_catalogue_cannot_be_asked_about(item_index):
    codes = ItemCodes(os.urandom(200), 8)
    with pytest.raises(errors.ItemIndexError):
        rank(UserCode(b"\x5a"), codes, 5, among=[1, item_index])


STEPS = [(0, 40), (3, 7), (50, 7), (120, -3), (10_000, -90)]


def offset_of(item_index):
    """The offset of the last step that begins at or before an item."""
    return next(offset for first, offset in reversed(STEPS) if first <= item_index)


def naive_ranking(user, codes):
    """All items by (score, lower index)."""
    scored = [(codes.code_bits - 2 * distance_of(user, codes, i) + offset_of(i), i) for i in range(codes.n_items)]
    return [(score, i) for score, i in sorted(scored, key=lambda one: (-one[0], one[1]))]


def distance_of(user, codes, item_index):
    return (int.from_bytes(user.reveal()) ^ int.from_bytes(codes.row(item_index))).bit_count()


@pytest.fixture(params=_kernel.supported_isas())
def isa(request):
    """Each instruction set in turn."""
    before = _kernel.isa_name()
    _kernel.select_isa(request.param)
    yield request.param
    _kernel.select_isa(before)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("code_bits", [8, 64, 128, 200])
def test_a_prior_ranks_by_score_alone_in_a_batch_among_some_and_with_exclusions(code_bits):
    codes, prior = ItemCodes(os.urandom(700 * code_bits // 8), code_bits), Prior(STEPS)
    users = [UserCode.random(code_bits) for _ in range(30)]
    wanted = [naive_ranking(user, codes) for user in users]
    for user, every in zip(users, wanted, strict=True):
        ranked = rank(user, codes, 12, prior=prior)
        assert [(item.score, item.item_index) for item in ranked] == every[:12]
        assert all(item.similarity == 1 - distance_of(user, codes, item.item_index) / code_bits for item in ranked)
        rest = [one for one in every if one[1] % 3]
        left_out = ItemSet(700, range(0, 700, 3))
        assert [one[2:] + one[:1] for one in rank(user, codes, 12, exclude=left_out, prior=prior)] == rest[:12]
        some = rank(user, codes, 12, among=[i for _, i in rest], prior=prior)
        assert [(item.score, item.item_index) for item in some] == rest[:12]
    batch = rank_batch(users, codes, 12, prior=prior)
    assert batch == [rank(user, codes, 12, prior=prior) for user in users]


def test_a_prior_that_decides_alone_is_a_popularity_list():
    codes, prior = ItemCodes(os.urandom(8 * 64), 64), Prior((i, 2000 - 200 * i) for i in range(20))
    assert [item.item_index for item in rank(UserCode.random(64), codes, 15, prior=prior)] == list(range(15))
    assert repr(prior) == "<Prior of 20 steps>"


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [(i, -i) for i in range(65)],
        [(1, 0)],
        [(0, 0), (0, -1)],
        [(0, 0), (5, 1)],
        [(0, 2**20 + 1)],
        [(0, -(2**20) - 1)],
        [(0, 0), (2**32, -1)],
    ],
)
def test_steps_outside_their_domain_are_refused(steps):
    with pytest.raises(errors.InvalidInputError):
        Prior(steps)


def test_the_most_popular_items_are_the_first_that_are_not_left_out():
    left_out = ItemSet(12, [0, 3, 11])
    assert popular(12, 4, left_out) == [1, 2, 4, 5]
    assert popular(12, 100, left_out) == [1, 2, *range(4, 11)]
    assert popular(12, 2, left_out, among=[9, 3, 4, 9, 1, 0]) == [1, 4]
    assert popular(12, 2, left_out, among=[]) == []
    with pytest.raises(errors.OutOfRangeError):
        popular(12, 0, left_out)
