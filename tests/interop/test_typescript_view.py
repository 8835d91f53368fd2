"""The TypeScript in docs/other-languages.md, generated, type-checked and run for real."""

import json
import os
import re
import shutil
import subprocess

import pytest

from tests.test_other_languages import MANIFEST, ROOT, block, expected_output, run

MODULES = ROOT / "tests/interop/node/node_modules"
COMPILER = {"module": "nodenext", "target": "es2022", "strict": True, "skipLibCheck": True, "types": ["node"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project as the page describes it, with the packages of the coordinator in TypeScript."""
    assert MODULES.is_dir(), "the packages are not installed: run `make test-interop`"
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "proto").symlink_to(ROOT / "proto")
    (folder / "buf.gen.yaml").write_text(block("yaml"))
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER}))
    (folder / "program.ts").write_text(block("ts"))
    shutil.copy(MANIFEST, folder)
    environment = {**os.environ, "PATH": f"{MODULES / '.bin'}:{os.environ['PATH']}"}
    subprocess.run(["buf", "generate"], cwd=folder, env=environment, check=True)
    return folder


def without_comments(text):
    return re.sub(r"\n\s*\n", "\n", re.sub(r"/\*\*.*?\*/", "", text, flags=re.S))


def test_the_program_compiles_writes_the_bytes_and_reads_the_manifest(folder):
    run(str(MODULES / ".bin/tsc"), folder=folder)
    assert run("node", "program.js", folder=folder) == expected_output()


def test_the_excerpt_is_what_the_generator_makes(folder):
    made = without_comments((folder / "gen/lightfr/v1/coordinator_pb.ts").read_text())
    assert without_comments(block("ts-excerpt")) in made
