"""Breaks modules in one place at a time, and looks whether their tests see it: a mutant that none sees has survived.

    python -m tests.campaigns.mutation sdk/lightfr/secagg/shamir.py --tests tests/sdk/secagg --sample 50

First every test runs by itself, to learn which lines it walks. A mutant lives in a process of its own, which runs the
tests that walk its lines, the fastest first, up to the first that fails. That process is a fork of one that has loaded
the tests, and gets the broken functions; where no function but the module itself is broken, the process loads all
anew. Nothing is written to the checkout. Programs that tests start run the module as it is.

The record says which mutants were killed; a later run tries the others. `equivalent.toml` lists mutants that do what
the code does, with the reasons; they are not tried.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest
from hypothesis import Phase, settings

from tests.campaigns.mutants import Mutant, count, mutant

ROOT = Path(__file__).parent.parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
# Tests that mirror a module, where that is not tests/ with the same path.
MIRRORS = {
    "sdk/lightfr/rounds.py": ["tests/sdk/test_rounds.py", "tests/sdk/secagg"],
    "sdk/lightfr/device.py": ["tests/sdk/device"],
    "sdk/lightfr/identities.py": ["tests/sdk/test_identities.py", "tests/sdk/test_membership.py", "tests/sdk/device"],
    "sdk/lightfr/membership.py": ["tests/sdk/test_membership.py", "tests/sdk/device"],
    "sdk/lightfr/_wire": ["tests/sdk/wire", "tests/sdk/test_rounds.py", "tests/sdk/training/test_updates.py"],
    "sdk/lightfr/secagg": ["tests/sdk/secagg", "tests/sdk/test_rounds.py", "tests/sdk/test_evaluation.py"],
    "sdk/lightfr/store": ["tests/sdk/store"],
    "harness/lightfr_harness/server/rules": ["tests/harness/server/rules"],
}
# Loaded once, before the first mutant: what takes long to load and is none of ours.
LIBRARIES = ["numpy", "cryptography.x509", "google.protobuf.message", "typer.testing", "ssl"]
PLAIN = ["-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-W", "ignore:Module already imported"]
# Nobody reads how a test failed, so nothing is done to show it well.
PLAIN += ["--tb=native", "--hypothesis-profile=mutants"]
MOST_BYTES = 8 * 2**30
SURVIVED, KILLED, BROKE_THE_TOOL = 0, 1, 99


# Processes.


def _in_a_process(work: Callable[[], int], limit_seconds: float, *, quiet: bool = True) -> int | None:
    """What the work returns, or None when it takes too long; programs that it started end with it."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = BROKE_THE_TOOL
        if quiet:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        with contextlib.suppress(BaseException):
            code = work()
        sys.stdout.flush()
        os._exit(code)
    end = time.monotonic() + limit_seconds
    done = status = 0
    while not done and time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if done else 0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not done:
        os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if done else None


class _Loop:
    """Does something else with the tests that pytest collected than to run them all."""

    def __init__(self, work: Callable[[pytest.Session], int]) -> None:
        self.work = work
        self.code = KILLED  # Unless all could be loaded.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.testsfailed:
            session.config.pluginmanager.unregister(name="terminalreporter")
            self.code = self.work(session)
        return True


def _with_tests(tests: list[str], work: Callable[[pytest.Session], int]) -> int:
    loop = _Loop(work)
    pytest.main([*PLAIN, *tests], plugins=[loop])
    return loop.code


# Which tests walk which lines.


class Walks:
    """What every test took and walked, when it ran by itself."""

    def __init__(self, kept: dict[str, dict]) -> None:
        self.seconds: dict[str, float] = kept["seconds"]
        self._tests_of: dict[str, dict[str, list[str]]] = kept["tests_of"]

    def through(self, path: Path, lines: range) -> list[str]:
        """The tests that walk any of these lines, the fastest first."""
        of_line = self._tests_of.get(str(path), {})
        return sorted({test for line in lines for test in of_line.get(str(line), [])}, key=self.seconds.__getitem__)

    def all_for(self, path: Path) -> list[str]:
        """All tests; first those that walk anything of a file."""
        near = {test for tests in self._tests_of.get(str(path), {}).values() for test in tests}
        return sorted(self.seconds, key=lambda test: (test not in near, self.seconds[test]))


