"""What docs/other-languages.md shows is what the tools make, and its programs do what it says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lightfr.v1 import coordinator_pb2

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/other-languages.md").read_text()
EXAMPLES = ROOT / "examples/c"
MANIFEST = EXAMPLES / "device/manifest"


def block(language):
    """The one code block of this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return found


def upload_bytes():
    """The bytes of the table: every line's hexadecimal digits before its name."""
    lines = block("upload").splitlines()
    return bytes.fromhex("".join(re.match(r"[0-9a-f ]*(?=   |$)", line)[0] for line in lines))


def expected_output():
    return f"{upload_bytes().hex()}\n7 64 240\n"


def run(*command, folder):
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture
def folder(tmp_path):
    shutil.copy(MANIFEST, tmp_path)
    return tmp_path


def test_the_upload_in_hex_is_the_message_that_the_names_beside_it_say():
    request = coordinator_pb2.UploadRequest.FromString(upload_bytes())
    assert request.SerializeToString() == upload_bytes()
    fields = [field.name for field, _ in request.ListFields()]
    fields += [field.name for field, _ in request.row_update.ListFields()]
    fields += [field.name for field, _ in request.row_update.ternary.ListFields()]
    shown = re.findall(r"([a-z]\w+)(?:$| =|,)", block("upload"), re.M)
    assert sorted(shown) == sorted(fields)


def test_the_program_in_python_writes_these_bytes_and_reads_the_manifest(folder):
    assert run(sys.executable, "-c", block("python"), folder=folder) == expected_output()


def test_the_program_in_c_writes_these_bytes_and_reads_the_manifest(folder):
    (folder / "program.c").write_text(block("c"))
    sources = ("program.c", str(EXAMPLES / "message.c"))
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{EXAMPLES}", *sources, "-o", "program", folder=folder)
    assert run(str(folder / "program"), folder=folder) == expected_output()


def test_excerpts_stand_in_the_generated_files():
    assert block("pyi") in (ROOT / "sdk/lightfr/v1/update_pb2.pyi").read_text()
    assert block("c-excerpt") in (EXAMPLES / "lightfr_v1.h").read_text()


def test_cmake_takes_the_library_in_as_source_and_links_its_static_form(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed (Debian: apt-get install cmake)")
    (tmp_path / "lightfr").symlink_to(ROOT)
    (tmp_path / "CMakeLists.txt").write_text(block("cmake"))
    (tmp_path / "native.c").write_text('#include "lfr.h"\n')
    run("cmake", "-S", ".", "-B", "build", "-G", "Unix Makefiles", folder=tmp_path)
    link = (tmp_path / "build/CMakeFiles/app.dir/link.txt").read_text()
    assert "liblightfr.a" in link
    assert "liblightfr.so" not in link


def test_the_options_for_nanopb_name_every_field_of_bytes_in_a_row_update():
    from lightfr.v1 import update_pb2

    messages = update_pb2.DESCRIPTOR.message_types_by_name.values()
    fields = {field.full_name for message in messages for field in message.fields if field.type == field.TYPE_BYTES}
    assert set(re.findall(r"^(\S+) ", block("options"), re.M)) == fields
