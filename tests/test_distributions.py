"""Two distributions, one release: what both pyproject.toml say agrees. `make wheel` tries what is built from them."""

import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import lightfr
from tests import wheels

ROOT = Path(__file__).parent.parent
SDK = tomllib.loads((ROOT / "pyproject.toml").read_text())
HARNESS = tomllib.loads((ROOT / "harness/pyproject.toml").read_text())


def test_both_have_the_version_that_the_package_tells():
    assert SDK["project"]["version"] == HARNESS["project"]["version"] == lightfr.__version__


def test_the_harness_asks_for_the_sdk_of_its_own_version():
    assert f"lightfr=={lightfr.__version__}" in HARNESS["project"]["dependencies"]


def test_the_sdk_asks_for_three_packages_and_offers_no_more():
    names = {re.split("[^a-z]", requirement)[0] for requirement in SDK["project"]["dependencies"]}
    assert names == {"cffi", "protobuf", "cryptography"}
    assert "optional-dependencies" not in SDK["project"]


def test_both_are_built_alike_and_licensed_alike():
    assert SDK["build-system"] == HARNESS["build-system"]
    for key in ("license", "license-files", "authors", "requires-python", "urls"):
        assert SDK["project"][key] == HARNESS["project"][key]
    assert (ROOT / "harness/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("package", wheels.HOLDS)
def test_a_wheel_with_a_file_too_many_or_too_few_is_noticed(package, tmp_path):
    """`make wheel` looks into the real ones."""
    path = tmp_path / f"{package}-{lightfr.__version__}-cp311-abi3-linux_x86_64.whl"
    expected = sorted(wheels.expected_files(package, lightfr.__version__))
    assert len(expected) > 60
    for names, is_right in ((expected, True), ([*expected, f"{package}/key.pem"], False), (expected[1:], False)):
        with ZipFile(path, "w") as wheel:
            for name in names:
                wheel.writestr(name, "")
        with ZipFile(path) as wheel:
            if is_right:
                wheels.check_files(path, wheel)
            else:
                with pytest.raises(AssertionError, match="holds"):
                    wheels.check_files(path, wheel)
