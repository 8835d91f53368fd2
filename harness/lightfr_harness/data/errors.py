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


class DataFileError(DatasetError, ValueError):
    """A file that is missing or does not hold what its format promises: fix it, or name another path or format."""

    def __init__(self, path: Path, line: int | None, reason: str, advice: str) -> None:
        self.path, self.line, self.reason, self.advice = path, line, reason, advice
        place = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{place}: {reason}. {advice}")


class InvalidOptionError(DatasetError, ValueError):
    """An option that the chosen reader, split or generator cannot honour."""


class DownloadError(DatasetError, OSError):
    """The network, the server or the disk failed: try again, or bring the file by hand."""


class UntrustedDownloadError(DatasetError, ValueError):
    """The download is not what its publisher made, or would write outside its folder. It was thrown away."""
