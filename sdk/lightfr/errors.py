"""Every exception of the SDK, under one root, split by what the caller does next.

Messages and attributes carry numbers (lengths, limits), never ratings, codes or item ids.
"""

from __future__ import annotations


class LightFRError(Exception):
    """Root of every error that lightfr raises on purpose."""


class InvalidInputError(LightFRError, ValueError):
    """The call is outside the function's domain: fix the call."""


class CodeLengthError(InvalidInputError):
    """A code length that is not 8 to 1024 bits in steps of 8, or not the length that was expected."""

    def __init__(self, actual_bits: int, expected_bits: int | None = None) -> None:
        self.actual_bits = actual_bits
        self.expected_bits = expected_bits
        wanted = "8 to 1024 bits in steps of 8" if expected_bits is None else f"{expected_bits} bits"
        super().__init__(f"code has {actual_bits} bits, expected {wanted}")


class BufferSizeError(InvalidInputError):
    """A buffer whose size does not fit the counts that came with it."""

    def __init__(self, what: str, actual_bytes: int, expected_bytes: int) -> None:
        self.what = what
        self.actual_bytes = actual_bytes
        self.expected_bytes = expected_bytes
        super().__init__(f"{what} has {actual_bytes} bytes, expected {expected_bytes}")


class OutOfRangeError(InvalidInputError):
    """A number outside its stated range."""

    def __init__(self, what: str, actual: float, minimum: float, maximum: float) -> None:
        self.what = what
        self.actual = actual
        self.minimum = minimum
        self.maximum = maximum
        super().__init__(f"{what} is {actual}, expected {minimum} to {maximum}")


class ItemIndexError(InvalidInputError, IndexError):
    """A row index outside the item matrix. The index itself is left out: it may tell what a user rated."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        super().__init__(f"an item index is not below the number of items, {n_items}")


class ItemIdError(InvalidInputError):
    """An item id outside the domain. The id itself is left out: it may tell what a user rated."""

    def __init__(self) -> None:
        super().__init__(
            "an item id is neither a string of 1 to 255 bytes in UTF-8 nor an integer of 64 bits, signed; "
            "give ids of one of these kinds"
        )


class ArtifactFileError(LightFRError, OSError):
    """A downloaded file that is missing, unreadable, of the wrong size, or changed while it was open."""

    def __init__(self, reason: str, actual_bytes: int | None = None, expected_bytes: int | None = None) -> None:
        self.reason = reason
        self.actual_bytes = actual_bytes
        self.expected_bytes = expected_bytes
        super().__init__(reason)


class CodesFileError(ArtifactFileError):
    """A file of item codes that cannot be used: fetch it again."""


class CatalogueFileError(ArtifactFileError):
    """A file of item ids that cannot be used, or that is corrupt inside: fetch it again."""


class KernelError(LightFRError):
    """The C kernel refused: its status number says why. Please report it."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(f"kernel status {status}: {reason}")


class KernelOverflowError(InvalidInputError, OverflowError):
    """The exact integer result might not fit 64 bits: fewer ratings, smaller weights or factors are needed."""


class UnsupportedIsaError(InvalidInputError):
    """An instruction set that is unknown or that this machine lacks."""

    def __init__(self, name: str, supported: tuple[str, ...]) -> None:
        self.name = name
        self.supported = supported
        super().__init__(f"instruction set '{name}' is not available here, choose one of: {', '.join(supported)}")


class RatingError(InvalidInputError):
    """A rating that is not a number or outside the declared scale. The rating itself is left out: it is private."""

    def __init__(self, minimum: float, maximum: float) -> None:
        self.minimum = minimum
        self.maximum = maximum
        super().__init__(f"a rating is not a number from {minimum:g} to {maximum:g}, the declared scale")


class ProtocolError(LightFRError):
    """The peer sent something that the protocol does not allow: blame the peer, not the caller."""


class DeltaError(ProtocolError):
    """A delta that is malformed or does not fit the old item codes. Discard what was written; fetch the whole file."""
