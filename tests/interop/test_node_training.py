"""A server written in another language, from the documents alone, trains the same model as ours: bit for bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lightfr_harness.conformance.kit import Kit
from lightfr_harness.conformance.versions import published_codes
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from tests.interop.servers import SERVERS, make_kit

DEVICES = 6
# Nobody is late on a slow machine: a round ends when all have delivered.
UNHURRIED = {"places": DEVICES, "goal": DEVICES, "minimum": 3, "deadline_seconds": 60}


def first_codes(kit):
    """What version 1 publishes: the rows of the open items, and one for all others."""
    made = Kit(kit)
    return published_codes(made.codes, made.open_rows)


@pytest.mark.parametrize(("kind", "rounds"), [("clear", 10), ("secagg", 10), ("noise", 3)])
def test_after_each_round_both_servers_have_the_same_codes(kind, rounds, cohort, tmp_path):
    kit = make_kit(tmp_path / "kit", kind, **UNHURRIED)
    history = {}
    for name, make_server in SERVERS.items():
        with make_server(kit, tmp_path / name) as server:
            devices = cohort(DEVICES, kit, server)
            history[name] = [devices.codes]
            for _ in range(rounds):
                devices.train()
                history[name].append(devices.codes)
    assert history["node"][0] == first_codes(kit)
    assert len(set(history["python"])) == rounds + 1, "every round moved the codes"
    for version, (ours, theirs) in enumerate(zip(history["python"], history["node"], strict=True), start=1):
        assert ours == theirs, f"version {version} differs"


def test_both_servers_take_the_masks_of_devices_that_left_off_alike(cohort, tmp_path):
    """One device leaves before it uploads and one after it has: their phases end by the deadline."""
    kit = make_kit(tmp_path / "kit", "secagg", **UNHURRIED | {"deadline_seconds": 8})

    def codes(name):
        with SERVERS[name](kit, tmp_path / name) as server:
            devices = cohort(DEVICES, kit, server)
            devices.train_masked({2: 4, 4: 5})
            return devices.codes

    # Both at once, since most of it is waiting.
    with ThreadPoolExecutor() as pool:
        ours, theirs = pool.map(codes, ("python", "node"))
    assert ours == theirs
    assert ours != first_codes(kit)


def take_codes(rule, devices):
    """Let our rule have the codes that the server has drawn, in the rows that are published."""
    own = np.flatnonzero(rule.has_own_row)
    rows = [*np.searchsorted(own, np.flatnonzero(rule.open_rows)), len(own)]
    rule.own_codes[rows] = np.frombuffer(devices.codes, np.uint8).reshape(len(rows), -1)


def test_rows_open_and_move_as_our_own_rule_has_it(node, cohort):
    """Rows that open get random codes, so there are no two servers to compare: ours is the rule alone."""
    kit, server = node("gate", **UNHURRIED)
    ours = make_rule(Settings(32, 3, 0, False, "secagg"), ItemList.read(kit / "items.tsv", integer_ids=False))
    devices = cohort(2 * DEVICES, kit, server)
    for users in (range(DEVICES), range(DEVICES, 2 * DEVICES)):
        devices.train_masked({}, users)
        ours.set_gate(**devices.sums(), seed=0, devices=DEVICES)
    assert devices.open_rows == ours.open_rows_bitmap()
    assert 0 < ours.open_rows.sum() < ours.n_items
    take_codes(ours, devices)
    for _ in range(3):
        devices.train_masked({}, range(DEVICES))
        ours.add_cohort(devices.sums(), DEVICES)
        ours.finish_round()
        assert devices.codes == ours.codes.tobytes()


def test_a_sum_that_is_spoilt_is_dropped_and_half_of_its_devices_must_wait(node, cohort):
    kit, server = node("secagg", **UNHURRIED)
    devices = cohort(DEVICES, kit, server)
    devices.lies[5] = ("weight", 1000)
    devices.train()
    assert devices.codes == first_codes(kit)
    assert sum(devices.kind_of_place(user) is not None for user in range(DEVICES)) == DEVICES // 2
