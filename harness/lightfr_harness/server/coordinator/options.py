"""What a coordinator is started with: the catalogue, and settings that a folder keeps for life."""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr.cohorts import DEFAULT_MINIMUM_COHORT
from lightfr.errors import CodeLengthError, InvalidInputError, ItemIdError
from lightfr.model.catalogue import require_item_id
from lightfr.training.model import LEAST_NOISE, MOST_NOISE
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import (
    PRIVACY_MODES,
    TERNARY_ROWS,
    AggregationRule,
    CatalogueRule,
    PaperRule,
    balance_of,
)

# Whatever is longer than this many characters is no item id, and its file no catalogue.
_LONGEST_LINE = 70_000
_LARGEST_COUNT = 2**62
# What devices upload in the clear, by the names of --uploads. `paper` and `codes` are the paper's Agg_grad, Agg_para.
UPLOADS = {
    "ternary": model_pb2.UPLOAD_KIND_TERNARY,
    "exact": model_pb2.UPLOAD_KIND_EXACT,
    "paper": model_pb2.UPLOAD_KIND_EXACT,
    "codes": model_pb2.UPLOAD_KIND_CODES,
}
_PAPER = ("paper", "codes")
# Balances are below this.
_BALANCES = 2**40


class SettingsError(InvalidInputError):
    """Options, or files that they name, with which a coordinator cannot start. Messages name lines, never items."""


@dataclass(frozen=True)
class ItemList:
    """The items, most popular first, and how many devices rate each, or how often it was played or sold."""

    ids: Sequence[str] | Sequence[int]
    device_counts: list[int] | None
    sha256: str
    # The item codes of version 1, packed. None: they are drawn.
    first_codes: bytes | None = None

    @classmethod
    def read(cls, path: Path, *, integer_ids: bool) -> ItemList:
        """Read `item_id` or `item_id<TAB>count` per line."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SettingsError(f"cannot read the catalogue '{path.name}': {error.strerror}") from error
        return cls.parse(content, integer_ids=integer_ids)

    @classmethod
    def parse(cls, content: bytes, *, integer_ids: bool) -> ItemList:
        """Take the content of such a file."""
        try:
            lines = content.decode().splitlines()
        except UnicodeDecodeError as error:
            raise SettingsError("the catalogue is not UTF-8 text") from error
        rows = [line.split("\t") for line in lines]
        counts = _counts(rows)
        ids = [_integer(row[0], number) for number, row in enumerate(rows, 1)] if integer_ids else [r[0] for r in rows]
        _require_ids(ids)
        return cls(ids, counts, hashlib.sha256(content).hexdigest())

    @classmethod
    def unnamed(cls, n_items: int, *, has_counts: bool) -> ItemList:
        """Stand for so many items whose ids and counts a folder has."""
        return cls(range(n_items), [0] * n_items if has_counts else None, "")


def read_codes(path: Path) -> bytes:
    """Read first codes, one row for each item, in the layout of docs/protocol.md."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read the codes '{path.name}': {error.strerror}") from error


def _counts(rows: list[list[str]]) -> list[int] | None:
    """All lines have a count, or none has."""
    if not rows:
        raise SettingsError("the catalogue is empty: write one item id per line, most popular first")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width or width > 2 or not row[0] or len(row[0]) > _LONGEST_LINE:
            raise SettingsError(f"line {number} of the catalogue: expected `item_id` or `item_id<TAB>count`")
    if width == 1:
        return None
    counts = [_integer(row[1], number) for number, row in enumerate(rows, 1)]
    for number, count in enumerate(counts, 1):
        if not 0 <= count <= _LARGEST_COUNT:
            raise SettingsError(f"line {number} of the catalogue: expected a count from 0 to {_LARGEST_COUNT}")
    return counts


def _require_ids(ids: Sequence[str | int]) -> None:
    """No error names an item."""
    lines: dict[str | int, int] = {}
    for number, item_id in enumerate(ids, 1):
        try:
            require_item_id(item_id)
        except ItemIdError:
            raise SettingsError(
                f"line {number} of the catalogue: an id has 1 to 255 bytes, or is an integer of 64 bits"
            ) from None
        if lines.setdefault(item_id, number) != number:
            raise SettingsError(f"line {number} of the catalogue repeats the id of line {lines[item_id]}")


def _integer(text: str, number: int) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise SettingsError(f"line {number} of the catalogue: expected an integer") from error


