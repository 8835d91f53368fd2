"""The files of vectors/v1 are what the generators write, and each is used."""

import re
from pathlib import Path

import pytest

from tests.vectors.__main__ import files
from tests.vectors.reading import FOLDER

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def written():
    return files()


def test_the_files_are_those_of_the_generators(written):
    assert {path.name: path.read_bytes() for path in FOLDER.iterdir()} == written


def test_the_generators_import_nothing_of_lightfr():
    for path in (TESTS / "vectors").glob("*.py"):
        if path.stem in ("__main__", "plain") or path.stem.startswith("generate_"):
            assert not re.search(r"^\s*(from|import) (lightfr|numpy|google)", path.read_text(), re.MULTILINE), path.name


def used_by_tests():
    """Names of files that tests load: vector("name"), load("name") for secagg_name, and names with an ending."""
    text = "".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    names = re.findall(r'\bvector\("(\w+)"\)', text)
    names += [f"secagg_{name}" for name in re.findall(r'\bload\("(\w+)"\)', text)]
    return {f"{name}.json" for name in names} | set(re.findall(r'"(\w+\.bin)"', text))


def test_every_file_is_used_by_a_test(written):
    named = set(re.findall(r'"(\w+\.bin)"', "".join(path.read_text() for path in FOLDER.glob("*.json"))))
    assert set(written) == used_by_tests() & set(written) | named


def test_every_file_stands_in_the_table(written):
    table = (FOLDER.parent / "README.md").read_text()
    assert [name for name in written if f"`v1/{name}`" not in table] == []
