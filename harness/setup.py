"""Builds the benchmark's floor and packs the vectors; the rest of this distribution stands in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
INSIDE = Path("lightfr_harness", "vectors", "v1")
# A source distribution carries its own copy, a checkout has the vectors at its top.
VECTORS = HERE / INSIDE if (HERE / INSIDE).is_dir() else HERE.parent / "vectors" / "v1"


def copy_vectors(root: Path) -> None:
    """Put the vectors where the package looks for them, under this root."""
    if not (VECTORS / "aggregation.json").is_file():
        raise SystemExit(f"{VECTORS} lacks the vectors: build lightfr-harness in a whole checkout of lightfr.")
    shutil.copytree(VECTORS, root / INSIDE, dirs_exist_ok=True)


class BuildWithVectors(build_py):
    """An editable install reads the vectors of its checkout; every other build gets a copy."""

    def run(self) -> None:
        """Build the modules, then copy the vectors beside them."""
        super().run()
        if not self.editable_mode:
            copy_vectors(Path(self.build_lib))


class SourceWithVectors(sdist):
    """A source distribution must be able to build without the checkout around it."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Write the files of the distribution, then the vectors."""
        super().make_release_tree(base_dir, files)
        copy_vectors(Path(base_dir))


setup(
    cffi_modules=["build_floor.py:ffibuilder"],
    cmdclass={"build_py": BuildWithVectors, "sdist": SourceWithVectors},
)
