"""How the tests read v1/."""

import json
from pathlib import Path
from typing import Any

from lightfr import ItemCodes, OpenRows
from lightfr.v1 import model_pb2

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def vector(name: str) -> Any:
    """The content of a JSON file, by its name without the ending."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def by_name(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Arguments of pytest.mark.parametrize: the cases, each called by its name."""
    return {"argnames": "known", "argvalues": cases, "ids": [case["name"] for case in cases]}


class Replay:
    """A random source that gives what is written down, in order, and knows when it is used up."""

    def __init__(self, digits: str) -> None:
        self.left = bytes.fromhex(digits)

    def __call__(self, n: int) -> bytes:
        drawn, self.left = self.left[:n], self.left[n:]
        assert len(drawn) == n
        return drawn


def item_codes(codes: bytes, code_bits: int, bitmap: str = "") -> ItemCodes:
    """Codes of all items, as a device has them: with a bitmap the closed ones share the code of the first of them."""
    if not bitmap:
        return ItemCodes(codes, code_bits)
    n_items, row = 8 * len(codes) // code_bits, code_bits // 8
    open_rows = OpenRows(bytes.fromhex(bitmap), n_items)
    closed = [item for item in range(n_items) if not open_rows.is_open(item)]
    items = [*map(open_rows.item_of, range(open_rows.n_open)), closed[0]]
    return ItemCodes(b"".join(codes[item * row : (item + 1) * row] for item in items), code_bits, open_rows)


def noise_of(levels: list[int]) -> model_pb2.Noise | None:
    """The noise of a model; an empty list stands for none."""
    if not levels:
        return None
    return model_pb2.Noise(rows_thousandths=levels[0], sums_thousandths=levels[1], counts_thousandths=levels[2])