def _walk(session: pytest.Session, files: list[Path], target: Path) -> int:
    seconds = {}
    watch = coverage.Coverage(data_file=None, config_file=False, include=[str(file) for file in files])
    watch.start()
    for item in session.items:
        watch.switch_context(item.nodeid)
        started = time.monotonic()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        seconds[item.nodeid] = time.monotonic() - started
        if session.testsfailed:
            target.write_text(item.nodeid)
            return 1
    watch.stop()
    data = watch.get_data()
    tests_of = {name: data.contexts_by_lineno(name) for name in data.measured_files()}
    target.write_text(json.dumps({"seconds": seconds, "tests_of": tests_of}))
    return 0


def _learn_walks(files: list[Path], tests: list[str], target: Path) -> Walks:
    target.unlink(missing_ok=True)
    code = _in_a_process(lambda: _with_tests(tests, lambda session: _walk(session, files, target)), 3600)
    if code != 0:
        failed = target.read_text() if target.exists() else "they cannot be loaded"
        raise SystemExit(f"the tests fail as they are: {failed}")
    return Walks(json.loads(target.read_text()))


# One mutant.


def _sees_nothing(session: pytest.Session, chosen: list[str], walks: Walks) -> int:
    """SURVIVED when all the chosen tests pass; a test that computes for much longer than it did ends the process."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))
    items = {item.nodeid: item for item in session.items}
    for name, following in zip(chosen, [*chosen[1:], None], strict=True):
        limit = time.process_time() + 3 + 5 * walks.seconds[name]
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.RLIM_INFINITY))
        session.config.hook.pytest_runtest_protocol(item=items[name], nextitem=items.get(following))
        if session.testsfailed:
            return KILLED
    return SURVIVED


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _all_code(part)


def _itself(code: CodeType) -> tuple[object, ...]:
    """What a piece of code does, without the pieces within it."""
    constants = [(type(c), c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_qualname, code.co_code, constants, code.co_names, code.co_varnames, code.co_exceptiontable


def _broken_functions(path: Path, broken: Mutant) -> dict[tuple[str, int], CodeType] | None:
    """The functions of a mutant by name and line, or None if more than the insides of functions is broken."""
    whole = list(_all_code(compile(path.read_text(), str(path), "exec")))
    parts = list(_all_code(compile(broken.tree, str(path), "exec")))
    # Comprehensions come with the functions that they are in.
    named = [part for part in parts if ".0" not in part.co_varnames]
    pieces = {(part.co_qualname, part.co_firstlineno): part for part in named}
    if len(whole) != len(parts) or len(pieces) != len(named):
        return None
    outside = [pair for pair in zip(whole, parts, strict=True) if not pair[1].co_flags & CO_OPTIMIZED]
    return pieces if all(_itself(old) == _itself(new) for old, new in outside) else None


def _replace(functions: list[FunctionType], pieces: dict[tuple[str, int], CodeType]) -> None:
    for function in functions:
        code = function.__code__
        function.__code__ = pieces.get((code.co_qualname, code.co_firstlineno), code)


class _Broken(SourceFileLoader):
    """Loads one module from a tree instead of from its file."""

    def __init__(self, path: Path, broken: Mutant) -> None:
        super().__init__(".".join(path.relative_to(ROOT).with_suffix("").parts[1:]), str(path))
        self.tree = broken.tree

    def get_code(self, fullname: str) -> object:
        return compile(self.tree, self.path, "exec")

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> object:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None


# All mutants.


class Record:
    """Which mutants of which file were killed, and which survived; written after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.of_file: dict[str, dict] = json.loads(path.read_text()) if path.exists() else {}

    def of(self, file: Path, seed: int) -> dict:
        name, digest = str(file.relative_to(ROOT)), hashlib.sha256(file.read_bytes()).hexdigest()
        if self.of_file.get(name, {}).get("source_sha256") != digest:
            fresh = {"source_sha256": digest, "seed": seed, "mutants": count(file.read_text())}
            self.of_file[name] = {**fresh, "killed": [], "equivalent": [], "survived": {}}
        return self.of_file[name]

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.of_file, indent=1) + "\n")

    def add(self, file: Path, number: int, code: int | None, text: str) -> None:
        of_file = self.of_file[str(file.relative_to(ROOT))]
        of_file["survived"].pop(str(number), None)
        if code == SURVIVED:
            of_file["survived"][str(number)] = text
            print(f"{file.relative_to(ROOT)}: survived: {text}", flush=True)
        else:
            of_file["killed"].append(number)
        tried = len(of_file["killed"]) + len(of_file["survived"])
        if tried % 25 == 0:
            print(f"{file.relative_to(ROOT)}: {tried} tried, {len(of_file['survived'])} survived", flush=True)
        self.write()


