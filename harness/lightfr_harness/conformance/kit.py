"""The kit: all that a server under test is started with, and what the suite knows of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lightfr.interactions import LEVELS
from lightfr.membership import MEMBERSHIP_CONTEXT, MemberKey
from lightfr_harness.conformance.cohort import LARGEST_COMPLETE
from lightfr_harness.conformance.vectors import Vectors
from lightfr_harness.errors import CannotRunError
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.certificates import (
    Issuer,
    common_name,
    device_builder,
    make_device_certificate,
    make_issuer,
    new_device_id,
    new_key,
)
from lightfr_harness.server.authority.keys import read_ed25519_key, read_issuer

GATE = 10
# Where six devices count.
LOW_GATE = 3
MAX_ROWS = 64
# The catalogue, and what a server that can change it changes it to, one after the other.
FIRST_ITEMS, NEXT_ITEMS = "items.tsv", ("items-2.tsv", "items-3.tsv")
# Who leaves with the second list and joins it, who leaves with the third, and who is back in it. Some are open.
LEFT, JOINED = ("item-03", "item-40", "item-75"), ("item-80", "item-81", "item-82")
LEFT_LATER, RETURNED = ("item-10", "item-81"), "item-40"
# Devices beyond the places, and tokens for whatever a case spends.
SPARE_DEVICES = 2
SPARE_TOKENS = 160
TOKEN_SECONDS = 365 * 86_400
# One whose time is over; the last in the list.
EXPIRED_AGO = timedelta(days=2)


@dataclass(frozen=True)
class KitSettings:
    """How the server must be set: settings.json."""

    privacy: str
    code_bits: int
    item_count: int
    gate: int
    max_rows: int
    places: int
    goal: int
    minimum: int
    # Of a round from its first place on; with secure aggregation of each phase.
    deadline_seconds: int
    integer_ids: bool = False
    # Whether nobody gives the server counts, so that the first rounds are gate refreshes.
    gate_refreshes: bool = False
    # Privacy secagg+dp: the fields of RoundModel.noise.
    noise: dict[str, int] | None = None
    # catalogue or paper; ternary, exact or codes; the balance of RoundModel.
    objective: str = "catalogue"
    upload_kind: str = "ternary"
    balance: int = 0
    # Training rounds between two in which the cohort evaluates; 0: it never does.
    evaluate_every: int = 0

    @property
    def kind(self) -> str:
        """The name by which cases say where they run: one of KITS in registry.py."""
        if self.evaluate_every:
            return "evaluation"
        if self.gate_refreshes or self.noise:
            return "gate" if self.gate_refreshes else "noise"
        for kind, how in UPLOADS.items():
            if how == (self.objective, self.upload_kind):
                return kind
        return "crowd" if self.privacy == "secagg" and self.places > LARGEST_COMPLETE else self.privacy


# places, goal, minimum, deadline_seconds. The crowd is large enough for a graph that is not complete.
SIZES = {"clear": (6, 4, 2, 3), "secagg": (6, 6, 3, 3), "crowd": (130, 130, 100, 20), "gate": (6, 6, 3, 3)}
SIZES["noise"] = SIZES["evaluation"] = SIZES["secagg"]
# Kits in the clear for the other kinds of upload: objective and kind. They are also the names of `serve --uploads`.
UPLOADS = {"exact": ("catalogue", "exact"), "paper": ("paper", "exact"), "codes": ("paper", "codes")}
SIZES |= dict.fromkeys(UPLOADS, SIZES["clear"])
# Of the paper's objective: as much as the gradients of a few devices. For codes of 32 bits this is a lambda of 0.001.
BALANCE = 10_322
# The least that six devices with codes of 32 bits do not refuse, rounded up.
NOISE = {"rows_thousandths": 46_000, "sums_thousandths": 9000, "counts_thousandths": 2000}


class Kit:
    """A kit that was made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.authority = folder, folder / "authority"
        try:
            self.settings = KitSettings(**json.loads((folder / "settings.json").read_text()))
            self.tokens: list[str] = [one["token"] for one in json.loads((folder / "tokens.json").read_text())]
            self.codes = (folder / "codes.bin").read_bytes()
            self.items = read_items(folder / FIRST_ITEMS)
            self.next_items = {folder / name: read_items(folder / name) for name in NEXT_ITEMS}
        except (OSError, ValueError, TypeError, KeyError) as error:
            advice = "make one: lightfr-harness conformance-kit FOLDER --privacy clear"
            raise CannotRunError(f"{folder} is no conformance kit ({type(error).__name__}): {advice}") from error
        self.item_ids, self.counts = list(self.items), list(self.items.values())
        # Without counts no item is open at first.
        self.open_rows = [count >= self.settings.gate for count in self.counts]

    @property
    def trust(self) -> Path:
        """What devices trust: the authority's certificate, and the public halves of two keys that sign."""
        return self.authority / "trust.pem"

    def membership(self, member_key: bytes, end_unix_seconds: int) -> bytes:
        """What the authority says of a key; for cases that need one that the server would not get."""
        statement = member_key + end_unix_seconds.to_bytes(8, "little")
        signature = read_ed25519_key(self.authority / "membership.key").sign(MEMBERSHIP_CONTEXT + statement)
        return statement + signature

    def tester(self, name: str) -> Path:
        """An identity for bad devices: a PEM file with key and certificate."""
        return self.folder / "tester" / f"{name}.pem"

    def serve_options(self) -> dict[str, Any]:
        """What `lightfr-harness serve` is started with, by name, besides the authority and the catalogue."""
        settings = self.settings
        return {
            "codes": self.folder / "codes.bin",
            "bits": settings.code_bits,
            "gate": settings.gate,
            "goal": settings.goal,
            "over_selection": settings.places / settings.goal,
            "minimum": settings.minimum,
            "deadline_seconds": settings.deadline_seconds,
            "privacy": settings.privacy,
            "gate_every": 1_000_000_000,
            "evaluate_every": settings.evaluate_every,
            **self._uploads(),
            **{f"noise_{name.split('_')[0]}": level / 1000 for name, level in (settings.noise or {}).items()},
        }

    def _uploads(self) -> dict[str, Any]:
        """The options that say what devices upload in the clear."""
        settings = self.settings
        if settings.kind not in UPLOADS:
            return {}
        return {"uploads": settings.kind, "lambda": settings.balance / (4 * settings.code_bits**2 * LEVELS)}


