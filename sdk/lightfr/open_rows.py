"""Which items are open, and where their rows are.

An item is open when enough devices rate it. Open items have rows of their own in the item codes, in the order of their
indices; all closed items share the row behind those. docs/artifacts.md has the bitmap.
"""

from __future__ import annotations

from array import array

from lightfr import _arguments, _kernel
from lightfr.errors import ItemIndexError


class OpenRows:
    """The open items of a catalogue, as a bitmap with a small directory: item i is bit (i mod 8) of byte (i div 8)."""

    __slots__ = ("_pointer", "bitmap")

    def __init__(self, bitmap: bytes, n_items: int) -> None:
        """Raise InvalidInputError unless the bitmap has ceil(n_items / 8) bytes and no bit behind the last item."""
        self.bitmap = _arguments.copied("the bitmap of open rows", bitmap)
        self._pointer = _kernel.OpenPointer(self.bitmap, _arguments.whole("n_items", n_items))

    @property
    def n_items(self) -> int:
        """Number of items of the catalogue."""
        return self._pointer.n_items

    @property
    def n_open(self) -> int:
        """Number of open items, which is also the row that the closed ones share."""
        return self._pointer.n_open

    def is_open(self, item_index: int) -> bool:
        """Say whether an item has a row of its own."""
        if not 0 <= _arguments.whole("item_index", item_index) < self.n_items:
            raise ItemIndexError(self.n_items)
        return bool(self.bitmap[item_index >> 3] >> (item_index & 7) & 1)

    def row_of(self, item_index: int) -> int:
        """Return the row of an item: the shared one if it is closed."""
        if not 0 <= _arguments.whole("item_index", item_index) < self.n_items:
            raise ItemIndexError(self.n_items)
        return self.rows_of(array("I", [item_index]))[0]

    def rows_of(self, item_indices: array[int]) -> array[int]:
        """Return the rows of several items, both as uint32."""
        return self._pointer.rows_of(item_indices, len(item_indices))

    def item_of(self, row: int) -> int:
        """Return the item of a row of its own."""
        if not 0 <= _arguments.whole("row", row) < self.n_open:
            raise ItemIndexError(self.n_open)
        return self._pointer.item_of(row)

    def kernel_pointer(self) -> _kernel.OpenPointer:
        """Give the kernel its view."""
        return self._pointer

    def __repr__(self) -> str:
        return f"<OpenRows: {self.n_open} of {self.n_items} items>"
