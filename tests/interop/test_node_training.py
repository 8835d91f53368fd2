"""A server written in another language, from the documents alone, trains the same model as ours: bit for bit."""

import pytest

from tests.interop.servers import SERVERS, make_kit

DEVICES = 6
ROUNDS = 10
# Nobody is late on a slow machine: a round ends when all have delivered.
UNHURRIED = {"places": DEVICES, "goal": DEVICES, "minimum": 3, "deadline_seconds": 60}


@pytest.mark.parametrize("mode", ["clear", "secagg"])
def test_after_each_of_ten_rounds_both_servers_have_the_same_codes(mode, cohort, tmp_path):
    kit = make_kit(tmp_path / "kit", mode, **UNHURRIED)
    history = {}
    for name, make_server in SERVERS.items():
        with make_server(kit, tmp_path / name) as server:
            devices = cohort(DEVICES, kit, server)
            history[name] = [devices.codes]
            for _ in range(ROUNDS):
                devices.train()
                history[name].append(devices.codes)
    assert history["node"][0] == (kit / "codes.bin").read_bytes()
    assert len(set(history["python"])) == ROUNDS + 1, "every round moved the codes"
    for version, (ours, theirs) in enumerate(zip(history["python"], history["node"], strict=True), start=1):
        assert ours == theirs, f"version {version} differs"


def test_both_servers_take_the_masks_of_devices_that_left_off_alike(cohort, tmp_path):
    """One device leaves before it uploads and one after it has: their phases end by the deadline."""
    kit, codes = make_kit(tmp_path / "kit", "secagg", **UNHURRIED | {"deadline_seconds": 8}), {}
    for name, make_server in SERVERS.items():
        with make_server(kit, tmp_path / name) as server:
            devices = cohort(DEVICES, kit, server)
            devices.train_masked({2: 4, 4: 5})
            codes[name] = devices.codes
    assert codes["node"] == codes["python"]
    assert codes["node"] != (kit / "codes.bin").read_bytes()