def read_items(path: Path) -> dict[str, int]:
    """Counts by id, most popular first; 0 where there are none."""
    rows = [(line + "\t0").split("\t") for line in path.read_text().splitlines()]
    return {row[0]: int(row[1]) for row in rows}


def make_kit(folder: Path, kind: str, host: str, vectors: Vectors) -> Kit:
    """Write a new kit of a kind of KITS in registry.py."""
    try:
        folder.mkdir(parents=True)
        (folder / "tester").mkdir()
    except OSError as error:
        reason = f"cannot make the kit {folder} ({error.strerror})"
        raise CannotRunError(f"{reason}: name a folder that is not there") from error
    places, goal, minimum, deadline = SIZES[kind]
    privacies = {"clear": "clear", "noise": "secagg+dp"} | dict.fromkeys(UPLOADS, "clear")
    privacy, is_gate = privacies.get(kind, "secagg"), kind == "gate"
    objective, upload_kind = UPLOADS.get(kind, ("catalogue", "exact" if kind == "noise" else "ternary"))
    settings = KitSettings(
        privacy=privacy,
        code_bits=vectors.code_bits,
        item_count=vectors.item_count,
        gate=LOW_GATE if is_gate else GATE,
        max_rows=MAX_ROWS if upload_kind == "ternary" else 0,
        places=places,
        goal=goal,
        minimum=minimum,
        deadline_seconds=deadline,
        gate_refreshes=is_gate,
        noise=NOISE if kind == "noise" else None,
        objective=objective,
        upload_kind=upload_kind,
        balance=BALANCE if objective == "paper" else 0,
        evaluate_every=1 if kind == "evaluation" else 0,
    )
    (folder / "settings.json").write_text(json.dumps(asdict(settings), indent=2) + "\n")
    # Closed items share a code; those of the vectors are the last.
    row_bytes = vectors.code_bits // 8
    (folder / "codes.bin").write_bytes(vectors.codes[-row_bytes:] * vectors.item_count if is_gate else vectors.codes)
    _write_items(folder, vectors.open_rows, has_counts=not is_gate)
    tokens = _make_authority(folder / "authority", host, places + SPARE_DEVICES + SPARE_TOKENS)
    (folder / "tokens.json").write_text(json.dumps(tokens, indent=1) + "\n")
    _write_testers(folder)
    return Kit(folder)


