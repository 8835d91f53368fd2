"""The page that a person plays with: one file, which holds the model and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from lightfr_harness.console import write_text
from lightfr_harness.data.titles import Title


def write_page(to: Path, models: Path, trust: Path, titles: Mapping[str, Title], made: str, learned: str) -> None:
    """Write the page from a device's folder of models and the key that it trusts.

    `made` and `learned` are sentences: where the model comes from, and how well it does.
    """
    # A device names its files by their digests, and the signed manifest `current`.
    artifacts = {f"artifacts/{file.name}": file for file in models.iterdir() if file.name != "current"}
    paths = {"manifest": models / "current", **artifacts}
    data = {
        "trust": trust.read_text(),
        "files": {name: base64.b64encode(path.read_bytes()).decode() for name, path in paths.items()},
        "titles": {item_id: [title.name, *title.genres] for item_id, title in titles.items()},
    }
    script, style = _part("play.js"), _part("play.css")
    page = Template(_part("play.html")).substitute(
        policy=_policy(script, style),
        style=style,
        # No text of the data can end the element that it stands in.
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        script=script,
        made=escape(made),
        learned=escape(learned),
    )
    write_text(to, page)


def _policy(script: str, style: str) -> str:
    """Nothing but this script and this style, and no connection to anywhere: the browser holds the page to it."""
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}' 'wasm-unsafe-eval'; style-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
