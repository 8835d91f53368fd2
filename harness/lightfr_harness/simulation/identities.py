"""Identities of simulated devices: certificates without invitations, for whoever holds the authority."""

from __future__ import annotations

from pathlib import Path

from lightfr.device import new_key_and_request, pem
from lightfr_harness.server.authority import Authority


def make_identity(authority: Authority, path: Path) -> str:
    """Write the key and the certificate of a new device to a PEM file that only its owner can read; return its id."""
    private_key, request = new_key_and_request()
    device_id, certificate = authority.issue(request)
    path.touch(mode=0o600)
    path.write_bytes(private_key + pem("CERTIFICATE", certificate))
    return device_id


def identity_of(authority: Authority, path: Path) -> Path:
    """Make an identity for a device whose id does not matter; return its file."""
    make_identity(authority, path)
    return path
