"""Secrets show in no text: not by an instance's repr, str, format, log line or pickle, and not by a line of code."""

import ast
import copy
import importlib
import logging
import pickle
import pkgutil
import re
from array import array
from pathlib import Path

import pytest

import lightfr
from lightfr import _secret
from lightfr._slots import Slot
from lightfr.codes import ItemSet, UserCode
from lightfr.errors import InvalidInputError
from lightfr.identities import IdentityKeys
from lightfr.interactions import Interactions
from lightfr.keys import FileKey, Kept
from lightfr.membership import MemberKey
from lightfr.rounds import Outgoing
from lightfr.secagg import RevealedShares
from lightfr.store import Store
from lightfr.store._ring import KeyRing
from lightfr.store._state import Change
from lightfr.training import RowUpdate
from lightfr.training.fitting import Weighed
from lightfr_harness.server.rules.uploads import Upload
from tests.adversary.cohort import Devices, vector_of

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("sdk/lightfr", "harness/lightfr_harness/server")

# What secrets are called, without underscores before it: whoever gives one another name adds it here.
SECRET_NAMES = {
    "private", "private_key", "mask_private", "share_private", "member_private", "key", "keys", "secret", "cipher",
    "seed", "seeds", "held", "own_share", "shares", "mask_keys", "passphrase", "password", "token", "code", "user_code",
    "interactions", "opinions", "rating", "ratings", "rated", "unrated", "level", "levels",
    "item_id", "item_ids", "item_index", "item_indices",
}  # fmt: skip
# Those of them that an attribute of a class may not have, unless the class is marked or excused.
HELD_NAMES = SECRET_NAMES - {"code", "keys", "key", "level", "item_id", "item_ids", "item_index"}
# Functions whose results say how much there is, or of what kind.
TELL_NOTHING = {"len", "type", "isinstance", "number_bytes"}
# Text of these, by file and expression, with the reason why it may be shown.
EXCUSED = {
    ("sdk/lightfr/cli.py", "item.item_id"): "`lightfr recommend` shows its user what it recommends",
    ("sdk/lightfr/errors.py", "code"): "the code of a refusal on the wire",
    ("harness/lightfr_harness/server/coordinator/beside.py", "code"): "the exit code of a process",
    ("harness/lightfr_harness/server/coordinator/options.py", "lines[item_id]"): "the number of a line",
}
EXCUSED_CLASSES = {
    ("sdk/lightfr/model/folder.py", "ModelFolder"): "the manifest that it holds is public",
    ("sdk/lightfr/results.py", "ExportedRating"): "a part of an export",
    ("sdk/lightfr/results.py", "ExportedData"): "an export is a plain dict, which its user asked for",
}


def marked():
    """Every class of the SDK that bears the mark."""
    found = set()
    for module in pkgutil.walk_packages(lightfr.__path__, "lightfr."):
        if not module.name.endswith("__main__"):
            names = vars(importlib.import_module(module.name)).values()
            found |= {one for one in names if isinstance(one, type) and one.__reduce_ex__ is _secret._refuse}
    return found


def instances(number, folder):
    """One of each class that writes a repr of its own, holding secrets made of this number."""
    some, session = bytes([number]) * 32, Devices(2, seed=number).sessions[0]
    made = [
        UserCode(some[:8]),
        ItemSet(64, [number]),
        Interactions([(number, number)]),
        Kept(some, some),
        Slot(0, 1, some),
        KeyRing(some[:16], {some[:8]: some}, anchor=0),
        Change(rated=[(number, number)], values={"user_code": some}),
        IdentityKeys(some, some, MemberKey.from_private(some)),
        Outgoing("Upload", some),
        RevealedShares(some, some),
        RowUpdate(64, 1, array("I", [number]), user_code=some),
        Weighed(bytearray(some), array("i", [number]), None, 1, number, 1),
        vector_of(number, 2),
        session,
        session.state,
        Store.open(folder / str(number), FileKey(folder / f"key-{number}")),
    ]
    return {type(one): one for one in made}


def shown(thing, caplog):
    """All that Python says of a thing, without its address in memory."""
    caplog.clear()
    logging.getLogger("lightfr").warning("%s %r", thing, thing)
    text = f"{thing!r} {thing} {thing!s} {[thing]} {caplog.text}" + "{} {!r}".format(thing, thing)  # noqa: UP032
    return re.sub("0x[0-9a-f]+", "", text)


def test_two_instances_with_other_secrets_look_the_same(tmp_path, caplog):
    one, other = instances(3, tmp_path), instances(5, tmp_path)
    writing = {kind for kind in marked() if kind.__repr__ is not object.__repr__}
    assert one.keys() == writing, "a class that writes its own repr needs an instance here"
    for kind in writing:
        assert shown(one[kind], caplog) == shown(other[kind], caplog), kind
    for kept in (one[Store], other[Store]):
        kept.close()


