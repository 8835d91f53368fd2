"""How a case says what it expected and what came."""

from __future__ import annotations

from typing import Any


class Unexpected(AssertionError):  # noqa: N818 - a finding about a server, not an error of ours
    """The server did something else than the document says."""

    def __init__(self, expected: str, got: str) -> None:
        self.expected, self.got = expected, got
        super().__init__(f"expected {expected}, got {got}")


def expect(condition: object, expected: str, got: object) -> None:
    """Go on if the condition holds."""
    if not condition:
        raise Unexpected(expected, str(got))


def expect_equal(what: str, got: Any, expected: Any) -> None:
    """Go on if both are the same; long bytes are shown by where they differ."""
    if got == expected:
        return
    if isinstance(got, bytes) and isinstance(expected, bytes):
        raise Unexpected(*_bytes_apart(what, got, expected))
    raise Unexpected(f"{what} = {_shown(expected)}", _shown(got))


def expect_between(what: str, got: int, lowest: int, highest: int) -> None:
    """Go on if a number is within its range, both ends included."""
    expect(lowest <= got <= highest, f"{what} from {lowest} to {highest}", got)


def _bytes_apart(what: str, got: bytes, expected: bytes) -> tuple[str, str]:
    if len(got) != len(expected):
        return f"{what} of {len(expected)} bytes", f"{len(got)} bytes"
    first = next(place for place, (one, other) in enumerate(zip(got, expected, strict=True)) if one != other)
    differing = sum(one != other for one, other in zip(got, expected, strict=True))
    part = slice(first, first + 8)
    return (
        f"{what} with {expected[part].hex(' ')} from byte {first} on",
        f"{got[part].hex(' ')} ({differing} of {len(got)} bytes differ)",
    )


def _shown(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
