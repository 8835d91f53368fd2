"""Opening what was downloaded, with typed errors that name the file but not its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from lightfr.errors import ArtifactFileError


def open_artifact(path: str | os.PathLike[str], what: str, buffering: int = -1) -> BinaryIO:
    """Open a file for reading; raises ArtifactFileError if that cannot be done."""
    try:
        return open(path, "rb", buffering)
    except OSError as error:
        raise ArtifactFileError(f"cannot open {what} '{Path(path).name}': {error.strerror}") from error
