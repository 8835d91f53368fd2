"""What can go wrong with data, split by what the caller does next.

Messages name the file, the line and the reason, never the rating or the ids on the line: run logs
are kept longer than data sets.
"""

from __future__ import annotations

from pathlib import Path

from lightfr.errors import LightFRError


class DatasetError(LightFRError):
    """Root of every error this room raises."""


class DatasetWarning(UserWarning):
    """Data were usable, but a documented rule had to leave something out."""


class InvalidRatingsError(DatasetError, ValueError):
    """Ratings that cannot be trained on: fix the data or the declared range."""


class MissingFileError(DatasetError, FileNotFoundError):
    """No file where one was named: correct the path, or fetch the data first."""

    def __init__(self, path: Path, advice: str) -> None:
        self.path = path
        super().__init__(f"{path}: there is no such file. {advice}")


class MalformedDataError(DatasetError, ValueError):
    """A file that does not hold what its format promises: fix the file or name another format."""

    def __init__(self, path: Path, line: int | None, reason: str, advice: str) -> None:
        self.path, self.line, self.reason, self.advice = path, line, reason, advice
        place = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{place}: {reason}. {advice}")


class UnknownFormatError(DatasetError, ValueError):
    """No reader has that name."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        super().__init__(f"There is no data format {name!r}. Choose one of: {', '.join(known)}.")


class InvalidOptionError(DatasetError, ValueError):
    """An option that the chosen reader, split or generator cannot honour."""


class MissingDependencyError(DatasetError, ImportError):
    """An optional package is needed for this file only."""

    def __init__(self, package: str, purpose: str) -> None:
        self.package = package
        super().__init__(f"{purpose} needs {package}. Run: python -m pip install {package}")


class UnknownDatasetError(DatasetError, ValueError):
    """Nothing can be fetched under that name."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        super().__init__(f"There is no data set {name!r} to fetch. Known: {', '.join(known)}.")


class DownloadError(DatasetError, OSError):
    """The network, the server or the disk failed: try again, or bring the file by hand."""


class ChecksumError(DatasetError, ValueError):
    """The download is not the published file; it was thrown away."""

    def __init__(self, source: str, expected: str, actual: str) -> None:
        self.source, self.expected, self.actual = source, expected, actual
        super().__init__(
            f"{source} has MD5 {actual}, but {expected} is published. The download was discarded. "
            "Fetch again; if it fails again, the source has changed or is being tampered with."
        )


class UnsafeArchiveError(DatasetError, ValueError):
    """An archive that would write outside its folder: do not unpack it."""
