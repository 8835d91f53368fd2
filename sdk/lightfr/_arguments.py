"""Checks of what an app passes in: the wrong kind of value is a fault of the call, and never an untyped error.

Messages name the argument and leave its value out, which may be the user's.
"""

from __future__ import annotations

from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr.errors import InvalidInputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from typing import TypeVar

    from _typeshed import ReadableBuffer

    from lightfr.keys import KeyProvider

    T = TypeVar("T")


def whole(what: str, value: int) -> int:
    """Return a whole number of any type, numpy's among them, as an int."""
    try:
        return index(value)
    except TypeError:
        raise InvalidInputError(f"{what} must be a whole number, not {type(value).__name__}") from None


def listed(what: str, values: Iterable[T]) -> list[T]:
    """Return what can be gone through."""
    try:
        return list(values)
    except TypeError:
        raise InvalidInputError(f"{what} must be a list, not {type(values).__name__}") from None


def indices(what: str, values: Iterable[int]) -> list[int]:
    """Return item indices, whole numbers of any type, as ints."""
    try:
        return list(map(index, values))
    except TypeError:
        raise InvalidInputError(f"{what} must be item indices, which are whole numbers") from None


def copied(what: str, value: ReadableBuffer) -> bytes:
    """Return a copy of bytes. Of a number, bytes() would make so many zeros."""
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise InvalidInputError(f"{what} must be bytes, not {type(value).__name__}") from None


def key_provider(value: KeyProvider) -> KeyProvider:
    """Return what keeps a key; a path alone says where, but not how."""
    if isinstance(value, type) or not all(callable(getattr(value, name, None)) for name in ("load", "save", "destroy")):
        raise InvalidInputError(f"key must be a key provider such as FileKey(path), not {type(value).__name__}")
    return value


def path(what: str, value: str | os.PathLike[str]) -> Path:
    """Return a path that the system can take; absolute, since the app may change its working directory later."""
    try:
        found = Path(value)
    except TypeError:
        raise InvalidInputError(f"{what} must be a path, not {type(value).__name__}") from None
    if "\0" in str(found):
        raise InvalidInputError(f"{what} has a NUL character, which no path may have")
    return found.absolute()


def file(what: str, value: str | os.PathLike[str]) -> Path:
    """Return the path of a file, which has a name."""
    found = path(what, value)
    if not Path(value).name:
        raise InvalidInputError(f"{what} must be that of a file, not the folder {found}")
    return found
