"""Which ratings are measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lightfr_harness.data import Ratings, generate, load
from lightfr_harness.errors import CannotRunError


@dataclass(frozen=True)
class Source:
    """A file of ratings and its format; without a file, a synthetic set."""

    path: Path | None
    format: str
    synthetic: str
    data_options: Mapping[str, str | float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.path) if self.path else f"synthetic {self.synthetic}"

    @property
    def stated(self) -> str:
        """The format, which says which of the paper's data sets this may be; a synthetic set is none of them."""
        return self.format if self.path else ""

    def load(self) -> Ratings:
        loaded = generate(self.synthetic) if self.path is None else load(self.path, self.format, **self.data_options)
        if not isinstance(loaded, Ratings):
            raise CannotRunError(
                "a prepared split has its own test: name a file of ratings, which the protocols can split"
            )
        return loaded


def sources(
    files: Sequence[Path], formats: Sequence[str], synthetic: str, data_options: Mapping[str, str | float] | None = None
) -> list[Source]:
    """One for each file, with its format at the same place; one format serves all files. No file: the synthetic set.

    `data_options` say how to read each of the files.
    """
    if not files:
        return [Source(None, "", synthetic)]
    if len(formats) not in (1, len(files)):
        raise CannotRunError(
            f"there are {len(files)} --data and {len(formats)} --format: give one format for all, or one for each"
        )
    how = data_options or {}
    return [Source(file, formats[place % len(formats)], synthetic, how) for place, file in enumerate(files)]
