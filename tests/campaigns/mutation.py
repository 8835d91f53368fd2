"""Breaks a module in one place at a time, and looks whether its tests see it: a mutant that none sees has survived.

    python -m tests.campaigns.mutation sdk/lightfr/secagg/shamir.py --tests tests/sdk/secagg --sample 50

A mutant lives in a process of its own, into which the broken module is loaded in place of the file: nothing is
written to the checkout. Programs that tests start run the module as it is.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# Tests that mirror a module, where that is not tests/ with the same path.
MIRRORS = {
    "sdk/lightfr/rounds.py": ["tests/sdk/test_rounds.py", "tests/sdk/secagg"],
    "sdk/lightfr/device.py": ["tests/sdk/device"],
    "sdk/lightfr/_wire": ["tests/sdk/wire", "tests/sdk/test_kept_rounds.py", "tests/sdk/client/test_sync.py"],
    "sdk/lightfr/secagg": ["tests/sdk/secagg", "tests/sdk/test_views.py"],
    "sdk/lightfr/store": ["tests/sdk/store"],
    "harness/lightfr_harness/server/rules": ["tests/harness/server/rules"],
}
# Loaded once, before the first mutant: what takes long to load and is none of ours.
LIBRARIES = ["numpy", "hypothesis", "pytest", "cryptography.x509", "google.protobuf.message", "typer.testing", "ssl"]

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}  # fmt: skip

Change = tuple[ast.AST, Callable[[], None]]


def _changes_of(node: ast.AST) -> Iterator[Change]:
    """What may be broken in one node: where it is, and what breaks it."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                if type(op) in SWAPS:
                    yield node, lambda i=i, op=op: ops.__setitem__(i, SWAPS[type(op)]())
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            yield node, lambda: setattr(node, "op", SWAPS[type(op)]())
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, lambda: setattr(node, "test", ast.copy_location(ast.UnaryOp(ast.Not(), test), test))
        case ast.Constant(value=bool(value)):
            yield node, lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield node, lambda: setattr(node, "value", value + 1)
        case ast.Call(func=ast.Name(id="max" | "min")):
            pass  # the order of their arguments means nothing
        case ast.Call(args=[first, second, *_]) if not isinstance(first, ast.Starred):
            yield node, lambda: node.args.__setitem__(slice(0, 2), [second, first])
    for body in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
        for i, statement in enumerate(body if isinstance(body, list) else []):
            is_call = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)
            if isinstance(statement, ast.Raise | ast.AugAssign) or is_call:
                nothing = ast.copy_location(ast.Pass(), statement)
                yield statement, lambda body=body, i=i, nothing=nothing: body.__setitem__(i, nothing)


def _is_left_out(node: ast.AST, lines: list[str]) -> bool:
    """Types, and what no test can reach."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.stmt) and "pragma: no cover" in lines[node.lineno - 1]


def changes(tree: ast.AST, lines: list[str]) -> Iterator[Change]:
    yield from _changes_of(tree)
    for name, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            is_type = name in ("annotation", "returns", "decorator_list")
            if isinstance(node, ast.AST) and not is_type and not _is_left_out(node, lines):
                yield from changes(node, lines)


def _mutate(path: Path, number: int) -> tuple[ast.AST, str]:
    source = path.read_text()
    tree = ast.parse(source)
    node, apply = list(changes(tree, source.splitlines()))[number]
    before = ast.unparse(node).splitlines()[0]
    apply()
    is_gone = isinstance(node, ast.stmt) and not isinstance(node, ast.If) and ast.unparse(node).startswith(before)
    after = "(removed)" if is_gone else ast.unparse(node).splitlines()[0]
    if after == before:
        after = f"not {before}"
    return tree, f"line {node.lineno}: {before} -> {after}"


class _Broken(SourceFileLoader):
    """Loads one module from a tree instead of from its file."""

    def __init__(self, name: str, path: Path, tree: ast.AST) -> None:
        super().__init__(name, str(path))
        self.tree = tree

    def get_code(self, fullname: str) -> object:
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec")

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> object:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None


def _run_tests(tests: list[str]) -> int:
    import pytest

    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    plain = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-W", "ignore:Module already imported"]
    return pytest.main(["-x", "-q", *plain, *tests])


def _in_a_process(work: Callable[[], int], limit_seconds: float) -> int | None:
    """What the work returns, or None when it takes too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 99
        with contextlib.suppress(BaseException):
            code = work()
        os._exit(code)
    end = time.monotonic() + limit_seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts)


def _nearest_first(path: Path, tests: list[str]) -> list[str]:
    """The tests of the same name run first: they see most mutants, and the first that does ends a run."""
    name = f"test_{path.stem.lstrip('_')}.py"
    near = [str(found) for test in tests for found in (ROOT / test).rglob(name)]
    return [*near, *tests]


def _survives(path: Path, number: int, tests: list[str], limit_seconds: float) -> bool:
    def work() -> int:
        sys.meta_path.insert(0, _Broken(_module_of(path), path, _mutate(path, number)[0]))
        return _run_tests(tests)

    return _in_a_process(work, limit_seconds) == 0


def _try_all(path: Path, tests: list[str], sample: int, seed: int) -> dict[str, object]:
    lines = path.read_text().splitlines()
    total = sum(1 for _ in changes(ast.parse(path.read_text()), lines))
    chosen = sorted(random.Random(seed).sample(range(total), min(sample, total)))
    started = time.monotonic()
    if _in_a_process(lambda: _run_tests(tests), 600) != 0:
        raise SystemExit(f"the tests of {path} fail as they are: {' '.join(tests)}")
    limit = 20 + 5 * (time.monotonic() - started)
    survivors = []
    for done, number in enumerate(chosen, 1):
        if _survives(path, number, tests, limit):
            survivors.append(_mutate(path, number)[1])
            print(f"{path.relative_to(ROOT)}: survived: {survivors[-1]}", flush=True)
        if done % 10 == 0:
            print(f"{path.relative_to(ROOT)}: {done} of {len(chosen)} tried, {len(survivors)} survived", flush=True)
    name = str(path.relative_to(ROOT))
    return {"module": name, "seed": seed, "mutants": total, "tried": len(chosen), "survived": survivors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path, help="a file, or a folder of files")
    parser.add_argument("--tests", nargs="+", help="what runs for each mutant (default: the tests that mirror it)")
    parser.add_argument("--sample", type=int, default=10**6, help="how many mutants of a file are tried (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--record", type=Path, help="a JSON file for the result")
    options = parser.parse_args()
    module = (ROOT / options.module).resolve()
    mirror = next((MIRRORS[name] for name in MIRRORS if str(options.module).startswith(name)), None)
    tests = options.tests or mirror
    if not tests:
        parser.error(f"no tests mirror {options.module}: name some with --tests")
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    files = [module] if module.is_file() else sorted(f for f in module.rglob("*.py") if f.name != "__init__.py")
    results = [_try_all(file, _nearest_first(file, tests), options.sample, options.seed) for file in files]
    for result in results:
        print(f"{result['module']}: {result['tried']} of {result['mutants']} tried, {len(result['survived'])} survived")
    if options.record:
        options.record.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
