"""What devices send, and what cohorts add up, as the database keeps it: under a key of its cohort.

The end of the cohort overwrites the key: to overwrite all that was sent would write as much again, twice.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr_harness.server.coordinator.database import StorageError

KEY_BYTES = 32
NONCE_BYTES = 12


def sealed(cipher: AESGCM, body: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, body, None)


def unsealed(cipher: AESGCM, body: bytes) -> bytes:
    try:
        return cipher.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], None)
    except (InvalidTag, ValueError) as error:
        raise StorageError("what devices sent is damaged: restore the database") from error


def cipher_of(connection: Any, round_id: bytes) -> AESGCM:
    row = connection.execute("SELECT key FROM body_keys WHERE round_id = ?", (round_id,)).fetchone()
    if row is None:
        raise StorageError("the key of a round is missing: restore the database")
    return AESGCM(row[0])


def packed_sums(sums: Mapping[str, npt.NDArray[np.int64]]) -> bytes:
    """As the database keeps them."""
    file = io.BytesIO()
    np.savez(file, **dict(sums))  # type: ignore[arg-type]
    return file.getvalue()


def unpacked_sums(packed: bytes) -> dict[str, npt.NDArray[np.int64]]:
    with np.load(io.BytesIO(packed)) as kept:
        return dict(kept)
