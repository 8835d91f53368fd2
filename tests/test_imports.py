"""Code flows one way, and every module keeps to its room: what shipped code imports, and what it may not replace."""

import ast
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {"lightfr": ROOT / "sdk", "lightfr_harness": ROOT / "harness"}

# Modules of the SDK that are not for apps and that the harness uses all the same, each with its reason.
FOR_THE_HARNESS = {
    "lightfr._files": "the coordinator and the authority make a renamed file durable as the store does",
    "lightfr._kernel": "the server's rules, the simulation and the benchmarks run the same C code as devices",
    "lightfr._wire": "simulated devices encode uploads as real ones do",
    "lightfr._wire.channel": "many simulated devices speak mutual TLS from one process",
    "lightfr._wire.coordinator": "the calls of a device, without the Client around them",
    "lightfr._wire.secure": "the calls of a round of secure aggregation, without the Client around them",
    "lightfr._wire.tls": "a fleet makes the TLS context of a device once",
}
# What the SDK may import besides the standard library: the dependencies of pyproject.toml, as Python knows them.
SDK_PACKAGES = {"lightfr", "google", "cryptography", "_typeshed"}  # the last one is for mypy alone
# What opens a connection, or could.
NETWORK = {"socket", "socketserver", "ssl", "http", "urllib.request", "ftplib", "smtplib", "asyncio.streams"}
# What loads compiled code.
NATIVE = {"cffi", "_cffi_backend", "ctypes", "lightfr._kernel._lfr"}


class Import(NamedTuple):
    """One module names another, at the top or inside a function."""

    importer: str
    imported: str
    name: str  # what is taken from the imported module; empty for the module itself
    place: str


def module_name(path, root):
    """The dotted name under which Python knows this file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def shipped_files():
    """Each module's name, path and parsed text, generated messages left out."""
    for package, root in SOURCES.items():
        for path in sorted((root / package).rglob("*.py")):
            if not path.name.endswith("_pb2.py"):
                yield module_name(path, root), path, ast.parse(path.read_text())


@cache
def files():
    return list(shipped_files())


MODULES = {module_name(path, root) for package, root in SOURCES.items() for path in (root / package).rglob("*.py")}


def is_within(module, *packages):
    """Whether the module is one of these or inside one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def origin(node, module, is_package):
    """The module that a `from` statement takes from, the dots of a relative one resolved."""
    if not node.level:
        return node.module
    above = module.split(".")[: len(module.split(".")) - node.level + is_package]
    return ".".join([*above, node.module] if node.module else above)


def named_by(node, module, is_package):
    """Yield (imported module, name) for a node that imports something, import_module("...") included."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = origin(node, module, is_package)
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            is_module = whole in MODULES or whole in NATIVE | NETWORK
            yield (whole, "") if is_module else (base, alias.name)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
        yield from ((each.value, "") for each in node.args[:1] if isinstance(each, ast.Constant))


def imports_of(module, path, tree):
    for node in ast.walk(tree):
        for imported, name in named_by(node, module, path.name == "__init__.py"):
            yield Import(module, imported, name, f"{path.relative_to(ROOT)}:{node.lineno}")


# Not at the top of the module: every worker loads this file, and one of them runs it.
@cache
def imports(package=""):
    """All imports, or those in one package."""
    if package:
        return [found for found in imports() if is_within(found.importer, package)]
    return [found for file in files() for found in imports_of(*file)]


def shown(imports):
    return [f"{found.place} imports {found.imported} {found.name}".strip() for found in imports]


def is_command_line(module):
    """Whether the module is a command line: what calls others and is called by none of them."""
    return module.split(".")[-1] in ("cli", "__main__") or module.endswith("_cli")


def test_the_walk_sees_every_room_and_every_way_to_import():
    assert len(files()) > 150
    assert len(imports()) > 1000
    text = (
        "def f():\n  from lightfr import _kernel\n  import ssl\n  from . import b\n  importlib.import_module('tests.x')"
    )
    found = {(each.imported, each.name) for each in imports_of("lightfr.a", ROOT / "sdk/lightfr/a.py", ast.parse(text))}
    assert found == {("lightfr._kernel", ""), ("ssl", ""), ("lightfr", "b"), ("tests.x", "")}


def test_the_sdk_does_not_know_the_harness():
    assert shown(found for found in imports("lightfr") if is_within(found.imported, "lightfr_harness")) == []


def test_nothing_shipped_imports_tests():
    assert shown(found for found in imports() if is_within(found.imported, "tests", "pytest", "hypothesis")) == []


def test_the_sdk_imports_nothing_but_the_standard_library_and_its_declared_dependencies():
    allowed = SDK_PACKAGES | sys.stdlib_module_names
    foreign = [found for found in imports("lightfr") if found.imported.split(".")[0] not in allowed]
    assert shown(found for found in foreign if not is_within(found.importer, "lightfr._kernel")) == []


def test_only_the_kernel_package_loads_c():
    loading = [found for found in imports("lightfr") if is_within(found.imported, *NATIVE)]
    assert loading
    assert shown(found for found in loading if not is_within(found.importer, "lightfr._kernel")) == []
    # The harness has C of its own, the benchmark's floor, and reaches the kernel through the SDK alone.
    assert (
        shown(found for found in imports("lightfr_harness") if is_within(found.imported, "lightfr._kernel._lfr")) == []
    )


