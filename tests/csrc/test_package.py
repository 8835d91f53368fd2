"""The C library as others get it: what is installed, under which names and versions, and what it exports."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.csrc.conftest import ROOT, make, pkg_config, require_tool, run, start

MANUAL = (ROOT / "csrc/README.md").read_text()
HEADER = (ROOT / "csrc/lfr.h").read_text()
SYMBOLS = (ROOT / "csrc/lightfr.symbols").read_text().split()
(VERSION,) = re.findall(r'^#define LFR_VERSION "(.*)"$', HEADER, re.M)
(ABI,) = re.findall(r"^#define LFR_ABI_VERSION (\d+)$", HEADER, re.M)


def exported(library):
    return sorted(line.split()[-1] for line in run("nm", "-D", "--defined-only", str(library)).splitlines())


def soname(library):
    (name,) = re.findall(r"SONAME.*\[(.*)\]", run("readelf", "-d", str(library)))
    return name


def files_below(folder):
    """Each path with what is comparable about it: where a link points, the text of a file; of a library nothing."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            yield str(path.relative_to(folder)), str(path.readlink())
        elif path.is_file():
            is_library = path.suffix == ".a" or ".so" in path.name
            yield str(path.relative_to(folder)), None if is_library else path.read_text()


def test_an_install_has_header_libraries_pkg_config_file_and_cmake_package(staged):
    installed = dict(files_below(staged / "usr"))
    assert set(installed) == {
        "include/lfr.h",
        "lib/machine/liblightfr.a",
        "lib/machine/liblightfr.so",
        f"lib/machine/liblightfr.so.{ABI}",
        "lib/machine/pkgconfig/lightfr.pc",
        "lib/machine/cmake/lightfr/lightfrConfig.cmake",
        "lib/machine/cmake/lightfr/lightfrConfigVersion.cmake",
    }
    assert installed["include/lfr.h"] == HEADER
    assert installed["lib/machine/liblightfr.so"] == f"liblightfr.so.{ABI}"
    assert not [name for name, text in installed.items() if text and re.search(r"@\w+@", text)]


def test_cmake_installs_the_same_files_as_make(staged, built_by_cmake):
    assert dict(files_below(built_by_cmake / "root")) == dict(files_below(staged))


@pytest.mark.usefixtures("staged")
def test_uninstall_removes_every_file_that_install_put_there(tmp_path):
    place = (f"DESTDIR={tmp_path}", "PREFIX=/opt/lightfr")
    make("install", *place)
    assert len(dict(files_below(tmp_path))) == 7
    make("uninstall", *place)
    assert dict(files_below(tmp_path)) == {}


@pytest.mark.usefixtures("staged")
def test_an_install_below_half_a_path_is_refused_in_one_sentence():
    finished = start("make", "-s", "-C", str(ROOT / "csrc"), "install", "PREFIX=opt")
    assert finished.returncode != 0
    assert 'PREFIX is "opt": it must be a whole path' in finished.stderr


@pytest.mark.usefixtures("staged")
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("PREFIX=/opt/R&D", "PREFIX and LIBDIR must be without spaces, & and |"),
        ("PREFIX=/opt/my app", "PREFIX and LIBDIR must be without spaces, & and |"),
        ("LIBDIR=/usr/lib", 'LIBDIR is "/usr/lib": it must be a path below PREFIX'),
    ],
)
def test_an_install_that_its_own_package_files_could_not_name_is_refused(tmp_path, place, reason):
    finished = start("make", "-s", "-C", str(ROOT / "csrc"), "install", f"DESTDIR={tmp_path}", place)
    assert finished.returncode != 0
    assert reason in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_both_builds_export_the_pinned_symbols_and_no_others(staged, built_by_cmake):
    assert exported(staged / "usr/lib/machine/liblightfr.so") == SYMBOLS
    assert exported(built_by_cmake / "root/usr/lib/machine/liblightfr.so") == SYMBOLS


