"""Bring a public data set into a folder: download, check, unpack, and only then put in place.

Nothing appears under its final name before it is complete, so a killed download leaves no file
that looks usable; and what is already there is never overwritten.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
import zipfile
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from .errors import DatasetError, DownloadError, UntrustedDownloadError
from .sources import RECBOLE_FILE, Source, fetch_with_pip, find_source

TIMEOUT_SECONDS = 30
CHUNK_BYTES = 1 << 18


def fetch(name: str, folder: str | Path, *, base_url: str | None = None) -> Path:
    """Return the ratings file of a data set, downloading it into `folder/name` where needed.

    `base_url` replaces the publisher's address, for mirrors and tests. Without it, ml-100k comes
    through pip when the publisher cannot be reached.
    """
    source = find_source(name)
    home = Path(folder) / source.name
    for present in (home / source.ratings_file, home / RECBOLE_FILE):
        if present.exists():
            return present
    if home.exists():
        raise DownloadError(f"{home} exists, but the ratings file is not in it. Move it away and fetch again.")
    with _staging(Path(folder)) as stage:
        ratings_file = _bring(source, Path(stage), base_url)
        _put_in_place(Path(stage) / "complete", home)
    return home / ratings_file


def _bring(source: Source, stage: Path, base_url: str | None) -> str:
    """Leave the finished folder at stage/complete and return the name of the ratings file."""
    try:
        archive = _download(source, stage, base_url or source.base_url)
    except DownloadError as unreachable:
        if source.name != "ml-100k" or base_url is not None:
            raise
        return fetch_with_pip(stage, unreachable)
    _unpack(source, archive, stage / "complete")
    return source.ratings_file


def _staging(folder: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the target, because a rename is atomic only within one file system.
        return tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder)
    except OSError as error:
        raise DownloadError(f"Cannot write to {folder}: {error.strerror}.") from error


def _put_in_place(complete: Path, home: Path) -> None:
    try:
        os.rename(complete, home)
    except OSError as error:
        raise DownloadError(f"Cannot create {home}: {error.strerror}.") from error


def _download(source: Source, stage: Path, base_url: str) -> Path:
    url = base_url.rstrip("/") + "/" + source.archive
    target = stage / source.archive
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as reply:
            actual = _save(reply, target, source.name)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(
            f"Could not download {url}: {error}. Check the network and try again, or bring "
            f"{source.ratings_file} by hand and pass its path with --format {source.format}."
        ) from error
    if source.md5 is not None and actual != source.md5:
        raise UntrustedDownloadError(
            f"{url} has MD5 {actual}, but {source.md5} is published. The download was discarded. "
            "Fetch again; if it fails again, the source has changed or is being tampered with."
        )
    return target


def _save(reply: http.client.HTTPResponse, target: Path, name: str) -> str:
    """Stream the reply to a file and return its MD5."""
    announced = reply.headers.get("Content-Length")
    total = int(announced) if announced else None
    digest, received = hashlib.md5(usedforsecurity=False), 0
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    # On stderr, so that the path printed on stdout can be used by a script.
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    with target.open("wb") as file, bar as progress:
        task = progress.add_task(name, total=total)
        while chunk := reply.read(CHUNK_BYTES):
            file.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            progress.update(task, completed=received)
    if total is not None and received != total:
        raise OSError(f"the connection broke after {received} of {total} bytes")
    return digest.hexdigest()


def _unpack(source: Source, archive: Path, complete: Path) -> None:
    """Take out the ratings file and the read-me files, which hold the licence."""
    complete.mkdir()
    try:
        with zipfile.ZipFile(archive) as zipped:
            for entry in _safe_entries(zipped):
                name = PurePosixPath(entry.filename).name
                if name == source.ratings_file or name.lower().startswith("readme"):
                    with zipped.open(entry) as packed, (complete / name).open("wb") as file:
                        shutil.copyfileobj(packed, file)
    except zipfile.BadZipFile as error:
        raise DownloadError(f"{source.archive} is not a sound zip file. Fetch it again.") from error
    if not (complete / source.ratings_file).exists():
        raise DatasetError(f"{source.archive} has no {source.ratings_file}. The source changed.")


def _safe_entries(zipped: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """All files; refuses the archive if any path in it, wanted or not, points outside."""
    for entry in zipped.infolist():
        path = PurePosixPath(entry.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in entry.filename:
            raise UntrustedDownloadError(
                "The archive holds a path that leads outside its folder; nothing was unpacked. "
                "Do not trust this source."
            )
    return [entry for entry in zipped.infolist() if not entry.is_dir()]
