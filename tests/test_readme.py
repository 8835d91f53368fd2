"""What the README shows is what happens."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_readme_session_runs_as_printed():
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried >= 6
    assert failed == 0


def test_the_first_screen_is_the_example_that_is_run_verbatim():
    """tests/test_embedding.py runs the example of docs/embedding.md; the README shows the same lines."""
    shown, run = (
        re.search(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)[1]
        for name in ("README.md", "docs/embedding.md")
    )
    assert shown == run


DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *(ROOT / "docs").glob("*.md"),
    ROOT / "csrc/README.md",
    ROOT / "examples/c/README.md",
    ROOT / "harness/README.md",
    ROOT / "harness/lightfr_harness/bench/README.md",
    ROOT / "tests/interop/node/README.md",
    ROOT / "vectors/README.md",
    ROOT / "web/README.md",
]


def anchors(document):
    """The names of its headings, as pages of a repository make them, and those that it gives itself."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = []
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        names.append(f"{name}-{seen}" if (seen := len([1 for one in names if one == name])) else name)
    return {*names, *re.findall(r'<a id="([^"]+)"', text)}


def test_every_file_and_heading_the_documents_point_to_exists():
    for document in DOCUMENTS:
        for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", document.read_text()):
            found = document.parent / target if target else document
            assert found.exists(), f"{document.name} points to {target}"
            assert not heading or heading in anchors(found), f"{document.name} points to {target}#{heading}"
