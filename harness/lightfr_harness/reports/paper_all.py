"""Every table and figure of the paper on one page: its claim, our figure, and what we make of it.

All that is said about ours comes from records. What no record has is said to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lightfr_harness.audits.sensitivity import CLAIMS, FIGURES
from lightfr_harness.paper.stated import SHAPES
from lightfr_harness.records import (
    FindingFields,
    PaperAccuracyRecord,
    PaperCostsRecord,
    PaperFiguresRecord,
    PaperRow,
)
from lightfr_harness.reports import paper_costs, paper_figures
from lightfr_harness.reports.cost import figure_1_panels
from lightfr_harness.reports.figures import figure
from lightfr_harness.reports.page import Lines, Part, Section, Text, Verdict, document, notes, table
from lightfr_harness.reports.paper import accuracy_chart, accuracy_heads, accuracy_rows

TITLE = "The paper's tables and figures, measured anew"
LIGHTFR, VARIANTS = "lightfr-grad", ("lightfr-grad", "lightfr-para", "lightfr-init", "lightfr-random")


@dataclass(frozen=True)
class Parts:
    """The records that there are."""

    accuracy: Sequence[PaperAccuracyRecord] = ()
    costs: PaperCostsRecord | None = None
    figures: PaperFiguresRecord | None = None

    @property
    def findings(self) -> list[FindingFields]:
        return [each for record in (self.costs, self.figures) if record is not None for each in record.findings]


def page(parts: Parts) -> str:
    """One self-contained HTML page."""
    judged = [each for each in parts.findings if each["verdict"] in ("confirmed", "refuted")]
    confirmed = sum(each["verdict"] == "confirmed" for each in judged)
    verdict = Verdict(
        f"{confirmed} of {len(judged)} claims about costs and figures are confirmed, {len(judged) - confirmed} refuted."
    )
    about = (
        "A refuted claim is a result about the paper, not a failure of this software. The paper's own drawings are "
        "not at hand: of its figures we have what the text says."
    )
    said = [about, *map(_about_accuracy, parts.accuracy)]
    said += [paper_costs.about(parts.costs)] if parts.costs else []
    said += [paper_figures.about(parts.figures)] if parts.figures else []
    return document(TITLE, verdict, [*map(Text, said), *(section(parts) for section in SECTIONS)])


def _about_accuracy(record: PaperAccuracyRecord) -> str:
    quick = " Few steps, and not tuned: the figures show that everything runs, and little more." if record.quick else ""
    seeds = f"{record.seeds} seed{'s' if record.seeds > 1 else ''}"
    return f"Accuracy on {_name(record)}: expectations under random tie-breaking, means of {seeds}.{quick}"


def _name(record: PaperAccuracyRecord) -> str:
    """The file without its folder."""
    return Path(record.data).name


def _section(title: str, claim: str, ours: Sequence[Part], made_of_it: str, *more: Part) -> Section:
    return Section(title, [Text(claim, "The paper:"), *ours, Text(made_of_it, "What we make of it:"), *more])


def _missing(title: str, what: str) -> Section:
    said = f"Missing: {what} has not been measured yet. The same command goes on with it."
    return Section(title, [Text(said, kind="refuted")])


def _costs_section(
    title: str, claim: str, draw: Callable[[PaperCostsRecord], Sequence[Part]], *claims: str
) -> Callable[[Parts], Section]:
    """A section about claims of the costs record whose names begin so."""

    def section(parts: Parts) -> Section:
        if parts.costs is None:
            return _missing(title, "what methods cost")
        found = paper_costs.findings_of(parts.costs, *claims)
        return _section(title, claim, draw(parts.costs), *_judged(found))

    return section


def _judged(findings: Sequence[FindingFields], before: str = "") -> tuple[str, *tuple[Lines, ...]]:
    """How many claims hold; then, claim by claim, for whom it does, and both figures where it does not."""
    lines, n_held, n_judged = [], 0, 0
    for claim in dict.fromkeys(each["claim"] for each in findings):
        same = [each for each in findings if each["claim"] == claim]
        held = [each["mode"] for each in same if each["verdict"] == "confirmed"]
        refuted = [_both_figures(each) for each in same if each["verdict"] == "refuted"]
        n_held, n_judged = n_held + len(held), n_judged + len(held) + len(refuted)
        said = [f"{verdict}: {'; '.join(who)}." for verdict, who in (("Confirmed", held), ("Refuted", refuted)) if who]
        if said:
            lines.append(Text(" ".join(said), f"{claim[0].upper()}{claim[1:]}."))
    said = [f"{each['claim']}, {each['mode']}: {each['note']}" for each in findings if each["note"]]
    more: list[Lines] = [Lines(lines), *notes(said)]
    return f"{before}{n_held} of {n_judged} claims hold.", *more


def _both_figures(each: FindingFields) -> str:
    stated, measured = (figure(each[key], each["unit"]) for key in ("predicted", "measured"))
    return f"{each['mode']} ({stated} stated, {measured} measured)"


def _table_3(parts: Parts) -> Section:
    title = "Table 3: data sets"
    if not parts.accuracy:
        return _missing(title, "a data set")
    rows, differences = [], []
    measured = {record.dataset: record for record in parts.accuracy if record.dataset}
    for name, (users, items, ratings, density) in SHAPES.items():
        rows.append((f"{name}, the paper", _shape_cells(users, items, ratings, density)))
        if name in measured and measured[name].items != items:
            differences.append(f"{name} has {measured[name].items:,} rated items, not {items:,}")
    for record in parts.accuracy:
        density = 100 * record.ratings / (record.users * record.items)
        rows.append((_name(record), _shape_cells(record.users, record.items, record.ratings, density)))
    absent = [name for name in SHAPES if name not in measured]
    said = "; ".join(differences) + ". " if differences else ""
    said += f"No file was given for {', '.join(absent)}." if absent else "All four files were counted."
    drawn = table("Counted from the files", ("", "users", "items", "ratings", "for each user", "density"), rows)
    return _section(title, "Four data sets, with these sizes.", [drawn], said)


def _shape_cells(users: int, items: int, ratings: int, density: float) -> list[str]:
    return [f"{users:,}", f"{items:,}", f"{ratings:,}", f"{ratings / users:.0f}", f"{density:.2f} %"]


def _accuracy_section(
    title: str, claim: str, chosen: Callable[[PaperRow], bool], judge: Callable[[list[PaperRow]], str]
) -> Callable[[Parts], Section]:
    """A section with a table for each data set and protocol, of some methods."""

    def section(parts: Parts) -> Section:
        if not parts.accuracy:
            return _missing(title, "accuracy")
        drawn: list[Part] = []
        said = []
        for record in parts.accuracy:
            rows = [each for each in record.rows if chosen(each)]
            for protocol in record.held_out:
                here = [each for each in rows if each["protocol"] == protocol]
                caption = f"{_name(record)}, {protocol}"
                told = table(caption, accuracy_heads(record), accuracy_rows(record, here))
                drawn += [accuracy_chart(here, caption), told]
                said.append(f"{caption}: {judge(here)}{_against_stated(here)}")
        return _section(title, claim, drawn, " ".join(said))

    return section


def _best(rows: list[PaperRow]) -> dict[str, PaperRow]:
    """The better of each method's rows, by method."""
    found: dict[str, PaperRow] = {}
    for each in sorted(rows, key=lambda each: each["hr"] or 0.0):
        if each["hr"] is not None:
            found[each["method"]] = each
    return found


