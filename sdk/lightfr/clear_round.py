"""A device's part of a round in the clear: one upload, kept until the server has it. NOT PRIVATE, for audits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lightfr._wire import coordinator
from lightfr.errors import ProtocolError, RefusedError

if TYPE_CHECKING:
    from lightfr._wire.channel import Channel
    from lightfr.store import Store

# Name of the value in the store.
PENDING_UPLOAD = "pending_upload"
# Refusals after which a device has no part in the round any more.
TOO_LATE = {"ROUND_UNKNOWN", "ROUND_CLOSED", "NOT_ASSIGNED", "MODEL_MISMATCH", "UPLOAD_CONFLICT"}
# Refusals of the upload itself: it is dropped too, and the error is raised, since sending it again cannot help.
_NEVER_TAKEN = {"UPLOAD_INVALID", "MALFORMED", "TOO_LARGE"}


class ClearRound:
    """An upload that is on its way."""

    # Store values that end the round.
    forgotten: dict[str, bytes | None] = {PENDING_UPLOAD: None}  # noqa: RUF012 # never changed

    def __init__(self, store: Store, channel: Channel) -> None:
        """Use begin or resume."""
        self._store = store
        self._channel = channel

    @classmethod
    def begin(
        cls, store: Store, channel: Channel, assignment: coordinator.Assignment, update: bytes, code: dict[str, bytes]
    ) -> ClearRound:
        """Keep an encoded RowUpdate, and the user code behind it, before it is sent."""
        request = coordinator.encode_upload(assignment, os.urandom(coordinator.UPLOAD_ID_BYTES), update)
        if len(request) > assignment.upload_limit_bytes:
            raise ProtocolError(f"an upload of {len(request)} bytes, the server takes {assignment.upload_limit_bytes}")
        store.update({PENDING_UPLOAD: request, **code})
        return cls(store, channel)

    @classmethod
    def resume(cls, store: Store, channel: Channel) -> ClearRound | None:
        """Take up the upload that was begun before, if there is one."""
        return None if store.get(PENDING_UPLOAD) is None else cls(store, channel)

    def run(self) -> bool:
        """Send; say whether the server has it, durably. Sending it twice does no harm."""
        try:
            coordinator.upload(self._channel, self._store.get(PENDING_UPLOAD) or b"")
        except RefusedError as refused:
            if refused.reason in TOO_LATE | _NEVER_TAKEN:
                self._store.update(self.forgotten)
            if refused.reason in TOO_LATE:
                return False
            raise
        return True
