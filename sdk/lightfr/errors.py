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


class UnknownItemError(InvalidInputError, LookupError):
    """An item id that the catalogue does not have. The id itself is left out: it may tell what a user rated."""

    def __init__(self) -> None:
        super().__init__("the catalogue of this model version does not have this item id")


class ArtifactFileError(LightFRError, OSError):
    """A downloaded file that is missing, unreadable, corrupt, or changed while it was open: fetch it again."""

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


class RatingError(InvalidInputError):
    """A rating that is not a number or outside the declared scale. The rating itself is left out: it is private."""

    def __init__(self, minimum: float, maximum: float) -> None:
        self.minimum = minimum
        self.maximum = maximum
        super().__init__(f"a rating is not a number from {minimum:g} to {maximum:g}, the declared scale")


class ProtocolError(LightFRError):
    """The peer sent something that the protocol does not allow: blame the peer, not the caller."""


class RefusedError(ProtocolError):
    """The server refused a request. `code` is Connect's, `reason` the finer one of error.proto, without its prefix."""

    def __init__(self, code: str, reason: str, message: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"the server refused ({code}, {reason}): {message}")


class UpdateRequiredError(RefusedError):
    """This release and the server have no wire version in common: the app must be updated."""


class IdentityRefusedError(LightFRError):
    """The server does not take this device's certificate: it is expired, revoked or unknown.

    Forget the device, which leaves the data of its users, and enrol again.
    """


class ServerNotTrustedError(LightFRError):
    """The server's certificate is not one that the trust of this client admits. Nothing was sent."""


class ServerUnavailableError(LightFRError, ConnectionError):
    """The server cannot be reached or has too much to do, after several tries. Try again later; nothing is lost."""


class ManifestError(ProtocolError):
    """A manifest that is not signed by a trusted key, older than one already seen, or that contradicts itself."""


class ArtifactError(ProtocolError):
    """A download that is malformed or not what the signed manifest names. It was thrown away."""


class NotSyncedError(LightFRError):
    """There are no item codes on this device yet: call sync() first."""

    def __init__(self) -> None:
        super().__init__("there are no item codes on this device yet: call sync() first, or run `lightfr sync`")


class NotPrivateError(LightFRError):
    """The round would reveal ratings to the server, and the app has not said that it may."""


class EnrollmentError(LightFRError):
    """An invitation that cannot be used."""


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


class PrivacyError(LightFRError):
    """Secure aggregation cannot go on without breaking a promise to the user: leave the round, nothing was revealed."""


class CohortTooSmallError(PrivacyError):
    """Fewer devices than this one asks for, so that a sum would say too much about each of them."""

    def __init__(self, what: str, actual: int, minimum: int) -> None:
        self.what = what
        self.actual = actual
        self.minimum = minimum
        super().__init__(f"{what} has {actual} devices, this one asks for at least {minimum}: leave the round")


class PeerKeyError(PrivacyError):
    """A public key of another device that no secret can be agreed with: a point of low order."""
