"""How the tests read v1/."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "v1"


def vector(name: str) -> Any:
    """The content of a JSON file, by its name without the ending."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def by_name(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Arguments of pytest.mark.parametrize: the cases, each called by its name."""
    return {"argnames": "known", "argvalues": cases, "ids": [case["name"] for case in cases]}
