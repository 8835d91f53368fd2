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


def test_every_file_the_documents_point_to_exists():
    for document in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        ROOT / "csrc/README.md",
        ROOT / "examples/c/README.md",
        ROOT / "harness/README.md",
        ROOT / "vectors/README.md",
    ]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} points to {target}"