def _judge_all(rows: list[PaperRow]) -> str:
    best = _best(rows)
    if not best:
        return "no method gave a figure."
    ranked = sorted(best.values(), key=lambda each: -(each["hr"] or 0.0))
    said = f"the best HR@10 is {ranked[0]['hr']:.3f} ({ranked[0]['title']})"
    if LIGHTFR in best:
        place = [each["method"] for each in ranked].index(LIGHTFR) + 1
        said += f"; LightFR as printed has {best[LIGHTFR]['hr']:.3f} and is number {place} of {len(ranked)}"
    if "popularity" in best:
        below = sum((each["hr"] or 0.0) < (best["popularity"]["hr"] or 0.0) for each in ranked)
        said += f"; {below} methods rank below the popularity list's {best['popularity']['hr']:.3f}"
    return f"{said}."


def _judge_ablation(rows: list[PaperRow]) -> str:
    best = _best(rows)
    if not all(name in best for name in VARIANTS):
        return "not every form has a figure."
    figures = [best[name]["hr"] or 0.0 for name in VARIANTS]
    order = " > ".join(best[name]["title"] for name in sorted(VARIANTS, key=lambda name: -(best[name]["hr"] or 0.0)))
    holds = all(one > other for one, other in pairwise(figures))
    return f"the order by HR@10 is {order}, {'as' if holds else 'not as'} the paper has it."


