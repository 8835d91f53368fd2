"""A device's part in one training round, masked or in the clear: messages in, messages out.

Nothing here sleeps, writes or opens a socket. Whoever drives a round sends `outgoing`, asks the server for the next
step and gives it to `answer`. A driver that must survive a crash keeps `values()` durably BEFORE it sends: then it
sends the same bytes again, and no mask is ever used for two vectors.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from lightfr._secret import secret
from lightfr._wire import coordinator, encode_update, secure
from lightfr.errors import InvalidInputError, LightFRError, PrivacyError, ProtocolError, RefusedError
from lightfr.secagg import DeviceSession, Place
from lightfr.secagg.work import OWN_WORK, Work
from lightfr.views import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lightfr.membership import Member
    from lightfr.secagg import Vector
    from lightfr.training import RowUpdate

    # Called with the RoundKind and the size of the cohort.
    MakeVector = Callable[[int, int], Vector]
    RandomBytes = Callable[[int], bytes]

# Refusals that say that the round has gone on without this device.
TOO_LATE = frozenset({"ROUND_UNKNOWN", "ROUND_CLOSED", "NOT_ASSIGNED", "MODEL_MISMATCH", "UPLOAD_CONFLICT"})
# Refusals of the upload itself: sending it again cannot help.
_NEVER_TAKEN = frozenset({"UPLOAD_INVALID", "MALFORMED", "TOO_LARGE"})

# Names of the values that a driver keeps.
_PENDING_UPLOAD = "pending_upload"
_ROUND, _SESSION, _OUTGOING = "secure_round", "secure_session", "secure_outgoing"
_FROM_THE_UPLOAD_ON = (b"Upload\n", b"SignSurvivors\n", b"RevealShares\n")


@secret
class Outgoing(NamedTuple):
    """A call of CoordinatorService that is due. Sending it twice does no harm."""

    method: str
    request: bytes

    def __repr__(self) -> str:
        return f"<Outgoing {self.method}>"


class Trusted(NamedTuple):
    """Whom a device trusts in a masked round, and who it is there."""

    # Raw Ed25519 keys: the one that signs the model's manifest, and so rosters; those of the authority.
    server_key: bytes
    membership_keys: Sequence[bytes]
    member: Member
    # Unix seconds: memberships that have ended by now are refused.
    now: float


def is_too_late(error: LightFRError) -> bool:
    """Say whether the server refused because the round has gone on without this device."""
    return isinstance(error, RefusedError) and error.reason in TOO_LATE


def require_upload_size(request: bytes, limit_bytes: int) -> None:
    """Raise ProtocolError for an upload that the server would refuse for its size."""
    if len(request) > limit_bytes:
        raise ProtocolError(f"the upload has {len(request)} bytes, the server takes {limit_bytes}")


@secret
class ClearRound:
    """A round in the clear: one upload, and no answer to wait for. NOT PRIVATE, for audits."""

    values_to_clear: ClassVar[Mapping[str, None]] = {_PENDING_UPLOAD: None}

    def __init__(self, request: bytes) -> None:
        """Use begin or from_values."""
        self._request = request

    @classmethod
    def begin(
        cls, assignment: coordinator.Assignment, update: RowUpdate, random_bytes: RandomBytes = os.urandom
    ) -> ClearRound:
        """Make the upload of a device that has a place in the round."""
        upload_id = random_bytes(coordinator.UPLOAD_ID_BYTES)
        request = coordinator.encode_upload(assignment, upload_id, encode_update(update))
        require_upload_size(request, assignment.upload_limit_bytes)
        return cls(request)

    @classmethod
    def from_values(cls, get: Callable[[str], bytes | None]) -> ClearRound | None:
        """Take up the upload that was kept; None: there is none. `get` returns a kept value by its name."""
        request = get(_PENDING_UPLOAD)
        return None if request is None else cls(request)

    def values(self) -> dict[str, bytes]:
        """Return what to keep before `outgoing` is sent."""
        return {_PENDING_UPLOAD: self._request}

    @property
    def outgoing(self) -> Outgoing:
        """What to send."""
        return Outgoing("Upload", self._request)

    def is_over_after(self, error: LightFRError) -> bool:
        """Say whether the upload must be dropped. After any other error it is sent again later."""
        return isinstance(error, RefusedError) and error.reason in TOO_LATE | _NEVER_TAKEN


@secret
class RoundParticipant:
    """A device's part in a masked round, from its keys to the shares that it reveals."""

    values_to_clear: ClassVar[Mapping[str, None]] = {_ROUND: None, _SESSION: None, _OUTGOING: None}

    def __init__(
        self, facts: dict[str, str], session: DeviceSession, outgoing: bytes, random: RandomBytes, work: Work = OWN_WORK
    ) -> None:
        """Use begin or from_values."""
        self._facts, self._session, self._random, self._work = facts, session, random, work
        # The method, a line feed and the request in one piece: an upload may be larger than all else on a device, and
        # this is the one copy that a store keeps as well.
        self._outgoing = outgoing
        self.round_id, self.manifest_sha256 = session.state.round_id, session.state.manifest_sha256
        # How long the phases up to the upload may take together.
        self.deadline_seconds = float(facts["deadline_seconds"])

    @classmethod
    def begin(
        cls,
        assignment: coordinator.Assignment,
        trusted: Trusted,
        minimum_cohort: int,
        random_bytes: RandomBytes = os.urandom,
        work: Work = OWN_WORK,
    ) -> RoundParticipant:
        """Take a place: make fresh keys, of which the public ones are `outgoing`. `random_bytes` is cryptographic.

        `work` is for simulations.
        """
        if not assignment.peer_id:
            raise ProtocolError("the server broke the protocol: an assignment for a masked round has no peer_id")
        facts = {
            "deadline_seconds": str(assignment.deadline_seconds),
            "limit_bytes": str(assignment.upload_limit_bytes),
        }
        place = Place(
            assignment.round_id, assignment.peer_id, assignment.manifest_sha256, assignment.kind,
            trusted.server_key, trusted.membership_keys,
        )  # fmt: skip
        session = DeviceSession(
            place, trusted.member, now_unix_seconds=trusted.now, minimum_cohort=minimum_cohort, random=random_bytes,
            work=work,
        )  # fmt: skip
        keys = secure.encode_keys(assignment.round_id, session.advertise())
        return cls(facts, session, b"AdvertiseKeys\n" + keys, random_bytes, work)

    @classmethod
    def from_values(
        cls, get: Callable[[str], bytes | None], random_bytes: RandomBytes = os.urandom
    ) -> RoundParticipant | None:
        """Take up the round that was kept; None: there is none. `get` returns a kept value by its name."""
        facts, stored, outgoing = get(_ROUND), get(_SESSION), get(_OUTGOING)
        if facts is None or stored is None or outgoing is None:
            return None
        try:
            session = DeviceSession.from_bytes(stored, random=random_bytes)
        except InvalidInputError:
            # Another release began it, and its steps were others: that round is over.
            return None
        return cls(json.loads(facts), session, outgoing, random_bytes)

    def values(self) -> dict[str, bytes]:
        """Return what to keep before `outgoing` is sent. SECRET: for the encrypted store and nothing else."""
        facts = json.dumps(self._facts).encode()
        return {_ROUND: facts, _SESSION: self._session.to_bytes(), _OUTGOING: self._outgoing}

    @property
    def outgoing(self) -> Outgoing:
        """What to send: the keys at first, then what the last answer() made."""
        method, _, request = self._outgoing.partition(b"\n")
        return Outgoing(method.decode(), request)

    @property
    def minimum_cohort(self) -> int:
        """Among how many devices it agreed to be, when it began."""
        return self._session.state.minimum_cohort

    @property
    def has_uploaded(self) -> bool:
        """Whether its upload is made. It may have been sent, and is paid for."""
        return self._outgoing.startswith(_FROM_THE_UPLOAD_ON)

    @property
    def kind(self) -> int:
        """What the cohort adds up, a RoundKind."""
        return self._session.state.kind

    @property
    def others(self) -> int | None:
        """How many other devices the server has last said to be in the round; None before the roster."""
        state = self._session.state
        told = int.from_bytes(state.survivors or state.included, "little").bit_count() or state.cohort
        return told - 1 if told else None

    def view(self) -> View:
        """Return what the server has told so far about who takes part, with its signatures."""
        return View.of(self._session.state)

    def answer(self, step: secure.Step, make_vector: MakeVector) -> bool:
        """Do what the server asks for; say whether `outgoing` is new. After a Wait or Done there is nothing to send."""
        session, round_id = self._session, self.round_id
        match step:
            case secure.Share():
                due = "ShareKeys", secure.encode_shares(round_id, self._share(step))
            case secure.Acknowledge():
                due = "AcknowledgeShares", secure.encode_acknowledgement(round_id, session.acknowledge(step.sealed))
            case secure.Included():
                due = "SignIncluded", secure.encode_signed_included(round_id, session.sign_included(*step))
            case secure.Upload():
                # What the last step sent goes before the vector comes.
                self._outgoing = b""
                due = "Upload", self._upload(step, make_vector)
            case secure.Survivors():
                due = "SignSurvivors", secure.encode_signed_survivors(round_id, session.sign_survivors(*step))
            case secure.Reveal():
                due = "RevealShares", secure.encode_revealed(round_id, session.reveal(*step))
            case _:
                return False
        method, request = due
        self._outgoing = method.encode() + b"\n" + request
        return True

    def _share(self, step: secure.Share) -> list[tuple[int, bytes]]:
        numbers = step.degree, step.holders, step.threshold
        roster = self._work.roster(self.round_id, self.manifest_sha256, self.kind, *numbers, step.entries)
        return self._session.share(roster, step.vouchers, step.signature)

    def _upload(self, step: secure.Upload, make_vector: MakeVector) -> bytes:
        session = self._session
        # A server that asks too early gets neither the work of a vector nor an error that blames the app.
        session.require_next("mask")
        vector = make_vector(self.kind, session.cohort)
        masked = session.mask(vector, *step)
        del vector
        upload_id = self._random(coordinator.UPLOAD_ID_BYTES)
        request = secure.encode_masked(self.round_id, self.manifest_sha256, upload_id, masked)
        require_upload_size(request, int(self._facts["limit_bytes"]))
        return request

    def is_over_after(self, error: LightFRError) -> bool:
        """Say whether the device must leave. Its keys go with the kept values, and so nobody can unmask its vector."""
        return isinstance(error, (PrivacyError, ProtocolError))