def _write_items(folder: Path, is_open: list[bool], *, has_counts: bool) -> None:
    """The catalogue, most popular first, and what becomes of it twice. What joins or comes back is below the gate."""
    counts = {f"item-{item:02d}": 100 - item if it_is else GATE - 1 for item, it_is in enumerate(is_open)}
    second = {name: count for name, count in counts.items() if name not in LEFT} | dict.fromkeys(JOINED, GATE - 1)
    # Open items the other way round, so that nearly all of them have another place. None opens, and none closes.
    third = {name: 200 - count if count >= GATE else count for name, count in second.items() if name not in LEFT_LATER}
    third[RETURNED] = GATE - 1
    for name, items in zip((FIRST_ITEMS, *NEXT_ITEMS), (counts, second, third), strict=True):
        ordered = sorted(items, key=items.__getitem__, reverse=True)
        lines = [f"{item}\t{items[item]}\n" if has_counts else f"{item}\n" for item in ordered]
        (folder / name).write_text("".join(lines))


def _make_authority(folder: Path, host: str, count: int) -> list[dict[str, object]]:
    """A new authority and its invitations."""
    hosts = [host, "127.0.0.1"] if host == "localhost" else [host]
    Authority.init(folder, hosts).close()
    long_ago = datetime.now(UTC) - EXPIRED_AGO
    expired = Authority(folder, now=lambda: long_ago)
    old = _invite(expired, host, 1, 1, long_ago.timestamp())
    expired.close()
    authority = Authority.open(folder)
    tokens = _invite(authority, host, count, TOKEN_SECONDS, time.time())
    authority.close()
    return tokens + old


def _invite(authority: Authority, host: str, count: int, seconds: int, now: float) -> list[dict[str, object]]:
    address = f"https://{host}:1"
    expires = int(now) + seconds
    made = (authority.invite(address, address, seconds)["token"] for _ in range(count))
    return [{"token": token, "expires_unix_seconds": expires} for token in made]


def _write_testers(folder: Path) -> None:
    """Identities that a server must refuse, each for one reason, and a good one."""
    issuer, now, kit = read_issuer(folder / "authority"), datetime.now(UTC), folder / "tester"
    stranger, double = make_issuer(now), make_issuer(now, issuer.certificate.subject)
    _write_device(kit / "expired.pem", issuer, now - timedelta(days=400))
    _write_device(kit / "not-yet-valid.pem", issuer, now + timedelta(days=2))
    _write_device(kit / "other-authority.pem", stranger, now)
    # The name of the authority without its key.
    _write_device(kit / "false-authority.pem", double, now)
    key, device_id = new_key(), new_device_id()
    itself = Issuer(make_issuer(now, common_name(device_id)).certificate, key)
    write_identity(kit / "self-signed.pem", key, [make_device_certificate(itself, key.public_key(), device_id, now)])
    _write_unnamed(kit / "unnamed.pem", issuer, now)
    _write_issued(kit, folder / "authority")
    server = folder / "authority" / "coordinator"
    (kit / "server.pem").write_bytes((server / "server.key").read_bytes() + (server / "server.pem").read_bytes())


def _write_device(path: Path, issuer: Issuer, now: datetime) -> None:
    key = new_key()
    write_identity(path, key, [make_device_certificate(issuer, key.public_key(), new_device_id(), now)])


def _write_unnamed(path: Path, issuer: Issuer, now: datetime) -> None:
    """Good in every way, but its common name is no device's id."""
    key = new_key()
    builder = device_builder(issuer, common_name("somebody"), key.public_key(), now)
    certificate = builder.serial_number(x509.random_serial_number()).sign(issuer.key, SHA256())
    write_identity(path, key, [certificate])


def _write_issued(kit: Path, folder: Path) -> None:
    """A good device, for the handshake alone; and a revoked one that has two certificates."""
    keys, authority = [new_key() for _ in range(3)], Authority.open(folder)
    requests = [(make_signing_request(key), MemberKey.new().public) for key in keys]
    try:
        _, good = authority.issue(*requests[0])
        device_id, first = authority.issue(*requests[1])
        renewed = authority.renew(device_id, *requests[2])
        authority.revoke(device_id)
    finally:
        authority.close()
    for name, key, issued in zip(("good", "revoked", "revoked-renewed"), keys, (good, first, renewed), strict=True):
        chain = [x509.load_der_x509_certificate(der) for der in issued.certificates]
        write_identity(kit / f"{name}.pem", key, chain)
    # The good device, which is no authority, names another one.
    device, key = Issuer(x509.load_der_x509_certificate(good.certificates[0]), keys[0]), new_key()
    named = make_device_certificate(device, key.public_key(), new_device_id(), datetime.now(UTC))
    write_identity(kit / "named-by-a-device.pem", key, [named, device.certificate])


def make_signing_request(key: Any) -> bytes:
    """PKCS #10, DER, signed by the key that it names."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(common_name("device"))
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


def write_identity(path: Path, key: ec.EllipticCurvePrivateKey, chain: list[x509.Certificate]) -> None:
    """A PEM file as TLS loads it: key, certificate, those above it."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain))
