"""The list of items, and what a folder keeps for life."""

import pytest

from lightfr.errors import CodeLengthError, OutOfRangeError
from lightfr.model.catalogue import Catalogue
from lightfr.v1 import model_pb2
from lightfr_harness.server.coordinator.options import (
    ItemList,
    Settings,
    SettingsError,
    is_loopback,
    make_rule,
)
from lightfr_harness.server.coordinator.publishing import FolderError
from tests.harness.server.coordinator.helpers import ITEMS, SETTINGS, Clock, Plan, Small, run, small
from tests.hostile import parameters


def read(tmp_path, text, **options):
    path = tmp_path / "items.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return ItemList.read(path, integer_ids=options.get("integer_ids", False))


def test_items_come_with_or_without_counts(tmp_path):
    with_counts = read(tmp_path, "a b\t30\nü\t4\n")
    assert (with_counts.ids, with_counts.device_counts) == (["a b", "ü"], [30, 4])
    without = read(tmp_path, "a\nb")
    assert (without.ids, without.device_counts) == (["a", "b"], None)
    integers = read(tmp_path, "7\n-9\n", integer_ids=True)
    assert integers.ids == [7, -9]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("a\t1\nb\n", "line 2"),
        ("a\n\nb\n", "line 2"),
        ("a\t1\t2\n", "line 1"),
        ("a\tmany\n", "line 1"),
        ("a\t-1\n", "line 1"),
        ("a\t99999999999999999999\n", "line 1"),
        (b"\xff\n", "UTF-8"),
    ],
)
def test_a_list_that_cannot_be_read_says_where_but_not_what(tmp_path, text, says):
    with pytest.raises(SettingsError, match=says) as error:
        read(tmp_path, text)
    assert "many" not in str(error.value)


def test_a_missing_list_and_ids_that_are_no_integers_are_typed_errors(tmp_path):
    with pytest.raises(SettingsError, match="cannot read"):
        ItemList.read(tmp_path / "nothing", integer_ids=False)
    with pytest.raises(SettingsError, match="line 2"):
        read(tmp_path, "1\nx\n", integer_ids=True)


def test_without_counts_the_gate_is_off():
    settings = Settings(16, 10, 0, False, "clear")
    assert make_rule(settings, ItemList(["a", "b"], None, "")).open_rows_bitmap() == b""
    assert make_rule(settings, ItemList(["a", "b"], [20, 5], "")).open_rows.tolist() == [True, False]


@pytest.mark.parametrize(
    ("uploads", "objective", "kind", "max_rows"),
    [
        ("ternary", model_pb2.OBJECTIVE_CATALOGUE, model_pb2.UPLOAD_KIND_TERNARY, 64),
        ("exact", model_pb2.OBJECTIVE_CATALOGUE, model_pb2.UPLOAD_KIND_EXACT, 0),
        ("paper", model_pb2.OBJECTIVE_PAPER, model_pb2.UPLOAD_KIND_EXACT, 0),
        ("codes", model_pb2.OBJECTIVE_PAPER, model_pb2.UPLOAD_KIND_CODES, 0),
    ],
)
def test_uploads_in_the_clear_are_of_four_kinds(uploads, objective, kind, max_rows):
    regularization = 0.001 if objective == model_pb2.OBJECTIVE_PAPER else 0.0
    settings = Settings(16, 10, 0, False, "clear", uploads=uploads, regularization=regularization)
    model = make_rule(settings, ItemList(["a", "b"], [20, 5], "")).model()
    assert (model.objective, model.upload_kind, model.max_rows) == (objective, kind, max_rows)
    assert model.balance == round(4 * 16**2 * regularization * 2520)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"uploads": "large"}, "--uploads is large, expected one of ternary, exact, paper, codes"),
        ({"uploads": "exact", "privacy": "secagg"}, "--uploads exact needs --privacy clear"),
        ({"uploads": "exact", "regularization": 0.1}, "--lambda needs --uploads paper or codes"),
        ({"uploads": "paper", "regularization": -0.1}, r"--lambda is -0\.1"),
        ({"uploads": "paper", "regularization": float("nan")}, "--lambda is nan"),
        ({"uploads": "codes", "regularization": 1e9}, "--lambda is 1000000000"),
    ],
)
def test_kinds_of_upload_that_there_are_not_are_refused(wrong, says):
    with pytest.raises(SettingsError, match=says):
        Settings(**{**SETTINGS.as_dict(), **wrong})


