"""Identities of simulated devices: certificates without invitations, for whoever holds the authority."""

from __future__ import annotations

from pathlib import Path

from lightfr.identities import identity_pem, new_identity_keys
from lightfr_harness.server.authority import Authority


def make_identity(authority: Authority, path: Path) -> str:
    """Write the identity of a new device to a PEM file that only its owner can read; return its id."""
    keys = new_identity_keys()
    device_id, issued = authority.issue(keys.signing_request, keys.member_key.public)
    path.touch(mode=0o600)
    path.write_bytes(identity_pem(keys, issued))
    return device_id


def identity_of(authority: Authority, path: Path) -> Path:
    """Make an identity for a device whose id does not matter; return its file."""
    make_identity(authority, path)
    return path
