"""ML-100K out of RecBole's source distribution: real data wherever pip works.

Its licence allows research, not redistribution: keep the file out of repositories and packages.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from .errors import DownloadError, UntrustedDownloadError

VERSION = "1.2.1"
RATINGS_FILE = "ml-100k.inter"
RATINGS_MD5 = "a8a8c3f165aedc53f63b5dc0a0463b14"
MEMBER = f"recbole-{VERSION}/recbole/dataset_example/ml-100k/{RATINGS_FILE}"
PIP_TIMEOUT_SECONDS = 300


def fetch_with_pip(stage: Path, unreachable: DownloadError) -> str:
    """Leave the ratings at stage/complete; `unreachable` is why this second way is tried."""
    archive = stage / f"recbole-{VERSION}.tar.gz"
    # pip asks the package for its metadata. With the build tools at hand that needs no download;
    # without them, pip fetches them into a temporary environment.
    if not (_pip_download(stage, ["--no-build-isolation"]) or _pip_download(stage, [])):
        raise DownloadError(f"{unreachable} The way through pip failed too.") from unreachable
    complete = stage / "complete"
    complete.mkdir()
    _take_out(archive, complete / RATINGS_FILE)
    return RATINGS_FILE


def _pip_download(stage: Path, extra: list[str]) -> bool:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", *extra, "--dest", str(stage), f"recbole=={VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PIP_TIMEOUT_SECONDS)
    except (subprocess.SubprocessError, OSError):
        return False
    return True


def _take_out(archive: Path, target: Path) -> None:
    try:
        with tarfile.open(archive) as packed:
            member = packed.extractfile(MEMBER)
            if member is None:
                raise KeyError(MEMBER)
            with member, target.open("wb") as file:
                shutil.copyfileobj(member, file)
    except (OSError, KeyError, tarfile.TarError) as error:
        raise DownloadError(f"{archive.name} does not hold {RATINGS_FILE}.") from error
    actual = hashlib.md5(target.read_bytes(), usedforsecurity=False).hexdigest()
    if actual != RATINGS_MD5:
        raise UntrustedDownloadError(
            f"{RATINGS_FILE} has MD5 {actual}, but {RATINGS_MD5} is known. The download was discarded. Fetch it again."
        )