def test_both_builds_are_hardened_as_the_manual_says(staged, built_by_cmake):
    for root in (staged, built_by_cmake / "root"):
        library = str(root / "usr/lib/machine/liblightfr.so")
        assert "__stack_chk_fail" in run("nm", "-D", "--undefined-only", library)
        assert "GNU_RELRO" in run("readelf", "-l", library)
        assert "BIND_NOW" in run("readelf", "-d", library)


def test_every_pinned_symbol_is_declared_in_the_header_and_its_prototype_is_pinned_too():
    declared = re.findall(r"^LFR_API .*?\b(lfr_\w+)\(", HEADER, re.M)
    pinned = re.findall(r"^\w.*?\b(lfr_\w+)\(", (ROOT / "tests/csrc/test_abi.c").read_text(), re.M)
    assert sorted(declared) == SYMBOLS
    assert sorted(pinned) == SYMBOLS


def test_the_header_has_the_rules_of_buffers_that_the_manual_has():
    for rule in ("Inputs and outputs must not overlap.", "No alignment", "Nothing is kept after"):
        assert rule in MANUAL
    for rule in ("Inputs and outputs must not overlap.", "need no alignment", "nothing is kept after"):
        assert rule in HEADER


def test_the_manual_explains_every_symbol():
    assert [name for name in SYMBOLS if f"`{name}" not in MANUAL] == []


def test_the_manual_names_every_source_file():
    assert [path.name for path in (ROOT / "csrc").glob("*.[ch]") if f"`{path.name}`" not in MANUAL] == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["-std=c11", "-U__GNUC__"], "lightfr needs GCC or Clang"),
        (["-std=c99"], "lightfr is written in C11"),
        (
            ["-std=c11", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"],
            "big-endian machines are not supported",
        ),
    ],
)
def test_a_compiler_or_machine_that_is_not_supported_is_told_why(flags, sentence):
    finished = start("cc", *flags, "-fsyntax-only", str(ROOT / "csrc/lfr_portable.c"))
    assert finished.returncode != 0
    assert sentence in finished.stderr


@pytest.mark.usefixtures("staged")
def test_the_first_commands_of_the_manual_work_as_printed(tmp_path):
    require_tool("pkg-config")
    commands = re.search(r"^```sh\n(.*?)^```$", MANUAL, re.M | re.S)[1].replace("/opt/lightfr", f"{tmp_path}/prefix")
    (tmp_path / "csrc").symlink_to(ROOT / "csrc")
    printed = run("bash", "-e", "-c", commands, cwd=tmp_path)
    assert printed.splitlines()[-2:] == ["item 0, distance 1", "item 1, distance 5"]


def test_the_manual_builds_with_cmake_before_it_installs():
    """For `cmake --install` builds nothing."""
    (command,) = re.findall(r"`(cmake [^`]*--install[^`]*)`", MANUAL)
    assert re.findall(r"cmake (-\S+)", command) == ["-S", "--build", "--install"]


def test_header_package_and_python_have_one_version_and_the_soname_is_the_abi(staged, built_by_cmake):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    assert json.loads((ROOT / "web/package.json").read_text())["version"] == VERSION
    assert run("pkg-config", "--modversion", "lightfr", variables=pkg_config(staged)).strip() == VERSION
    for root in (staged, built_by_cmake / "root"):
        assert soname(root / "usr/lib/machine/liblightfr.so") == f"liblightfr.so.{ABI}"


