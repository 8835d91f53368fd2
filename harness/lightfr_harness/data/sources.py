"""Where public data sets live, and what their files are known to be.

Checksums are MD5 because that is what the publisher prints. They are absent where the publisher
changes the file from time to time (ml-latest-small) or none is known (filmtrust, ciao): such a
download is checked for completeness and for its ratings file, not for its exact content. Douban
has no public address that could be relied on; bring the file by hand.

RecBole's source distribution has ML-100K too: real data wherever pip works. Its licence allows
research, not redistribution: keep the file out of repositories and packages.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from .errors import DownloadError, InvalidOptionError, UntrustedDownloadError

MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
LIBREC = "https://guoguibing.github.io/librec/datasets/"
CIAO = "https://www.cse.msu.edu/~tangjili/datasetcode/"

RECBOLE_VERSION = "1.2.1"
RECBOLE_FILE = "ml-100k.inter"
RECBOLE_MD5 = "a8a8c3f165aedc53f63b5dc0a0463b14"
RECBOLE_MEMBER = f"recbole-{RECBOLE_VERSION}/recbole/dataset_example/ml-100k/{RECBOLE_FILE}"
PIP_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Source:
    """One archive, the ratings file inside it and the format that reads that file."""

    name: str
    base_url: str
    archive: str
    ratings_file: str
    format: str
    md5: str | None


SOURCES = {
    source.name: source
    for source in (
        Source("ml-100k", MOVIELENS, "ml-100k.zip", "u.data", "ml-100k",
               "0e33842e24a9c977be4e0107933c0723"),
        Source("ml-1m", MOVIELENS, "ml-1m.zip", "ratings.dat", "ml-1m",
               "c4d9eecfca2ab87c1945afe126590906"),
        Source("ml-25m", MOVIELENS, "ml-25m.zip", "ratings.csv", "ml-csv",
               "6b51fb2759a8657d3bfcbfc42b592ada"),
        Source("ml-latest-small", MOVIELENS, "ml-latest-small.zip", "ratings.csv", "ml-csv", None),
        Source("filmtrust", LIBREC, "filmtrust.zip", "ratings.txt", "filmtrust", None),
        Source("ciao", CIAO, "ciao_with_rating_timestamp.zip", "rating_with_timestamp.mat", "ciao",
               None),
    )
}  # fmt: skip


def find_source(name: str) -> Source:
    if name not in SOURCES:
        raise InvalidOptionError(f"Unknown data set {name!r}. Choose one of: {', '.join(SOURCES)}.")
    return SOURCES[name]


def fetch_with_pip(stage: Path, unreachable: DownloadError) -> str:
    """Leave the ratings at stage/complete; `unreachable` is why this second way is tried."""
    archive = stage / f"recbole-{RECBOLE_VERSION}.tar.gz"
    # pip asks the package for its metadata. With the build tools at hand that needs no download;
    # without them, pip fetches them into a temporary environment.
    if not (_pip_download(stage, ["--no-build-isolation"]) or _pip_download(stage, [])):
        raise DownloadError(f"{unreachable} The way through pip failed too.") from unreachable
    complete = stage / "complete"
    complete.mkdir()
    _take_out(archive, complete / RECBOLE_FILE)
    return RECBOLE_FILE


def _pip_download(stage: Path, extra: list[str]) -> bool:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", *extra, "--dest", str(stage), f"recbole=={RECBOLE_VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PIP_TIMEOUT_SECONDS)
    except (subprocess.SubprocessError, OSError):
        return False
    return True


def _take_out(archive: Path, target: Path) -> None:
    try:
        with tarfile.open(archive) as packed:
            member = packed.extractfile(RECBOLE_MEMBER)
            if member is None:
                raise KeyError(RECBOLE_MEMBER)
            with member, target.open("wb") as file:
                shutil.copyfileobj(member, file)
    except (OSError, KeyError, tarfile.TarError) as error:
        raise DownloadError(f"{archive.name} does not hold {RECBOLE_FILE}.") from error
    actual = hashlib.md5(target.read_bytes(), usedforsecurity=False).hexdigest()
    if actual != RECBOLE_MD5:
        raise UntrustedDownloadError(
            f"{RECBOLE_FILE} has MD5 {actual}, but {RECBOLE_MD5} is known. The download was discarded. Fetch it again."
        )
