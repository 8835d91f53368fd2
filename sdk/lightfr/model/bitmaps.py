"""Which items are open, and which have left: bitmaps over the items, as docs/artifacts.md has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightfr._artifacts import open_artifact
from lightfr.errors import ArtifactFileError
from lightfr.model.inflating import Inflater

if TYPE_CHECKING:
    import os


def read_bitmap(path: str | os.PathLike[str], n_items: int) -> bytes:
    """Return one bit for each item: item i is bit (i mod 8) of byte (i div 8).

    Raises ArtifactFileError for a file that cannot be read, is corrupt, or is not a bitmap over so many items.
    """
    with open_artifact(path, "bitmap file") as file:
        stream = Inflater(file, _refused)
        bitmap = stream.read((n_items + 7) // 8)
        stream.require_end()
    if n_items % 8 and bitmap[-1] >> n_items % 8:
        raise _refused(f"a bit behind its {n_items} items is set")
    return bitmap


def _refused(reason: str) -> ArtifactFileError:
    return ArtifactFileError(f"bitmap file is corrupt: {reason}")