@dataclass(frozen=True)
class Settings:
    """What a folder is begun with and keeps: later starts must say the same."""

    bits: int
    gate: int
    seed: int
    integer_ids: bool
    privacy: str = "secagg"
    # Standard deviations of the noise that each device adds, in thousandths; in mode secagg+dp alone.
    noise_rows_thousandths: int = 0
    noise_sums_thousandths: int = 0
    noise_counts_thousandths: int = 0
    # Of the first codes, when they came from a file.
    codes_sha256: str = ""
    # Of UPLOADS; masked ones are all of one kind.
    uploads: str = "ternary"
    # The paper's lambda.
    regularization: float = 0.0
    # The catalogue's counts are of plays or sales: they rank, and open no row.
    public_counts: bool = False

    def __post_init__(self) -> None:
        if not 8 <= self.bits <= 1024 or self.bits % 8:
            raise CodeLengthError(self.bits)
        if self.privacy not in PRIVACY_MODES:
            raise SettingsError(f"--privacy is {self.privacy}, expected one of {', '.join(PRIVACY_MODES)}")
        noise = (self.noise_rows_thousandths, self.noise_sums_thousandths, self.noise_counts_thousandths)
        names = "--noise-rows, --noise-sums and --noise-counts"
        if self.privacy == "secagg+dp" and not all(LEAST_NOISE <= value <= MOST_NOISE for value in noise):
            raise SettingsError(f"--privacy secagg+dp needs {names} of 0.5 to 1000 each")
        if self.privacy != "secagg+dp" and any(noise):
            raise SettingsError(f"{names} need --privacy secagg+dp")
        self._require_uploads()

    def _require_uploads(self) -> None:
        if self.uploads not in UPLOADS:
            raise SettingsError(f"--uploads is {self.uploads}, expected one of {', '.join(UPLOADS)}")
        if self.uploads != "ternary" and self.is_secure:
            raise SettingsError(f"--uploads {self.uploads} needs --privacy clear")
        if self.regularization and self.uploads not in _PAPER:
            raise SettingsError(f"--lambda needs --uploads {' or '.join(_PAPER)}")
        if not math.isfinite(self.regularization) or not 0 <= balance_of(self.regularization, self.bits) < _BALANCES:
            raise SettingsError(f"--lambda is {self.regularization}, expected a small number from 0 on")

    @property
    def is_secure(self) -> bool:
        """Whether uploads are masked."""
        return self.privacy != "clear"

    @property
    def usual_goal(self) -> int:
        return 2 * DEFAULT_MINIMUM_COHORT if self.is_secure else 64

    def usual_minimum(self, goal: int) -> int:
        """As many as devices insist on, unless the goal is less."""
        return min(DEFAULT_MINIMUM_COHORT, goal) if self.is_secure else 1

    def require_private(self, host: str, *, allow_clear_uploads: bool) -> None:
        """Uploads in mode CLEAR reveal what users like: they leave this machine only if somebody says so."""
        if not self.is_secure and not is_loopback(host) and not allow_clear_uploads:
            raise SettingsError(
                f"in mode clear this server can recover every rating, and other machines can reach {host}."
                " Use a loopback host, or pass --allow-clear-uploads"
            )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def require_same(self, kept: dict[str, Any]) -> None:
        """Raise SettingsError, naming what differs, unless the folder was begun with the same."""
        different = [name for name, value in self.as_dict().items() if kept.get(name) != value]
        if different:
            names = {name: "--" + name.replace("_", "-") for name in different}
            names |= {"codes_sha256": "the digest of --codes", "regularization": "--lambda"}
            says = "; ".join(f"{names[name]} was {kept.get(name)}, now {getattr(self, name)}" for name in different)
            raise SettingsError(f"the folder was begun with other options: {says}. Repeat them, or name a new folder")

    def noise(self) -> model_pb2.Noise | None:
        """The noise that each device adds; None without any."""
        if self.privacy != "secagg+dp":
            return None
        return model_pb2.Noise(
            rows_thousandths=self.noise_rows_thousandths,
            sums_thousandths=self.noise_sums_thousandths,
            counts_thousandths=self.noise_counts_thousandths,
        )


def make_rule(settings: Settings, items: ItemList) -> AggregationRule:
    """The rule of aggregation at version 1, before any upload."""
    # Counts of plays or sales say nothing about how many devices rate an item.
    given = None if settings.public_counts else items.device_counts
    counts: npt.NDArray[np.int64] = np.array(given or np.zeros(len(items.ids)), np.int64)
    # Devices that mask what they send can count who rates what; others cannot without telling.
    has_gate = given is not None or (settings.is_secure and settings.gate > 1)
    noise = settings.noise()
    upload_kind = UPLOADS[settings.uploads] if noise is None else model_pb2.UPLOAD_KIND_EXACT
    options: dict[str, Any] = {
        "upload_kind": upload_kind,
        "gate": settings.gate if has_gate else 0,
        "max_rows": TERNARY_ROWS if upload_kind == model_pb2.UPLOAD_KIND_TERNARY else 0,
        "seed": settings.seed,
        "privacy_mode": PRIVACY_MODES[settings.privacy],
        "noise": noise,
    }
    rule: AggregationRule
    if settings.uploads in _PAPER:
        rule = PaperRule(counts, settings.bits, regularization=settings.regularization, **options)
    else:
        rule = CatalogueRule(counts, settings.bits, **options)
    if items.first_codes is not None:
        n, actual, expected = len(items.ids), len(items.first_codes), len(items.ids) * settings.bits // 8
        if actual != expected:
            raise SettingsError(
                f"the file of --codes has {actual} bytes, {n} items of {settings.bits} bits have {expected}"
            )
        rule.set_codes(np.frombuffer(items.first_codes, np.uint8).reshape(rule.n_items, -1))
    return rule


# Makes the rule that a coordinator aggregates by.
MakeRule = Callable[[Settings, ItemList], AggregationRule]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
