"""The suite finds faults: each one that is planted in our coordinator is caught by the case that is named for it."""

import re
import shutil
from pathlib import Path

import pytest

from lightfr_harness.conformance import cases, client
from lightfr_harness.conformance.kit import Kit, make_kit
from lightfr_harness.conformance.registry import registry
from lightfr_harness.conformance.runner import Outcome, require_testable, run_one
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from tests.harness.conformance.mutants import VARIABLE, load
from tests.harness.conformance.running import coordinator, world_of

ROOT = Path(__file__).parents[3]
MUTANTS = load()
cases.load()
# These are tried with every `make test`, the others with `make test-conformance`.
QUICK = (
    "bit-order",
    "counted-twice",
    "range-ignored",
    "shift-toward-zero",
    "sign-of-zero",
    "stale-round-accepted",
    "any-signature",
    "complaints-ignored",
    "survivors-without-the-last",
)
SLOW = sorted(MUTANTS.keys() - set(QUICK))


@pytest.fixture(scope="session")
def kits(tmp_path_factory):
    """Kits by kind, made once; each test gets a copy, since a kit is for one run."""
    made = {}

    def kit(kind):
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind) / "kit"
            made[kind] = make_kit(folder, kind, "localhost", Vectors.read(DEFAULT_FOLDER))
        return made[kind].folder

    return kit


@pytest.fixture
def tried(kits, tmp_path, monkeypatch):
    """Try one case on a fresh coordinator; with a fault in it if one is named."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # A server that waits for what never comes is found out sooner.
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 4.0)

    def run(case_id, kit_kind, mutant=None):
        kit = Kit(shutil.copytree(kits(kit_kind), tmp_path / "kit"))
        (case,) = registry.cases(kit_kind, [case_id])
        if mutant is not None:
            monkeypatch.setenv(VARIABLE, mutant)
        module = "lightfr_harness" if mutant is None else "tests.harness.conformance.mutants"
        with coordinator(kit, tmp_path, module) as running, world_of(running, kit, tmp_path) as world:
            require_testable(world)
            return run_one(case, world), running.log

    return run


def require_caught(tried, name):
    mutant = MUTANTS[name]
    result, log = tried(mutant.caught_by, mutant.kit, name)
    print(f"{mutant.caught_by}: expected {result.expected}, got {result.got}")
    assert result.outcome == Outcome.FAILED
    # It did something wrong. One that only broke down would show nothing.
    assert not re.search("internal_error|round_failed|storage_failed", log), log


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_is_caught_by_the_case_named_for_it(tried, name):
    require_caught(tried, name)


@pytest.mark.conformance
@pytest.mark.parametrize("name", SLOW)
def test_every_fault_is_caught_by_the_case_named_for_it(tried, name):
    require_caught(tried, name)


@pytest.mark.conformance
@pytest.mark.parametrize("name", QUICK)
def test_the_same_case_passes_without_the_fault(tried, name):
    mutant = MUTANTS[name]
    result, _ = tried(mutant.caught_by, mutant.kit)
    assert (result.outcome, result.got) == (Outcome.PASSED, "")


def test_the_document_lists_every_fault_and_the_case_that_finds_it():
    text = (ROOT / "docs/conformance.md").read_text()
    (section,) = re.findall(r"^## Planted faults\n(.*?)(?=^## )", text, re.M | re.S)
    listed = re.findall(r"^\| `(.+)` \| (.+) \| `(.+)` \|$", section, re.M)
    assert listed == [(one.name, one.fault, one.caught_by) for one in MUTANTS.values()]


def test_every_fault_names_a_case_of_its_kit():
    for one in MUTANTS.values():
        assert [case.id for case in registry.cases(one.kit, [one.caught_by])] == [one.caught_by]
