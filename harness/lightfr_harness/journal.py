"""Finished runs as lines of a file, so that a long command that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightfr_harness.errors import CannotRunError


class Journal:
    """Results by key. Each is one line, written when it is there; a last line that a kill cut short is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: dict[str, Any] = {}
        if path.exists():
            try:
                whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
                self._results = {result["key"]: result for result in map(json.loads, whole)}
            except (ValueError, TypeError, LookupError, RecursionError) as error:
                raise CannotRunError(f"{path} does not hold finished runs: name another folder") from error
            # Cut, not written anew: a full disk must not lose the whole lines.
            os.truncate(path, sum(map(len, whole)))

    def result(self, key: str, run: Callable[[], Any]) -> Any:
        """What an earlier command found for this key, or what `run` gives now: a mapping that JSON can hold."""
        if key not in self._results:
            line = json.dumps({"key": key, **run()})
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(line + "\n")
            # As a later command will read it: a tuple has become a list.
            self._results[key] = json.loads(line)
        return self._results[key]
