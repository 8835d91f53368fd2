"""What all records have in common: the file that they are written to and read back from.

A record is one JSON object. `format` is the number of its layout and `kind` says which class reads it; the other fields
are those of the class. A field whose default is None is left out where it has no value.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from lightfr_harness.console import write_text
from lightfr_harness.errors import CannotRunError

FORMAT = 1


class RecordError(CannotRunError):
    """A file that is not a record which this version reads."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What all records have."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        KINDS[cls.kind] = cls


KINDS: dict[str, type[Record]] = {}
AnyRecord = TypeVar("AnyRecord", bound=Record)


def to_dict(record: Record) -> dict[str, Any]:
    """The record as JSON has it."""
    optional = {field.name for field in fields(record) if field.default is None}
    values = {name: value for name, value in asdict(record).items() if value is not None or name not in optional}
    return {"format": FORMAT, "kind": record.kind, **values}


def from_dict(record_class: type[AnyRecord], values: Mapping[str, Any]) -> AnyRecord:
    """A record from its fields. Fields that this version does not know are left out."""
    known = [field for field in fields(record_class) if field.init]
    missing = [each.name for each in known if each.default is MISSING and each.name not in values]
    if missing:
        raise RecordError(f"the {record_class.kind} record has no field {', '.join(missing)}")
    return record_class(**{field.name: values[field.name] for field in known if field.name in values})


def write(record: Record, where: str | Path) -> None:
    """Write a record to a file, or, where the name is "-", print it on one line."""
    if str(where) == "-":
        sys.stdout.write(json.dumps(to_dict(record)) + "\n")
        return
    path = Path(where)
    try:
        write_text(path, json.dumps(to_dict(record), indent=1) + "\n")
    except OSError as error:
        raise RecordError(f"cannot write the record {path} ({error.strerror}): name another file") from error


def _finite(text: str) -> float:
    """A number of JSON. NaN is none: it is neither better nor worse than any other."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def read(path: Path) -> Record:
    """Read a record of any kind, or say what is wrong with the file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise RecordError(f"cannot read {path} ({error.strerror}): name a record that --json wrote") from error
    # Lists within lists, deeper than Python can call itself, are no record either.
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON ({error}): name a record that --json wrote") from error
    if not isinstance(values, dict) or "format" not in values or "kind" not in values:
        raise RecordError(f"{path} is not a record: it has no format and kind. Name a file that --json wrote")
    if values["format"] != FORMAT:
        raise RecordError(
            f"{path} has record format {values['format']!r}; this version reads {FORMAT}. Write the record again"
        )
    record_class = KINDS.get(values["kind"]) if isinstance(values["kind"], str) else None
    if record_class is None:
        raise RecordError(f"{path} is a record of kind {values['kind']!r}; known kinds: {', '.join(KINDS)}")
    try:
        return from_dict(record_class, values)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
