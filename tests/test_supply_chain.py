"""What development and CI install is pinned by hash, and runs nobody's code; each wheel has a bill of materials."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import install, lock, sbom

ROOT = Path(__file__).parent.parent
LOCKS = sorted(path.stem for path in lock.FOLDER.glob("*.txt"))
# Machines that the locks are for, beside the one that runs this.
MACHINES = [
    {"python_version": version, "python_full_version": f"{version}.1", "sys_platform": system}
    for version in ("3.11", "3.12", "3.13")
    for system in ("linux", "darwin")
]
LINE = re.compile(r"#.*|    #.*|[a-z0-9].*==.* \\|    --hash=sha256:[0-9a-f]{64}( \\)?")


def pins(name):
    """Each package of a lock as a requirement, with the number of its hashes."""
    found = []
    for line in (lock.FOLDER / f"{name}.txt").read_text().splitlines():
        if "==" in line and not line.startswith((" ", "#")):
            found.append([Requirement(line.rstrip(" \\")), 0])
        elif line.startswith("    --hash="):
            found[-1][1] += 1
    return found


def pinned(name, machine):
    """Package to version, as pip would install them there."""
    there = {**default_environment(), **machine}
    chosen = [one for one, _ in pins(name) if one.marker is None or one.marker.evaluate(there)]
    versions = {canonicalize_name(one.name): next(iter(one.specifier)).version for one in chosen}
    assert len(versions) == len(chosen), f"{name}.txt has a package twice"
    return versions


def unmet(requirements, versions):
    """What a lock does not hold of what is asked for."""
    wanted = [Requirement(line.partition(" #")[0]) for line in requirements if line and not line.startswith("#")]
    assert wanted
    return [str(one) for one in wanted if versions.get(canonicalize_name(one.name)) not in Allowed(one)]


class Allowed:
    """The versions that a requirement admits."""

    def __init__(self, requirement):
        self.specifier = requirement.specifier

    def __contains__(self, version):
        return version is not None and self.specifier.contains(version)


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_a_version_or_a_hash_and_names_no_place(name):
    text = (lock.FOLDER / f"{name}.txt").read_text()
    assert [line for line in text.splitlines() if not LINE.fullmatch(line)] == []
    assert "://" not in text
    assert all(hashes for _, hashes in pins(name))


@pytest.mark.parametrize("name", LOCKS)
def test_every_lock_holds_what_its_source_asks_for_on_every_python(name):
    """Otherwise run `make lock`."""
    for machine in MACHINES:
        assert unmet(lock.wanted()[name], pinned(name, machine)) == []


def test_a_lock_that_is_too_old_or_lacks_a_package_is_noticed():
    versions = pinned("test", MACHINES[0])
    assert unmet(["pytest>=1000", "cffi>=1.17", "unheard-of"], versions) == ["pytest>=1000", "unheard-of"]


def test_locks_of_one_environment_agree():
    for machine in MACHINES:
        together = {}
        for name in lock.EXTRAS:
            for package, version in pinned(name, machine).items():
                assert together.setdefault(package, version) == version


def test_packages_come_by_hash_and_as_wheels_before_our_own_are_built():
    first, second = install.steps("test", is_locked=True)
    assert {"--require-hashes", "--only-binary", ":all:", "requirements/test.txt"} <= set(first)
    assert {"--no-deps", "--no-build-isolation"} <= set(second)
    assert install.steps("lint", is_locked=True)[0][-1] == "requirements/lint.txt"
    assert install.steps("test", is_locked=False) == [["--editable", ".", "--editable", "./harness[test]"]]


def unguarded(text):
    """Lines that install without hashes, that run scripts of packages, or that build with what an index has today."""
    guards = {
        "pip install": "--require-hashes",
        "npm ci": "--ignore-scripts",
        "npm install": "",
        "-m build": "--no-isolation",
    }
    return [
        line.strip()
        for line in text.splitlines()
        for command, guard in guards.items()
        if command in line and (not guard or guard not in line)
    ]


def test_nothing_that_ci_runs_installs_without_hashes_or_runs_scripts_of_packages():
    """The one exception tries our wheel with the oldest and the newest protobuf."""
    texts = [(ROOT / path).read_text() for path in ("Makefile", ".ci/run", ".github/workflows/wheels.yml")]
    found = [line for text in texts for line in unguarded(text)]
    assert [line for line in found if "build/wheel-venv" not in line] == []
    assert unguarded("\tpip install ruff\n\tnpm ci\n\tnpm install x\n\tpython -m build .") != []


def test_workflows_use_actions_by_commit_since_a_tag_can_be_moved():
    texts = [path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")]
    used = [line for text in texts for line in re.findall(r"uses: (.*)", text)]
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", line)] == []


@pytest.mark.parametrize("folder", ["web", "tests/interop/node"])
def test_every_package_of_npm_has_its_hash(folder):
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    others = {name: one for name, one in packages.items() if name and not one.get("link")}
    assert others
    assert [name for name, one in others.items() if not one.get("integrity", "").startswith("sha512-")] == []


METADATA = """Metadata-Version: 2.4
Name: lightfr-harness
Version: 0.1.0
License-Expression: Apache-2.0
Requires-Dist: lightfr==0.1.0
Requires-Dist: Jinja2<4,>=3.1.6
Requires-Dist: pytest<10; extra == "test"
"""
A_LOCK = """# Made by `make lock`.
cffi==2.1.1 \\
    --hash=sha256:00
    # via
    #   cryptography
cryptography==50.0.2 \\
    --hash=sha256:00
jinja2==3.1.6 \\
    --hash=sha256:00
markupsafe==3.0.4 ; sys_platform != 'win32' \\
    --hash=sha256:00
    # via jinja2
pytest==9.2.0 \\
    --hash=sha256:00
"""


def test_a_bill_names_the_wheel_its_binaries_and_all_that_comes_along_and_nothing_else(tmp_path):
    wheel = tmp_path / "lightfr_harness-0.1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("lightfr_harness-0.1.0.dist-info/METADATA", METADATA)
        archive.writestr("lightfr_harness/bench/_floor.abi3.so", b"code")
    packages = sbom.with_sdk(sbom.read_lock(A_LOCK))
    bill = sbom.bill(wheel, packages)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    own = bill["metadata"]["component"]
    assert own["hashes"] == [sbom.sha256(wheel.read_bytes())]
    assert own["components"][0]["hashes"] == [sbom.sha256(b"code")]
    versions = {(one["name"], one["version"]) for one in bill["components"]}
    expected = {("jinja2", "3.1.6"), ("markupsafe", "3.0.4"), ("lightfr", "0.1.0"), ("cryptography", "50.0.2")}
    assert versions == expected | {("cffi", "2.1.1")}
    needs = {one["ref"].split("/")[1]: len(one["dependsOn"]) for one in bill["dependencies"]}
    assert needs["lightfr-harness@0.1.0"] == 2
    assert needs["lightfr@0.1.0"] == 2
    referred = {ref for one in bill["dependencies"] for ref in one["dependsOn"]}
    assert referred == {one["bom-ref"] for one in bill["components"]}
    assert sbom.bill(wheel, packages) == bill


def test_security_md_names_a_way_to_report_the_promises_and_the_scope():
    text = (ROOT / "SECURITY.md").read_text()
    for heading in ("## How to report", "## What we promise", "## Supported versions", "## Scope"):
        assert heading in text
    assert "docs/threat-model.md" in text
