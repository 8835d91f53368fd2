"""Every command and option of both programs, and values for each that no command may take.

Commands and options are read from the programs themselves, so that new ones are walked too. A command is called with
one hostile value and a guard, which makes it refuse in any case: nothing that the walk starts ever begins to work.
"""

import argparse
import contextlib
import inspect
import io
import typing
from typing import Any, NamedTuple

import typer.main

from lightfr import cli
from lightfr_harness.cli import app

# Made by `make_traps`: a file where a folder is wanted, a folder where a file is wanted, and bytes that are nothing.
FILE, FOLDER, GARBAGE = "a-file", "a-folder", "garbage"
MISSING, NAMELESS = "missing", "no-such-name"
ADDRESS = "https://localhost:1"
# What makes a line whole, and the command refuse when everything else is right: arguments first, then options.
GUARDS = {
    "serve": [["state"], ["--credentials", MISSING]],
    "compare": [[MISSING, MISSING], []],
    "report": [[MISSING], []],
    "conformance": [[ADDRESS], ["--enrollment", ADDRESS, "--kit", MISSING]],
    "conformance-kit": [[FOLDER], ["--privacy", "secagg", "--vectors", MISSING]],
    "rollback": [[MISSING], ["--to", "1"]],
    "ca init": [[FILE], ["--host", "no host"]],
    "ca serve": [[MISSING], []],
    "ca token": [[MISSING], ["--server", ADDRESS, "--enrollment", ADDRESS]],
    "ca revoke": [[MISSING, "0" * 32], []],
    "ca list": [[MISSING], []],
    "ca server": [[MISSING], ["--host", "localhost", "--out", "other"]],
    "catalogue update": [[MISSING, MISSING], []],
    "data fetch": [[NAMELESS], []],
    "data show": [[MISSING], []],
    "data cut": [[MISSING], ["--first", "1", "--to", "cut.inter"]],
    "audit views": [[MISSING, MISSING], []],
}
# The other commands take ratings that are not there, or cannot write their report.
WITH_DATA = {"train", "sweep", "bench accuracy", "audit privacy", "paper accuracy", "paper figures", "paper all"}
NO_DATA, NO_REPORT = [[], ["--data", MISSING]], [[], ["--report", FILE]]
# What a value may be that nothing is known of: the command ends in a sentence, whatever it makes of it.
TEXTS = ["", "\udcff", "missing/none", FILE, FOLDER, GARBAGE, "x" * 5000, "-1", "[red]", "https://[::1"]


class Parameter(NamedTuple):
    """An option or argument of a command of `lightfr-harness`, as its function declares it."""

    command: str
    name: str
    place: int | None  # among the arguments; None for an option
    kind: type
    info: Any

    @property
    def is_choice(self):
        return "|" in (self.info.metavar or "")


class Input(NamedTuple):
    """A line to try, and what its refusal must name; empty where the value may pass until the guard."""

    words: list[str]
    named: str


PROGRAM = typer.main.get_command(app)


def commands(group=PROGRAM, path=()):
    """Yield the name and the command of every leaf of `lightfr-harness`."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def parameters():
    """Yield everything that can be given to a command; --help and --version are nobody's."""
    for command_name, command in commands():
        hints = typing.get_type_hints(inspect.unwrap(command.callback), include_extras=True)
        places = iter(range(9))
        for each in (each for each in command.params if each.name in hints):
            kind, info = typing.get_args(hints[each.name])[:2]
            is_option = each.opts[0].startswith("-")
            place = None if is_option else next(places)
            yield Parameter(command_name, each.opts[0], place, _plain(kind), info)


def _plain(kind):
    """Take `int` out of `list[int] | None`."""
    while inner := [each for each in typing.get_args(kind) if each is not type(None)]:
        kind = inner[0]
    return kind


def harness_inputs():
    """Yield every line to try with `lightfr-harness`, with the parameter that it tries."""
    for parameter in parameters():
        for value in _values(parameter):
            yield parameter, _line(parameter, value)


def _values(parameter):
    if parameter.kind is bool:
        return ["maybe"]
    if parameter.kind in (int, float):
        return _numbers(parameter)
    if parameter.is_choice:
        return [NAMELESS, "\udcff"]
    if parameter.name == "--synthetic":
        huge = "x".join(str(10**n) for n in (9, 9, 12))
        return [NAMELESS, "10x10x10", "1x2", "-1x-1x-1", huge, "x".join(["9" * 5000] * 3)]
    if parameter.info.callback is not None:
        wrong_kind = FOLDER if parameter.info.metavar == "FILE" else FILE
        return [wrong_kind, f"{FILE}/below", "/proc/none/of/this", "x" * 5000]
    return TEXTS


def _numbers(parameter):
    """Return numbers just outside the range, and what is no number."""
    outside = [parameter.info.min - 1, parameter.info.max + 1]
    more = ["7", "9", "-8", "0"] if parameter.name == "--bits" else []
    odd = ["0.5", "1e3"] if parameter.kind is int else []
    return [*map(str, outside), *more, *odd, "nan", "inf", "-inf", "x", "", "9" * 5000]


def _line(parameter, value):
    command = parameter.command
    arguments, options = GUARDS.get(command) or (NO_DATA if command in WITH_DATA else NO_REPORT)
    if parameter.place is not None:
        tried = [*arguments[: parameter.place], value, *arguments[parameter.place + 1 :]]
        # Behind "--", for a value may begin with a dash.
        return Input([*command.split(), *options, "--", *tried], "")
    pairs = zip(options[::2], options[1::2], strict=True)
    guard = [word for option, given in pairs if option != parameter.name for word in (option, given)]
    is_checked = parameter.kind in (int, float) or parameter.info.callback is not None
    # The hostile value comes first: options are checked in the order of the line.
    words = [*command.split(), f"{parameter.name}={value}", *guard, *arguments]
    return Input(words, parameter.name if is_checked else "")


def sdk_inputs():
    """Yield every line to try with `lightfr`; the folder has no identity, so that no command can work."""
    (commands_of,) = (each for each in cli._parser()._actions if isinstance(each, argparse._SubParsersAction))
    for name, parser in commands_of.choices.items():
        actions = [each for each in parser._actions if each.dest != "help"]
        needed = [each for each in actions if each.required or not each.option_strings]
        for tried in actions:
            for value in TEXTS if tried.type is None else [*TEXTS, "nan", "inf", "0.5", "9" * 5000, "0", "10000000"]:
                if tried.nargs != 0:
                    words = [word for each in needed if each is not tried for word in _sdk_words(each, "1")]
                    # A rating's range is the app's: the store that is not there would know it.
                    named = tried.option_strings[-1] if tried.type is cli._whole else ""
                    yield Input(["--folder", MISSING, name, *_sdk_words(tried, value), *words], named)
    yield from (Input(["--folder", value, name], "") for value in TEXTS for name in ("status", "sync", "export"))


def _sdk_words(action, value):
    if not action.option_strings:
        return [value]
    flag = action.option_strings[-1]
    return [f"{flag}={value}" if flag.startswith("--") else f"{flag}{value}"]


def call(main):
    """Call a program in this process; its exit code and what it printed. Anything but an exit passes through."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            code = main()
        except SystemExit as left:
            code = left.code
    return code, printed.getvalue()


def call_harness(words):
    return call(lambda: PROGRAM.main(args=list(words), prog_name="lightfr-harness"))


def make_traps(folder):
    """Write the files that hostile values name."""
    (folder / FILE).write_text("a file where a folder is wanted")
    (folder / FOLDER / "full").mkdir(parents=True)
    (folder / GARBAGE).write_bytes(bytes(range(256)) * 8)
