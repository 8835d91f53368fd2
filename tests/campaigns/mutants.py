"""What may be broken in a module: comparisons, booleans, arithmetic, constants, arguments, statements, conditions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
        case ast.Call(args=[first, second, *_]) if not isinstance(first, ast.Starred) and _differ(first, second):
            yield node, lambda: node.args.__setitem__(slice(0, 2), [second, first])
    for body in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
        for i, statement in enumerate(body if isinstance(body, list) else []):
            is_call = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)
            if isinstance(statement, ast.Raise | ast.AugAssign) or is_call:
                nothing = ast.copy_location(ast.Pass(), statement)
                yield statement, lambda body=body, i=i, nothing=nothing: body.__setitem__(i, nothing)


def _differ(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) != ast.dump(other)


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


@dataclass
class Mutant:
    """A module that is broken in one place."""

    tree: ast.Module
    lines: range  # of the statement that is broken, without the statements within it
    text: str  # what was changed into what, for people and for the list of equivalents


def _around(tree: ast.Module, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements that a node is in, the outermost first."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt) and statement.lineno <= node.lineno <= statement.end_lineno:
            yield statement


def _own_lines(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    last = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno
    return range(statement.lineno, last + 1)


def mutant(source: str, number: int) -> Mutant:
    tree = ast.parse(source)
    node, apply = list(changes(tree, source.splitlines()))[number]
    around = list(_around(tree, node))
    name = ".".join(s.name for s in around if isinstance(s, ast.FunctionDef | ast.ClassDef))
    # A number alone would not say which one it is.
    shown = around[-1] if isinstance(node, ast.Constant) else node
    before = ast.unparse(shown).splitlines()[0]
    apply()
    is_gone = isinstance(node, ast.stmt) and not isinstance(node, ast.If) and ast.unparse(node).startswith(before)
    after = "(removed)" if is_gone else ast.unparse(shown).splitlines()[0]
    if after == before:
        after = f"not {before}"
    text = f"{name}: {before} -> {after}" if name else f"{before} -> {after}"
    return Mutant(ast.fix_missing_locations(tree), _own_lines(around[-1]), text)


def count(source: str) -> int:
    return sum(1 for _ in changes(ast.parse(source), source.splitlines()))
