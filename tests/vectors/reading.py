"""How the tests read v1/."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "v1"


def vector(name: str) -> Any:
    """The content of a JSON file, by its name without the ending."""
    return json.loads((FOLDER / f"{name}.json").read_text())
