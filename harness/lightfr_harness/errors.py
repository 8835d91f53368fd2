"""How the command line shows errors: what is expected to go wrong ends as one sentence, not as a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from lightfr.errors import LightFRError


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Print a LightFRError to standard error and leave with exit code 1."""
    try:
        yield
    except LightFRError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(code=1) from error
