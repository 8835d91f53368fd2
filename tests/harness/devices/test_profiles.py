from dataclasses import replace

import pytest

from lightfr.errors import InvalidInputError
from lightfr_harness.devices.profiles import FIGURES, load_profile, profile_names

OURS = ("watch", "iot-gateway", "raspberry-pi-zero-2", "android-go-phone", "mid-phone", "flagship-phone")


def as_toml(**changes):
    """A profile of a user's own, with some figures changed; None leaves one out."""
    record = load_profile("watch").record() | changes
    sources = record.pop("sources")
    record.pop("name")
    lines = [f"{name} = {value!r}" for name, value in record.items() if value is not None]
    lines += ["[sources]", *(f"{name} = {value!r}" for name, value in sources.items())]
    return "\n".join(lines)


@pytest.fixture
def own(tmp_path):
    def write(**changes):
        path = tmp_path / "own.toml"
        path.write_text(as_toml(**changes))
        return path

    return write


def test_the_promised_profiles_are_there_with_a_source_of_every_figure():
    assert set(profile_names()) == set(OURS)
    for name in OURS:
        profile = load_profile(name)
        assert profile.name == name
        assert set(profile.sources) == set(FIGURES)


def test_names_come_with_the_smallest_memory_first():
    memory = [load_profile(name).memory_mib for name in profile_names()]
    assert memory == sorted(memory)


def test_a_profile_of_ones_own_is_read_by_its_path(own):
    assert load_profile(own(memory_mib=12.5)) == replace(load_profile("watch"), name="own", memory_mib=12.5)


def test_a_device_gets_its_quota_of_a_core_of_its_own_speed():
    assert replace(load_profile("watch"), cpu_quota=0.5, relative_speed=0.2).core_share == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_mib": None}, "lacks memory_mib"),
        ({"memory_mib": 0}, "memory_mib is 0"),
        ({"memory_mib": "much"}, "memory_mib is 'much'"),
        ({"cpu_quota": 1.5}, "from 0.01 to 1"),
        ({"loss": -0.1}, "from 0 to 0.5"),
        ({"battery_mah": 300}, "nobody knows: battery_mah"),
        ({"sources": {}}, "no source of memory_mib"),
    ],
)
def test_a_bad_figure_is_named(own, changes, said):
    with pytest.raises(InvalidInputError, match=said):
        load_profile(own(**changes))


def test_infinite_and_undefined_figures_are_refused(tmp_path):
    path = tmp_path / "own.toml"
    for bad in ("inf", "-inf", "nan", "true", "9" * 400):
        path.write_text(as_toml(memory_mib=12345).replace("12345", bad))
        with pytest.raises(InvalidInputError, match="memory_mib"):
            load_profile(path)


def test_what_is_no_profile_is_a_typed_error(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"memory_mib = = 3")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    long, deep = tmp_path / "long.toml", tmp_path / "deep.toml"
    long.write_text(f"memory_mib = {'9' * 5000}")
    deep.write_text(f"memory_mib = {'[' * 100_000}")
    written = (broken, binary, long, deep)
    for bad in (*written, tmp_path / "absent.toml", tmp_path, "no-such-phone", "../profiles/watch", ""):
        with pytest.raises(InvalidInputError):
            load_profile(bad)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInputError, match="android-go-phone, flagship-phone"):
        load_profile("toaster")
