"""The cases by id, in the order in which they run, and the list of those that are known to fail."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightfr_harness.errors import CannotRunError

if TYPE_CHECKING:
    from lightfr_harness.conformance.world import World

# The groups of cases that restart the server, and that let it change its catalogue.
RESTART, CATALOGUE = "restart", "catalogue"
KITS = ("clear", "exact", "paper", "codes", "secagg", "crowd", "gate", "noise", "evaluation")
# Those in the clear: one for each kind of upload.
CLEAR_KITS = ("clear", "exact", "paper", "codes")
# Cases that say nothing run on these.
USUAL_KITS = ("clear", "secagg", "crowd")
# Those whose model is the usual one but for the kind of upload.
COMMON_KITS = (*CLEAR_KITS, "secagg", "crowd")
_ID = re.compile(r"[a-z]+(\.[a-z0-9]+(-[a-z0-9]+)*)+")
_PLACE = re.compile(r"(docs/[a-z-]+\.md|proto/lightfr/v1/[a-z]+\.proto)#[\w-]+")

CaseFunction = Callable[["World"], None]


@dataclass(frozen=True)
class Case:
    """One thing that a server must do, or not do."""

    id: str
    why: str
    place: str
    kits: tuple[str, ...]
    run: CaseFunction

    @property
    def group(self) -> str:
        return self.id.split(".")[0]


class Registry:
    """Cases as they were declared."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}

    def case(self, id: str, why: str, place: str, *, kits: Iterable[str] = USUAL_KITS) -> Callable[[Any], Any]:
        """Declare a case: a dotted id that stays, why it matters in one sentence, and where the document says so."""

        def declare(run: CaseFunction) -> CaseFunction:
            made = Case(id, why, place, tuple(kits), run)
            _require_well_formed(made)
            if id in self._cases:
                raise ValueError(f"two cases are called {id}")
            self._cases[id] = made
            return run

        return declare

    def cases(self, kit: str | None = None, only: Sequence[str] = (), without: Sequence[str] = ()) -> list[Case]:
        """Those of a kit, by patterns if there are any: `upload.*`; without the groups that cannot be tried."""
        found = [one for one in self._cases.values() if kit is None or kit in one.kits]
        found = [one for one in found if one.group not in without]
        if only:
            found = [one for one in found if any(fnmatch.fnmatchcase(one.id, pattern) for pattern in only)]
        if not found:
            raise CannotRunError(f"no case of this kit is called {' or '.join(only)}: --list shows them")
        return found


def _require_well_formed(made: Case) -> None:
    if not _ID.fullmatch(made.id) or not _PLACE.fullmatch(made.place) or not set(made.kits) <= set(KITS):
        raise ValueError(f"case {made.id}: an id, a place or a kit is not as it should be")
    if not made.why.endswith(".") or not made.kits:
        raise ValueError(f"case {made.id}: why must be a sentence, and there must be a kit")


registry = Registry()
case = registry.case


def read_known_failing(path: Path, known: Iterable[str]) -> set[str]:
    """Ids, one per line; `#` begins a comment. Raises CannotRunError for ids that no case of any kit has."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRunError(f"the list '{path.name}' cannot be read ({type(error).__name__})") from error
    ids = {line.split("#")[0].strip() for line in lines} - {""}
    unknown = sorted(ids - set(known))
    if unknown:
        raise CannotRunError(f"the list '{path.name}' names unknown cases: {', '.join(unknown)}")
    return ids