def test_a_code_length_that_there_is_not_is_refused():
    with pytest.raises(CodeLengthError):
        Settings(60, 10, 0, False)


def test_a_later_start_must_say_the_same(tmp_path):
    other = Settings(**{**SETTINGS.as_dict(), "bits": 32, "seed": 4})

    async def story():
        async with small(tmp_path):
            pass
        second = Small(tmp_path, Clock(), Plan(), other)
        with pytest.raises(SettingsError, match=r"--bits was 16, now 32; --seed was 3, now 4\. Repeat"):
            await second.coordinator.start()
        await second.coordinator.close()

    run(story())


def test_two_coordinators_do_not_share_a_folder(tmp_path):
    async def story():
        async with small(tmp_path):
            with pytest.raises(FolderError, match="another coordinator"):
                Small(tmp_path, Clock(), Plan())

    run(story())


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("x.example", False),
    ],
)
def test_clear_uploads_leave_the_machine_only_when_said_so(host, is_local):
    assert is_loopback(host) == is_local
    SETTINGS.require_private(host, allow_clear_uploads=True)
    if is_local:
        SETTINGS.require_private(host, allow_clear_uploads=False)
    else:
        with pytest.raises(SettingsError, match="--allow-clear-uploads"):
            SETTINGS.require_private(host, allow_clear_uploads=False)


def test_devices_read_the_catalogue_that_was_published(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            (artifact,) = it.coordinator.version.manifest.catalogue_parts
            with Catalogue.open([tmp_path / "artifacts" / artifact.sha256.hex()]) as catalogue:
                assert catalogue.id_of(3) == ITEMS.ids[3]

    run(story())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"privacy": "none"}, "secagg, secagg\\+dp, clear"),
        ({"privacy": "secagg+dp"}, "--noise-rows"),
        ({"privacy": "secagg+dp", "noise_rows_thousandths": 5000, "noise_sums_thousandths": 5000}, "--noise-counts"),
        ({"privacy": "secagg", "noise_sums_thousandths": 5}, "need --privacy secagg\\+dp"),
    ],
)
def test_a_mode_that_there_is_not_or_that_lacks_its_noise_is_refused(wrong, says):
    with pytest.raises(SettingsError, match=says):
        Settings(16, 10, 0, False, **wrong)


def test_masked_uploads_may_go_to_any_host_and_need_a_cohort(tmp_path):
    settings = Settings(16, 10, 0, False)
    settings.require_private("10.0.0.1", allow_clear_uploads=False)
    assert (settings.usual_goal, settings.usual_minimum(512), settings.usual_minimum(20)) == (512, 256, 20)
    for plan in (Plan(goal=1, minimum=1), Plan(goal=64, minimum=1), Plan(goal=8000, over_selection=1.1, minimum=2)):
        with pytest.raises(OutOfRangeError):
            Small(tmp_path / "folder", Clock(), plan, settings)
    assert not (tmp_path / "folder").exists()


NUMBERS = [
    *("goal", "over_selection", "deadline_seconds", "rounds"),
    *("gate_every", "evaluate_every", "tolerance", "cohorts"),
]


@pytest.mark.parametrize("name", NUMBERS)
def test_the_help_of_serve_states_the_range_that_a_plan_takes(name):
    option = "--" + name.replace("_", "-")
    (stated,) = [one.info for one in parameters() if (one.command, one.name) == ("serve", option)]
    for value in (stated.min, stated.max):
        Plan(**{name: value})
    for value in (stated.min - 1, stated.max + 1):
        with pytest.raises(OutOfRangeError):
            Plan(**{name: value})
