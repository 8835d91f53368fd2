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


class CodesFileError(LightFRError, OSError):
    """A file of item codes that is missing, unreadable, of the wrong size, or changed while it was open."""

    def __init__(self, reason: str, actual_bytes: int | None = None, expected_bytes: int | None = None) -> None:
        self.reason = reason
        self.actual_bytes = actual_bytes
        self.expected_bytes = expected_bytes
        super().__init__(reason)


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


class StoreError(LightFRError):
    """Root of the errors of the encrypted store and of its key providers."""


class StoreLockedError(StoreError):
    """Another process, or another Store of this one, has the folder open."""

    def __init__(self) -> None:
        super().__init__("the store is open already, in this process or another: close it there first")


class StoreWriteError(StoreError, OSError):
    """The file system refused a step. What was acknowledged before still stands; `errno` and `step` say what failed."""

    def __init__(self, step: str, error: OSError) -> None:
        self.step = step
        super().__init__(error.errno, f"the store could not {step}: {error.strerror or type(error).__name__}")


class StoreCorruptError(StoreError):
    """The store was damaged or tampered with. It has not been touched: put a backup back, or `discard` it."""


class StoreRolledBackError(StoreError):
    """The store is older than its key ring says: an old copy was put back, its end was cut off, or it was removed."""

    def __init__(self, last_sequence: int, anchor: int) -> None:
        self.last_sequence = last_sequence
        self.anchor = anchor
        super().__init__(
            f"the store ends with record {last_sequence}, but its key ring has seen record {anchor}: "
            "put the newer store back, or start anew with lightfr.store.discard(folder, keys)"
        )


class StoreKeyError(StoreError):
    """The keys are absent, of another store, unreadable, unsafe, or the passphrase is wrong."""


class StoreVersionError(StoreError):
    """A file of a format that this release does not know: upgrade lightfr."""

    def __init__(self, what: str, actual: int, newest: int) -> None:
        self.actual = actual
        self.newest = newest
        super().__init__(f"the {what} has format version {actual}, this release reads up to {newest}: upgrade lightfr")


class StoreClosedError(StoreError):
    """The store was closed, or a failed write could not be taken back: open it anew."""
