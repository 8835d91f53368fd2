"""serve --codes: the first version publishes exactly the codes of a file."""

from dataclasses import replace

import pytest

from lightfr_harness.server.coordinator.options import Settings, SettingsError, make_rule, read_codes
from tests.harness.server.coordinator.helpers import BITS, ITEMS, N_ITEMS, SETTINGS, Clock, Plan, Small, run

CODES = bytes(range(N_ITEMS * BITS // 8))


def test_the_first_version_has_the_codes_of_the_file(tmp_path):
    async def story():
        it = Small(tmp_path / "state", Clock(), Plan(), items=replace(ITEMS, first_codes=CODES))
        await it.coordinator.start()
        published = it.coordinator.version.manifest.codes.sha256.hex()
        await it.crash()
        content, n_open = (tmp_path / "state" / "artifacts" / published).read_bytes(), 26
        assert content == CODES[: (n_open + 1) * BITS // 8]

    run(story())


@pytest.mark.parametrize("content", [b"", CODES[:-1], CODES + b"\0"])
def test_a_file_of_another_size_is_refused_with_the_size_it_should_have(content):
    with pytest.raises(SettingsError, match=f"has {len(content)} bytes, 30 items of 16 bits have 60"):
        make_rule(SETTINGS, replace(ITEMS, first_codes=content))


def test_a_file_that_is_not_there_is_a_typed_error(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot read the codes 'codes\.bin'"):
        read_codes(tmp_path / "codes.bin")


def test_a_later_start_must_name_the_same_codes():
    kept = SETTINGS.as_dict()
    other = Settings(**{**kept, "codes_sha256": "1" * 64})
    for now, before in ((other, kept), (SETTINGS, other.as_dict())):
        with pytest.raises(SettingsError, match="the digest of --codes was"):
            now.require_same(before)