@pytest.mark.parametrize(
    ("wanted", "serves"), [("", True), ("0.1", True), ("0.1.0", True), ("0.1.1", False), ("0.2", False), ("1.0", False)]
)
def test_cmake_finds_this_version_for_those_who_ask_for_it_or_an_older_one_of_its_series(
    staged, tmp_path, wanted, serves
):
    require_tool("cmake")
    script = tmp_path / "ask.cmake"
    config = staged / "usr/lib/machine/cmake/lightfr/lightfrConfigVersion.cmake"
    script.write_text(f'include("{config}")\nmessage("serves: ${{PACKAGE_VERSION_COMPATIBLE}}")\n')
    asked = start("cmake", f"-DPACKAGE_FIND_VERSION={wanted}", "-P", str(script))
    assert asked.returncode == 0
    assert asked.stderr.strip() == ("serves: TRUE" if serves else "serves:")


ASK = """cmake_minimum_required(VERSION 3.21)
project(ask LANGUAGES NONE)
find_package(lightfr REQUIRED)
get_target_property(library lightfr::lightfr IMPORTED_LOCATION)
get_target_property(headers lightfr::static INTERFACE_INCLUDE_DIRECTORIES)
message("${library} ${headers}")
"""


@pytest.mark.parametrize("libdir", ["lib", "lib64", "lib/", "lib/machine"])
def test_cmake_finds_an_install_whose_library_folder_is_a_link_or_ends_in_a_slash(tmp_path, libdir):
    require_tool("cmake")
    prefix = tmp_path / "prefix"
    (prefix / "lib/machine").mkdir(parents=True)
    (prefix / "lib64").symlink_to("lib")
    package = prefix / libdir / "cmake/lightfr"
    package.mkdir(parents=True)
    template = (ROOT / "csrc/package/lightfrConfig.cmake.in").read_text()
    (package / "lightfrConfig.cmake").write_text(template.replace("@LIBDIR@", libdir).replace("@ABI@", ABI))
    (tmp_path / "CMakeLists.txt").write_text(ASK)
    asked = start("cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-Dlightfr_DIR={package}")
    assert asked.returncode == 0, asked.stderr
    library, headers = asked.stderr.split()
    assert Path(library).parent.resolve() == (prefix / libdir).resolve()
    assert headers == f"{prefix}/include"


@pytest.mark.parametrize("libdir", ["lib", "/opt/lightfr/lib"])
def test_a_library_folder_given_whole_to_cmake_is_the_one_that_the_package_names(tmp_path, libdir):
    require_tool("cmake")
    places = ("-DCMAKE_INSTALL_PREFIX=/opt/lightfr", f"-DCMAKE_INSTALL_LIBDIR={libdir}")
    run("cmake", "-S", str(ROOT / "csrc"), "-B", str(tmp_path), *places)
    assert "\nlibdir=${prefix}/lib\n" in (tmp_path / "lightfr.pc").read_text()
    assert "/lib/liblightfr.a" in (tmp_path / "lightfrConfig.cmake").read_text()
    assert 'DESTINATION "/opt' not in (tmp_path / "cmake_install.cmake").read_text()


def test_tools_see_what_a_shell_would_give_them_even_when_make_runs_the_tests_in_a_terminal(monkeypatch):
    for name in ("MAKEFLAGS", "MAKELEVEL", "MAKE_TERMOUT", "MAKE_TERMERR", "MFLAGS"):
        monkeypatch.setenv(name, "1")
    assert not re.search(r"^(MAKE|MFLAGS)", run("env"), re.M)


def test_no_source_of_the_library_computes_in_floating_point():
    """Devices and servers must agree to the bit, and not every machine rounds alike."""
    for path in sorted((ROOT / "csrc").glob("*.[ch]")):
        code = re.sub(r'/\*.*?\*/|"[^"\n]*"', "", path.read_text(), flags=re.DOTALL)
        assert re.findall(r"\b(?:double|float|_Complex)\b|\bmath\.h\b|\b\d+\.\d*|\B\.\d+", code) == [], path.name


def test_every_public_function_is_called_by_a_fuzz_target():
    called = "".join(path.read_text() for path in (ROOT / "tests/csrc/fuzz").glob("*.c"))
    assert [name for name in SYMBOLS if f"{name}(" not in called] == []
