"""A mark for classes whose instances hold secrets: keys, seeds, shares, ratings, codes, and what they are made into."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from lightfr.errors import InvalidInputError

T = TypeVar("T")


def secret(marked: type[T]) -> type[T]:
    """Mark a class. Its repr says nothing, and so do str, format and logging, which go by it; it is never pickled.

    The class writes such a repr itself. tests/sdk/test_secrets.py tries an instance of every class with this mark, and
    looks for classes that lack it, and for text that is made of secrets.
    """
    marked.__reduce_ex__ = _refuse  # type: ignore[method-assign]
    return marked


def _refuse(self: object, _: object) -> NoReturn:
    raise InvalidInputError(f"{type(self).__name__} holds secrets: it cannot be pickled or copied. Pass it on instead")