def test_only_the_wire_opens_connections():
    opening = [found for found in imports("lightfr") if is_within(found.imported, *NETWORK)]
    assert opening
    assert shown(found for found in opening if not is_within(found.importer, "lightfr._wire")) == []


def test_the_harness_uses_public_modules_of_the_sdk_and_those_listed_here():
    used = [found for found in imports("lightfr_harness") if is_within(found.imported, "lightfr")]
    private = [found for found in used if any(part.startswith("_") for part in found.imported.split("."))]
    assert shown(found for found in private if found.imported not in FOR_THE_HARNESS) == []
    assert shown(found for found in used if found.name.startswith("_") and not found.name.startswith("__")) == []
    assert set(FOR_THE_HARNESS) - {found.imported for found in private} == set(), "listed, but no longer used"


def test_only_command_lines_import_command_lines():
    calling = [found for found in imports() if is_command_line(found.imported) and not is_command_line(found.importer)]
    assert shown(calling) == []


def test_reports_know_nothing_of_what_makes_the_records_they_draw():
    makers = [f"lightfr_harness.{room}" for room in ("simulation", "server", "bench", "demo", "conformance")]
    runs = {module for module in MODULES if is_within(module, "lightfr_harness.audits") and module.endswith(".run")}
    drawing = [found for found in imports("lightfr_harness") if is_within(found.importer, "lightfr_harness.reports")]
    assert drawing
    assert shown(found for found in drawing if is_within(found.imported, *makers, *runs)) == []


def test_audits_find_and_leave_the_drawing_to_their_callers():
    finding = [found for found in imports("lightfr_harness") if is_within(found.importer, "lightfr_harness.audits")]
    judging = [found for found in finding if not is_command_line(found.importer)]
    assert judging
    assert shown(found for found in judging if is_within(found.imported, "lightfr_harness.reports")) == []


# Nothing shipped replaces, at run time, what another module defines.


def bound_in(function):
    """The names that a function binds itself, its parameters included; what it imports is not among them."""
    arguments = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return arguments | stored


def imported_names(nodes):
    statements = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).split(".")[0] for node in statements for alias in node.names}


def root_of(node):
    """The name at the left end of a.b.c or a.b[c]; None when there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def replaced_by(node):
    """The expression that a node assigns to, deletes or sets an attribute of; None for any other node."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return node.value
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        is_namespace = isinstance(node.value, ast.Attribute) and node.value.attr in ("__dict__", "modules")
        return node.value if is_namespace else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        return node.args[0]
    return None


def replacements(tree, known=frozenset()):
    """Yield every node that changes an attribute of an imported name, scope by scope."""
    inner, waiting, here = [], list(ast.iter_child_nodes(tree)), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner.append(node)
            continue
        here.append(node)
        waiting += ast.iter_child_nodes(node)
    names = known | imported_names(here)
    yield from (node for node in here if (changed := replaced_by(node)) is not None and root_of(changed) in names)
    for function in inner:
        yield from replacements(function, names - bound_in(function))


@pytest.mark.parametrize(
    "text",
    [
        "import a\na.b = 1",
        "from a import b\nb.c.d = 1",
        "import a.b\na.b.c += 1",
        "from a import b as c\nsetattr(c, 'd', 1)",
        "import a\ndef f():\n  a.b = 1",
        "def f():\n  from a import b\n  del b.c",
        "import a\nclass C:\n  def f(self):\n    a.b, self.c = 1, 2",
        "import sys\nsys.modules['a'] = 1",
        "import a\na.__dict__['b'] = 1",
        "import a\nwith f() as a.b: pass",
    ],
)
def test_a_replacement_is_seen(text):
    assert len(list(replacements(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "class C:\n  def f(self):\n    self.a = 1",
        "import a\ndef f(a):\n  a.b = 1",
        "import a\ndef f():\n  a = g()\n  a.b = 1",
        "from a import M\nm = M()\nm.b = 1",
        "from a import options\noptions['b'] = 1",
    ],
)
def test_the_state_of_an_object_of_ones_own_is_no_replacement(text):
    assert list(replacements(ast.parse(text))) == []


# A setting of the standard library that only this assignment reaches. It is a number, not a function.
ALLOWED_SETTINGS = {
    # asyncio gives each TLS connection a read buffer of 256 KB: half a gigabyte for 2,000 devices that wait.
    "harness/lightfr_harness/server/coordinator/web.py: sslproto.SSLProtocol.max_size",
}


def test_nothing_shipped_replaces_what_another_module_defines():
    found = {
        f"{path.relative_to(ROOT)}: {ast.unparse(node)}" for _, path, tree in files() for node in replacements(tree)
    }
    assert found == ALLOWED_SETTINGS


def test_nothing_shipped_uses_mocks_or_reaches_for_the_builtins():
    assert shown(found for found in imports() if is_within(found.imported, "unittest", "builtins", "_pytest")) == []
