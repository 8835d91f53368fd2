"""Writes requirements/*.txt: every package that development and CI install, with its version and hashes: `make lock`.

    python tools/lock.py

The locks serve every platform and every Python from 3.11 on. What they are made from stands in both pyproject.toml and
in requirements/*.in. Packages that share an environment are resolved together first, so that their locks agree. Needs
uv; whoever reads a lock needs pip alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
# Extras of the harness that share the virtual environment of the tests.
EXTRAS = ("test", "lint", "bench", "postgres", "ray")


def wanted() -> dict[str, list[str]]:
    """Return what each lock must hold, by its name. That of the tests holds what both distributions need, too."""
    sdk, harness = (tomllib.loads((ROOT / path / "pyproject.toml").read_text()) for path in (".", "harness"))
    extras = harness["project"]["optional-dependencies"]
    locks = {name: list(extras[name]) for name in EXTRAS}
    for requirement in sdk["build-system"]["requires"] + sdk["project"]["dependencies"]:
        locks["test"].append(requirement)
    locks["test"] += [one for one in harness["project"]["dependencies"] if not one.startswith("lightfr==")]
    for path in sorted(FOLDER.glob("*.in")):
        locks[path.stem] = path.read_text().splitlines()
    return locks


def resolved(requirements: list[str], *options: str) -> str:
    """Return the text of a lock. It names no index: whoever installs says where packages come from."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-header", "--upgrade", *options, "-"]
    done = subprocess.run(  # noqa: S603 # our own environment
        command, input="\n".join(requirements), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"uv could not resolve {', '.join(requirements)}:\n{done.stderr[-2000:]}")
    return done.stdout


def main() -> None:
    """Write every lock."""
    locks = wanted()
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder) / "together.txt"
        together.write_text(resolved([one for name in EXTRAS for one in locks[name]]))
        for name, requirements in locks.items():
            options = ["--constraint", str(together)] if name in EXTRAS else []
            lines = resolved(requirements, *options).splitlines()
            # Comments say what needs a package; the temporary file does not.
            kept = [line for line in lines if str(together) not in line]
            (FOLDER / f"{name}.txt").write_text("\n".join(["# Made by `make lock`.", *kept, ""]))
            print(f"{sum('==' in line for line in kept):>4} packages  requirements/{name}.txt", flush=True)


if __name__ == "__main__":
    main()
