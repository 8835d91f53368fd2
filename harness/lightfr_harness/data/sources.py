"""Where public data sets live, and what their files are known to be.

Checksums are MD5 because that is what the publisher prints. They are absent where the publisher
changes the file from time to time (ml-latest-small) or none is known (filmtrust, ciao): such a
download is checked for completeness and for its ratings file, not for its exact content. Douban
has no public address that could be relied on; bring the file by hand.

RecBole's wheel has ML-100K too: real data wherever pip works. pip checks the wheel's SHA-256, and a
wheel is only unpacked: none of its code runs. The data's licence allows research, not redistribution:
keep the file out of repositories and packages.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .errors import DownloadError, InvalidOptionError, UntrustedDownloadError

MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
LIBREC = "https://guoguibing.github.io/librec/datasets/"
CIAO = "https://www.cse.msu.edu/~tangjili/datasetcode/"

RECBOLE_VERSION = "1.2.1"
RECBOLE_WHEEL = f"recbole-{RECBOLE_VERSION}-py3-none-any.whl"
RECBOLE_WHEEL_SHA256 = "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407"
RECBOLE_FILE = "ml-100k.inter"
RECBOLE_SHA256 = "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff"
RECBOLE_MEMBER = f"recbole/dataset_example/ml-100k/{RECBOLE_FILE}"
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
    if not _pip_download(stage):
        raise DownloadError(f"{unreachable} The way through pip failed too.") from unreachable
    complete = stage / "complete"
    complete.mkdir()
    _take_out(stage / RECBOLE_WHEEL, complete / RECBOLE_FILE)
    return RECBOLE_FILE


def _pip_download(stage: Path) -> bool:
    pinned = stage / "recbole.txt"
    pinned.write_text(f"recbole=={RECBOLE_VERSION} --hash=sha256:{RECBOLE_WHEEL_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes", "--requirement", str(pinned), "--dest", str(stage)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PIP_TIMEOUT_SECONDS)
    except (subprocess.SubprocessError, OSError):
        return False
    return True


def _take_out(archive: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as packed, packed.open(RECBOLE_MEMBER) as member, target.open("wb") as file:
            shutil.copyfileobj(member, file)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DownloadError(f"{archive.name} does not hold {RECBOLE_FILE}.") from error
    actual = hashlib.sha256(target.read_bytes()).hexdigest()
    if actual != RECBOLE_SHA256:
        raise UntrustedDownloadError(
            f"{RECBOLE_FILE} has SHA-256 {actual}, but {RECBOLE_SHA256} is known. "
            "The download was discarded. Fetch it again."
        )
