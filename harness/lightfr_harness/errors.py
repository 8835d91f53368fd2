"""What stops a command, and how the command line says it: one sentence, not a traceback."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import typer

from lightfr.errors import LightFRError


class CannotRunError(LightFRError):
    """The command could not do its work as it was called. The exit code is 2, so that 1 can mean a bad result."""


class MissingPackageError(CannotRunError, ImportError):
    """This one command, or this one file format, needs a package that is not installed."""

    def __init__(self, package: str, purpose: str) -> None:
        self.package = package
        super().__init__(f"{purpose} needs the package {package}. Run: python -m pip install {package}")


def import_package(module: str, package: str, purpose: str) -> ModuleType:
    """Import a module of an optional package; `purpose` begins the sentence that says it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(package, purpose) from error


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Print an error to standard error and leave with exit code 1, or 2 where the command could not run.

    These are LightFRErrors, and what the system says of a path that cannot be read or written.
    """
    try:
        yield
    except LightFRError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(code=2 if isinstance(error, CannotRunError) else 1) from error
    except OSError as error:
        if error.filename is None:
            raise
        typer.echo(f"Error: cannot use {error.filename} ({error.strerror}): name another path", err=True)
        raise typer.Exit(code=2) from error
