"""Bytes on the device and on the wire, by the paper's formulas; and the bound of packed codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

REAL_FACTORS = 32  # f of the real-valued methods in the paper
CODE_BITS = 64  # f of its codes
FLOAT_BYTES = 64 // 8
PAILLIER_BYTES = 1024 // 8
VIRTUAL_ITEMS = 3  # rho: virtual items per rating in FedRec
LAYERS, UNITS, EMBEDDING = 2, 8, 8  # L, h and s of MetaMF


@dataclass(frozen=True)
class Shape:
    """What the formulas depend on: items of the catalogue, ratings of the device's user, length of a code.

    `open_rows` of the items have codes of their own; 0: nobody knows, and all have.
    """

    items: int
    ratings: int
    bits: int = CODE_BITS
    open_rows: int = 0

    @property
    def rows(self) -> int:
        """Codes of the items."""
        return self.open_rows or self.items


Formula = Callable[[Shape], float]


@dataclass(frozen=True)
class Method:
    """A method's cost in bytes: kept on the device, and sent both ways in one round."""

    name: str
    storage: Formula
    communication: Formula


def _rows(row_bytes: float) -> dict[str, Formula]:
    """One row for each item and for the user; each row down, and one up for each rating."""
    return {
        "storage": lambda shape: (1 + shape.items) * row_bytes,
        "communication": lambda shape: (shape.ratings + shape.items) * row_bytes,
    }


def _fedrec_communication(shape: Shape) -> float:
    return (shape.ratings * (1 + VIRTUAL_ITEMS) + shape.items) * REAL_FACTORS * FLOAT_BYTES


def _metamf_storage(shape: Shape) -> float:
    return (shape.items + LAYERS * UNITS) * REAL_FACTORS * FLOAT_BYTES


def _metamf_communication(shape: Shape) -> float:
    m, f = shape.items, REAL_FACTORS
    return (m * f + 2 * LAYERS * UNITS + f * EMBEDDING + EMBEDDING * m) * FLOAT_BYTES


_REAL = _rows(REAL_FACTORS * FLOAT_BYTES)
FCF = Method("FCF", **_REAL)
FEDMF = Method("FedMF", **_rows(REAL_FACTORS * PAILLIER_BYTES))
FEDREC = Method("FedRec", _REAL["storage"], _fedrec_communication)
METAMF = Method("MetaMF", _metamf_storage, _metamf_communication)
PRIVREC = Method("PrivRec", **_REAL)
# As printed: one byte for each bit.
LIGHTFR = Method(
    "LightFR", lambda shape: (1 + shape.items) * shape.bits, lambda shape: (shape.ratings + shape.items) * shape.bits
)
PACKED = Method(
    "LightFR, packed",
    lambda shape: (1 + shape.items) * shape.bits / 8,
    lambda shape: (shape.ratings + shape.items) * shape.bits / 8,
)
OPEN = Method(
    "LightFR, open rows",
    lambda shape: (1 + shape.rows) * shape.bits / 8,
    lambda shape: (shape.ratings + shape.rows) * shape.bits / 8,
)
# As this software does it.
OURS = (PACKED, OPEN)
METHODS = (FCF, FEDMF, FEDREC, METAMF, PRIVREC, LIGHTFR, *OURS)

# Items, and ratings of a user on average, of the paper's data sets.
DATASETS = {
    "ml-1m": (3_952, round(1_000_209 / 6_040)),
    "filmtrust": (2_071, round(35_497 / 1_508)),
    "douban": (39_695, round(894_888 / 2_964)),
    "ciao": (105_096, round(282_619 / 7_375)),
}