def test_what_a_server_read_in_the_clear_shows_nothing():
    assert Upload.__repr__ is object.__repr__


def test_that_would_notice_a_repr_that_shows_something(caplog):
    class Shows(Kept):
        def __repr__(self):
            return f"<Kept {self.secret[:1]}>"

    assert shown(Shows(b"a", b""), caplog) != shown(Shows(b"b", b""), caplog)


def test_no_instance_is_pickled_or_copied():
    kinds = marked()
    assert len(kinds) > 20
    for kind in kinds:
        thing = tuple.__new__(kind, ()) if issubclass(kind, tuple) else object.__new__(kind)
        for put in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(InvalidInputError, match="holds secrets"):
                put(thing)


def trees(*rooms):
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            if not path.name.endswith("_pb2.py"):
                yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def held_by(kind):
    """Names of what an instance of a class holds: fields, slots, and what its methods put into self."""
    for node in ast.walk(kind):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node in kind.body:
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def unmarked(where, tree):
    """Classes that hold something with the name of a secret, and neither bear the mark nor are excused."""
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        names = {name.lstrip("_") for name in held_by(kind)} & HELD_NAMES
        is_marked = any(ast.unparse(one) == "secret" for one in kind.decorator_list)
        if names and not is_marked and (where, kind.name) not in EXCUSED_CLASSES:
            yield f"{where}: {kind.name} holds {sorted(names)}"


def test_every_class_that_holds_secrets_bears_the_mark():
    assert [found for where, tree in trees("sdk/lightfr") for found in unmarked(where, tree)] == []
    planted = "class A:\n  def __init__(self):\n    self._seed = 1\nclass B(NamedTuple):\n  mask_private: bytes"
    assert len(list(unmarked("", ast.parse(planted)))) == 2


def told(node):
    """Names in an expression whose values get into text that is made of it."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func).split(".")[-1]
        if name not in TELL_NOTHING:
            parts = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
            yield from (found for part in parts for found in told(part))
            yield from told(node.func.value) if isinstance(node.func, ast.Attribute) else ()
    elif not isinstance(node, ast.JoinedStr):  # its parts are looked at by themselves
        yield from (found for child in ast.iter_child_nodes(node) for found in told(child))


# Functions that write what they are given.
SHOWING = {
    "debug", "info", "warning", "error", "exception", "critical", "log", "print", "echo", "secho", "format", "repr"
}  # fmt: skip


def put_into_text(tree):
    """Expressions that become text: in f-strings, behind %, in format(), in log calls, in errors that are raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue):
            yield node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
            yield from [node.right] if isinstance(node.left.value, str) else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in SHOWING:
            yield from [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from node.exc.args


def leaks(where, tree):
    """Expressions with the name of a secret that become text."""
    for node in put_into_text(tree):
        names = {name.lstrip("_") for name in told(node)} & SECRET_NAMES
        if names and (where, ast.unparse(node)) not in EXCUSED:
            yield f"{where}:{node.lineno}: {ast.unparse(node)} puts {sorted(names)} into text"


def test_no_line_makes_text_of_a_secret():
    assert [found for where, tree in trees(*ROOMS) for found in leaks(where, tree)] == []


@pytest.mark.parametrize(
    "line",
    [
        "f'the seed is {self._seed.hex()}'",
        "f'{ring.keys!r}'",
        "'%s of %s' % (name, rating)",
        "'{}'.format(state.mask_private)",
        "log.warning('%s', interactions)",
        "logging.getLogger('lightfr').info('bad', extra={'user_code': code.reveal()})",
        "print(passphrase)",
        "raise StoreError(item_id)",
        "raise StoreError(f'{len(seed)} bytes: {seed}')",
        "str.format('{}', [one for one in ratings])",
    ],
)
def test_a_planted_line_is_found(line):
    assert list(leaks("planted", ast.parse(line)))


def test_numbers_and_kinds_of_secrets_are_no_secrets():
    harmless = "f'{len(seed)} bytes of {type(ratings).__name__}, {code.code_bits} bits'; b'%d' % seed; hash(seed)"
    assert list(leaks("", ast.parse(harmless))) == []


def test_every_excuse_is_still_needed():
    used = {(where, ast.unparse(node)) for where, tree in trees(*ROOMS) for node in put_into_text(tree)}
    classes = {(where, node.name) for where, tree in trees(*ROOMS) for node in ast.walk(tree) if hasattr(node, "bases")}
    assert EXCUSED.keys() <= used
    assert EXCUSED_CLASSES.keys() <= classes
