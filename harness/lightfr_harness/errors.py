"""What stops a command, and how the command line says it: one sentence, not a traceback."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NoReturn

import typer

from lightfr.errors import LightFRError


class CannotRunError(LightFRError):
    """The command could not do its work as it was called."""


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
    """Print an error to standard error and leave with exit code 2: the command could not do its work.

    These are LightFRErrors, what the system says of a path or a host, and a lack of memory. Exit code 1 is for bad
    results, which are no errors. Ctrl-C gives 130.
    """
    try:
        yield
    except LightFRError as error:
        _leave(str(error), 2, error)
    except OSError as error:
        what = f"cannot use {error.filename} " if error.filename is not None else ""
        _leave(f"{what}({error.strerror or error}): name another path or host", 2, error)
    except MemoryError as error:
        _leave("there is not enough memory: ask for fewer items, users or bits", 2, error)
    except KeyboardInterrupt as error:
        _leave("interrupted", 130, error)


def _leave(sentence: str, code: int, error: BaseException) -> NoReturn:
    typer.echo(f"Error: {sentence}", err=True)
    raise typer.Exit(code) from error
