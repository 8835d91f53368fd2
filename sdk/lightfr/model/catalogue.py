"""The app's item ids and item indices, each found from the other in the files of the catalogue.

docs/artifacts.md describes the format. Opening checks headers and sizes; an entry is checked when a look-up meets it,
so that ten million ids cost nothing until they are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import ExitStack, closing
from itertools import accumulate
from typing import TYPE_CHECKING

from lightfr.errors import ArtifactFileError, ItemIdError, ItemIndexError, LightFRError
from lightfr.model.catalogue_part import MAX_ID_BYTES, Part, keep_pages, open_part

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self


def require_item_id(item_id: str | int) -> str | int:
    """Return the id if it is a string of 1 to 255 UTF-8 bytes or an int of 64 bits, signed; else raise ItemIdError.

    Exactly these types: a subclass, bool among them, would not come back from the store as what it was.
    """
    if type(item_id) is int and -(2**63) <= item_id < 2**63:
        return item_id
    if type(item_id) is str and 1 <= len(_utf8(item_id)) <= MAX_ID_BYTES:
        return item_id
    raise ItemIdError


def _utf8(item_id: str) -> bytes:
    """The bytes of an id; none where a lone surrogate has no encoding."""
    try:
        return item_id.encode()
    except UnicodeEncodeError:
        # Not passed on: the encoder's error carries the id.
        return b""


class Catalogue:
    """The ids of all parts of a catalogue, by item index and by id. Ids show in no repr and no error."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Take open parts, at least one; they are closed with the catalogue. `open` is the usual way."""
        self._parts = parts
        self._is_open = True
        # The item index with which each part begins, and the number of items.
        self._firsts = list(accumulate((part.n_items for part in parts), initial=0))
        if len({part.is_text for part in parts}) > 1:
            raise ArtifactFileError("one catalogue file has integers, another has strings")

    @classmethod
    def open(cls, paths: Sequence[str | os.PathLike[str]], n_items: int | None = None) -> Catalogue:
        """Open the parts of a catalogue in their order, at least one.

        Raises ArtifactFileError unless headers and sizes are right, and the parts have n_items together, if given.
        """
        pages = keep_pages()
        with ExitStack() as opened:
            catalogue = cls([opened.enter_context(closing(open_part(path, pages))) for path in paths])
            if n_items not in (None, catalogue.n_items):
                raise ArtifactFileError(f"the catalogue has {catalogue.n_items} items, expected {n_items}")
            opened.pop_all()
        return catalogue

    @property
    def n_items(self) -> int:
        """Number of ids."""
        return self._firsts[-1]

    @property
    def kind(self) -> str:
        """What the ids are: "int" or "str"."""
        return "str" if self._parts[0].is_text else "int"

    def __len__(self) -> int:
        return self.n_items

    def index_of(self, item_id: str | int) -> int | None:
        """Find the index of an item; None when the catalogue lacks the id or has ids of the other kind."""
        require_item_id(item_id)
        self._require_whole()
        if isinstance(item_id, str) != self._parts[0].is_text:
            return None
        key = item_id.encode() if isinstance(item_id, str) else item_id
        for first, part in zip(self._firsts, self._parts, strict=False):
            number = part.number_of(key)
            if number is not None:
                return first + number
        return None

    def id_of(self, item_index: int) -> str | int:
        """Give the id of an item."""
        self._require_whole()
        if not 0 <= item_index < self.n_items:
            raise ItemIndexError(self.n_items)
        place = bisect_right(self._firsts, item_index) - 1
        key: int | bytes = self._parts[place].key_of(item_index - self._firsts[place])
        return key if isinstance(key, int) else _decode(key)

    def check(self) -> None:
        """Go through the directories of the files, as one does once with files that were just downloaded."""
        self._require_whole()
        for part in self._parts:
            part.check()

    def _require_whole(self) -> None:
        """Raise an error when the catalogue is closed or a file has become shorter."""
        if not self._is_open:
            raise LightFRError("this catalogue is closed")
        for part in self._parts:
            part.require_whole()

    def close(self) -> None:
        """Close the files. Further look-ups raise LightFRError; closing twice is fine."""
        self._is_open = False
        for part in self._parts:
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Catalogue of {self.n_items} items, ids are {self.kind}>"


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        pass
    # Raised outside the handler, whose error carries the bytes of the id.
    raise ArtifactFileError("catalogue file is corrupt: an id is not UTF-8")