def _planned(files: list[Path], record: Record, sample: int, seed: int) -> Iterator[tuple[Path, int, Mutant]]:
    """The mutants to try: those of the sample that were not killed and are not equivalent."""
    known = tomllib.loads(EQUIVALENT.read_text())
    for file in files:
        state, source = record.of(file, seed), file.read_text()
        chosen = random.Random(seed).sample(range(state["mutants"]), min(sample, state["mutants"]))
        state["equivalent"] = []
        for number in sorted(set(chosen) - set(state["killed"])):
            broken = mutant(source, number)
            if broken.text in known.get(str(file.relative_to(ROOT)), {}):
                state["equivalent"].append(number)
                state["survived"].pop(str(number), None)
            else:
                yield file, number, broken


def _try_warm(session: pytest.Session, plan: list[tuple[Path, int, Mutant]], walks: Walks, record: Record) -> int:
    """Try the mutants for which it is enough to replace functions."""
    paths = {str(file) for file, _, _ in plan}
    living = [f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__code__.co_filename in paths]
    gc.freeze()
    for file, number, broken in plan:
        chosen = walks.through(file, broken.lines)
        pieces = _broken_functions(file, broken)
        if not chosen or pieces is None:
            continue

        def work(file: Path = file, pieces: dict = pieces, chosen: list[str] = chosen) -> int:
            _replace([f for f in living if f.__code__.co_filename == str(file)], pieces)
            return _sees_nothing(session, chosen, walks)

        code = _in_a_process(work, 60 + 10 * sum(walks.seconds[test] for test in chosen))
        if code != BROKE_THE_TOOL:  # Where functions cannot be replaced, all is loaded anew.
            record.add(file, number, code, broken.text)
    return 0


def _try_cold(file: Path, broken: Mutant, tests: list[str], walks: Walks) -> int | None:
    """Load everything anew, with the module that is broken."""

    def work() -> int:
        sys.meta_path.insert(0, _Broken(file, broken))
        return _with_tests(tests, lambda session: _sees_nothing(session, walks.all_for(file), walks))

    return _in_a_process(work, 60 + 10 * sum(walks.seconds.values()))


def _try_all(files: list[Path], tests: list[str], record: Record, sample: int, seed: int) -> None:
    plan = list(_planned(files, record, sample, seed))
    for file, number, _ in plan:
        record.of(file, seed)["survived"].pop(str(number), None)
    record.write()
    if not plan:
        return
    kept = record.path.with_suffix(".walks")
    walks = _learn_walks(files, tests, kept)
    print(f"{len(walks.seconds)} tests take {sum(walks.seconds.values()):.0f} s; {len(plan)} mutants", flush=True)
    code = _in_a_process(
        lambda: _with_tests(tests, lambda session: _try_warm(session, plan, walks, record)), 10**6, quiet=False
    )
    if code != 0:
        raise SystemExit("the process with the loaded tests ended early: see above")
    record.of_file = json.loads(record.path.read_text())
    for file, number, broken in plan:
        state = record.of(file, seed)
        if number not in state["killed"] and str(number) not in state["survived"]:
            record.add(file, number, _try_cold(file, broken, tests, walks), broken.text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path, help="a file, or a folder of files")
    parser.add_argument("--tests", nargs="+", help="what runs for each mutant (default: the tests that mirror it)")
    parser.add_argument("--sample", type=int, default=10**6, help="how many mutants of a file are tried (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--record", type=Path, default=ROOT / "build/mutants.json", help="where a run goes on")
    options = parser.parse_args()
    module = (ROOT / options.module).resolve()
    mirror = next((MIRRORS[name] for name in MIRRORS if str(options.module).startswith(name)), None)
    tests = options.tests or mirror
    if not tests:
        parser.error(f"no tests mirror {options.module}: name some with --tests")
    settings.register_profile("mutants", deadline=None, phases=[Phase.explicit, Phase.generate])
    for name in LIBRARIES:
        importlib.import_module(name)
    files = [module] if module.is_file() else sorted(f for f in module.rglob("*.py") if f.name != "__init__.py")
    record = Record(options.record)
    _try_all(files, tests, record, options.sample, options.seed)
    for file in files:
        state = record.of(file, options.seed)
        killed, survived, equivalent = (len(state[kind]) for kind in ("killed", "survived", "equivalent"))
        tried = f"{killed + survived + equivalent} of {state['mutants']} tried"
        print(f"{file.relative_to(ROOT)}: {tried}, {equivalent} equivalent, {survived} survived")


if __name__ == "__main__":
    main()