def _against_stated(rows: list[PaperRow]) -> str:
    known = [each for each in _best(rows).values() if each["stated_hr"] is not None]
    if not known:
        return " The paper states nothing for this data set."
    off = max(known, key=lambda each: abs((each["hr"] or 0.0) - (each["stated_hr"] or 0.0)))
    return f" The largest distance to the paper is {off['title']}'s: {off['hr']:.3f} beside {off['stated_hr']:.3f}."


def _figure_1(parts: Parts) -> Section:
    title = "Figure 1: codes against real values"
    if parts.figures is None:
        return _missing(title, "Figure 1")
    found = [each for each in parts.figures.findings if each["claim"].startswith("Figure 1")]
    ratios = [point["ratio"] for point in parts.figures.figure_1]
    said = _judged(found, f"Packed codes are {min(ratios):.0f} to {max(ratios):.0f} times faster. ")
    return _section(title, paper_figures.FIGURE_1_CLAIM, figure_1_panels(parts.figures.figure_1), *said)


def _sweep_section(panel: str) -> Callable[[Parts], Section]:
    title = f"{FIGURES[panel]}: accuracy against {panel}"

    def section(parts: Parts) -> Section:
        if parts.figures is None:
            return _missing(title, FIGURES[panel])
        found = [each for each in parts.figures.findings if each["claim"].startswith(FIGURES[panel])]
        return _section(title, CLAIMS[panel], paper_figures.sweep_panels(parts.figures, panel), *_judged(found))

    return section


_STATED_BEST = (
    "In its table NCF is the most accurate on every data set, and LightFR is close to the other federated ones."
)
SECTIONS = (
    _costs_section(
        "Table 1: who saves what",
        "MetaMF saves memory and traffic, PrivRec traffic, LightFR all, and FCF nothing. We take a tick to mean less "
        "than half of what FCF costs; privacy is for `audit privacy` to measure.",
        lambda record: [paper_costs.tick_table(record)],
        "Table 1",
    ),
    _table_3,
    _accuracy_section(
        "Table 4: accuracy",
        _STATED_BEST,
        lambda each: each["method"] not in VARIANTS[1:],
        _judge_all,
    ),
    _costs_section(
        "Table 5: storage and communication",
        "Storage and bytes of a round follow its formulas.",
        paper_costs.formula_table,
        "storage by",
        "bytes of a round",
        "growth",
    ),
    _accuracy_section(
        "Table 6: ablation",
        "Summing gradients is better than averaging parameters, which is better than codes cut at medians, which are "
        "better than random ones.",
        lambda each: each["method"] in VARIANTS,
        _judge_ablation,
    ),
    _figure_1,
    _costs_section(
        "Figure 3: costs on Ciao",
        "LightFR's storage is 3.1 % of FedMF's, 8.1 % of MetaMF's and 8 % of the others'; its inference is 30 times "
        "faster than FedMF's, 100 times than MetaMF's and 7 times than the others'.",
        paper_costs.figure_3,
        "storage as a share",
        paper_costs.INFERENCE,
        "FedMF",
    ),
    *(_sweep_section(panel) for panel in FIGURES),
)
