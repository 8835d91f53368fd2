"""A fleet over real mutual TLS teaches a coordinator what the same devices would teach it in one process."""

import time
from dataclasses import replace

import numpy as np
import pytest

from lightfr import _wire
from lightfr.errors import CohortTooSmallError
from lightfr.training import PublishedModel
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from lightfr_harness.simulation.remote import RemoteFleet
from tests.harness.server.coordinator.helpers import same_state
from tests.harness.server.coordinator.live import TIMEOUT_SECONDS, Live
from tests.seeded import CODE_BITS, ITEMS, SeededDevice

DEVICES, GATE = 6, 3
ITEM_LIST = ItemList([f"item-{i}" for i in range(ITEMS)], [ITEMS - i for i in range(ITEMS)], "0" * 64)
SETTINGS = Settings(CODE_BITS, GATE, seed=3, integer_ids=False)


def no_noise(n):
    """Random bytes in the middle of the range, for which the noise is zero."""
    return b"\0\x80" * (n // 2)


@pytest.fixture
def fleet_of(tmp_path):
    """Start a coordinator whose rounds have six places, and make a fleet for it."""
    authority, opened = Authority.init(tmp_path / "ca", ["localhost", "127.0.0.1"]), []

    def make(count=DEVICES, *, privacy="secagg", items=ITEM_LIST, minimum_cohort=DEVICES, **changes):
        plan = {"goal": DEVICES, "over_selection": 1.0, "minimum": 2, **changes}
        settings = replace(SETTINGS, privacy=privacy)
        live = Live(tmp_path / "coordinator", authority, items, settings, **plan).__enter__()
        devices = [SeededDevice(user) for user in range(count)]
        server = live.addresses["server"]
        fleet = RemoteFleet(
            devices, authority, server, tmp_path / "fleet", minimum_cohort=minimum_cohort, random_bytes=no_noise
        )
        opened.extend([live, fleet])
        return fleet, live.coordinator

    yield make
    live, fleet = opened
    fleet.close()
    live.__exit__()
    authority.close()


def next_version(fleet):
    version, ends = fleet.model.manifest.model_version, time.monotonic() + TIMEOUT_SECONDS
    while fleet.sync().manifest.model_version == version and time.monotonic() < ends:
        time.sleep(0.02)
    return fleet.model.manifest.model_version


def taught_in_one_process(rounds):
    """The aggregation rule on its own, fed by the same devices without any network."""
    server, devices = make_rule(SETTINGS, ITEM_LIST), [SeededDevice(user) for user in range(DEVICES)]
    for _ in range(rounds):
        message = _wire.decode_round_model(server.model().SerializeToString())
        model = PublishedModel(server.item_codes(), message, server.open_rows_bitmap())
        for device in devices:
            server.add(device.take_part(model, None))
        server.finish_round()
    return server


@pytest.mark.parametrize("privacy", ["secagg", "clear"])
def test_a_fleet_moves_the_matrix_as_its_devices_would_in_one_process(fleet_of, privacy):
    fleet, coordinator = fleet_of(privacy=privacy)
    for version in (2, 3):
        assert fleet.take_part(range(DEVICES)) == DEVICES
        assert next_version(fleet) == version
    assert same_state(coordinator._rule, taught_in_one_process(2))


def test_who_finds_no_place_is_not_counted_and_waits_for_nobody(fleet_of):
    fleet, _ = fleet_of(DEVICES + 2)
    assert fleet.take_part(range(DEVICES + 2)) == DEVICES
    assert next_version(fleet) == 2


def test_a_round_that_is_abandoned_counts_nobody_and_is_no_error(fleet_of):
    fleet, _ = fleet_of(minimum=DEVICES, deadline_seconds=0.5)
    assert fleet.take_part(range(DEVICES - 1)) == 0
    assert fleet.sync().manifest.model_version == 1


def test_without_counts_two_halves_of_the_fleet_first_count_who_rates_what(fleet_of):
    fleet, coordinator = fleet_of(2 * DEVICES, items=replace(ITEM_LIST, device_counts=None))
    counts = []
    for version, half in ((2, range(DEVICES)), (3, range(DEVICES, 2 * DEVICES))):
        assert fleet.take_part(half) == DEVICES
        assert next_version(fleet) == version
        rated = [np.asarray(fleet.devices[i].device.interactions.to_teach().arrays()[0]) for i in half]
        counts.append(np.bincount(np.concatenate(rated), minlength=ITEMS))
    expected = np.minimum(*counts)
    assert coordinator._rule.device_counts.tolist() == expected.tolist()
    assert 0 < (expected >= GATE).sum() < ITEMS


def test_devices_leave_a_cohort_that_is_smaller_than_they_insist_on(fleet_of):
    fleet, _ = fleet_of(minimum_cohort=DEVICES + 1)
    with pytest.raises(CohortTooSmallError):
        fleet.take_part(range(DEVICES))
    assert fleet.sync().manifest.model_version == 1
