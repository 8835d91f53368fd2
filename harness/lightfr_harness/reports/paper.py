"""The paper's tables as pages: what we measured, beside what it states."""

from __future__ import annotations

from lightfr_harness.records import PaperAccuracyRecord, PaperRow
from lightfr_harness.reports.figures import in_bytes
from lightfr_harness.reports.page import Section, Text, Verdict, document, notes, table
from lightfr_harness.reports.svg import Bars, dots

# What stands in the chart, by settings; a method without constants to choose is drawn as its authors have it.
SERIES = ("authors' constants", "tuned on validation", "the paper states")
_SERIES_OF = {"authors": 0, "only": 0, "tuned": 1}


def accuracy_page(record: PaperAccuracyRecord) -> str:
    """One self-contained HTML page of `paper accuracy`."""
    runs = f"{record.seeds} seed{'s' if record.seeds > 1 else ''}"
    quick = " Quick: few steps, and hardly tuned; the figures only show that everything runs." if record.quick else ""
    about = (
        f"{record.data}: {record.users:,} users, {record.items:,} items, {record.ratings:,} ratings. HR@10 and NDCG@10 "
        f"are expectations under random tie-breaking, means of {runs}.{quick}"
    )
    sections = [_protocol(record, protocol) for protocol in record.held_out]
    return document("Every system of the paper, judged alike", _verdict(record), [Text(about), *sections])


def _verdict(record: PaperAccuracyRecord) -> Verdict:
    """Who ranks best by the first protocol, and how many rows have no figures."""
    rows = [each for each in record.rows if each["protocol"] == next(iter(record.held_out), "")]
    best = max((each for each in rows if each["hr"] is not None), key=lambda each: each["hr"] or 0, default=None)
    failed = sum(bool(each["outcome"]) for each in record.rows)
    said = f"The best HR@10 is {best['hr']:.1%}: {best['title']}." if best else "No method gave a figure."
    return Verdict(said, rest=f"{failed} of {len(record.rows)} rows have no figures." if failed else "")


def _protocol(record: PaperAccuracyRecord, protocol: str) -> Section:
    rows = [each for each in record.rows if each["protocol"] == protocol]
    said = [f"{each['title']}, {each['settings']}: {_in_words(each)}" for each in rows]
    told = table("Accuracy", accuracy_heads(record), accuracy_rows(record, rows))
    held_out = Text(f"Held out: {record.held_out[protocol]}.")
    return Section(protocol, [held_out, accuracy_chart(rows, protocol), told, *notes(said)])


def accuracy_chart(rows: list[PaperRow], where: str) -> Bars:
    """HR@10 of each method, as marks on a line."""
    places: dict[str, list[tuple[int, float]]] = {}
    for each in rows:
        drawn = places.setdefault(each["title"], [])
        if each["hr"] is not None:
            drawn.append((_SERIES_OF[each["settings"]], each["hr"]))
        if each["stated_hr"] is not None and (2, each["stated_hr"]) not in drawn:
            drawn.append((2, each["stated_hr"]))
    used = SERIES if any(each["stated_hr"] is not None for each in rows) else SERIES[:2]
    return dots(f"HR@10 by method, {where}", list(places.items()), used)


def accuracy_heads(record: PaperAccuracyRecord) -> list[str]:
    stated = ["paper's HR@10", "NDCG@10"] if _has_stated(record) else []
    return ["", "settings", "HR@10", "NDCG@10", *stated, "steps", "CPU s", "down, a round", "up, a round"]


def accuracy_rows(record: PaperAccuracyRecord, chosen: list[PaperRow]) -> list[tuple[str, list[str]]]:
    """Some rows of the record, each under its method's title; a dash for what there is not."""
    rows = []
    for each in chosen:
        figures = [_figure(each["hr"]), _figure(each["ndcg"])]
        if each["outcome"]:
            figures = ["diverged" if each["outcome"] == "diverged" else "not run", "-"]
        stated = [_figure(each["stated_hr"]), _figure(each["stated_ndcg"])] if _has_stated(record) else []
        seconds = "-" if each["cpu_seconds"] is None else f"{each['cpu_seconds']:,.1f}"
        traffic = ["-" if value is None else in_bytes(value) for value in (each["down_bytes"], each["up_bytes"])]
        settings = "-" if each["settings"] == "only" else each["settings"]
        rows.append((each["title"], [settings, *figures, *stated, str(each["steps"]), seconds, *traffic]))
    return rows


def _in_words(each: PaperRow) -> str:
    constants = ", ".join(f"{name} {value:g}" for name, value in each["constants"].items()) or "no constants"
    tuning = each["tuning_cpu_seconds"]
    tuned = f"; tuning took {tuning:,.0f} CPU seconds" if tuning is not None else ""
    outcome = f"; {each['outcome']}" if each["outcome"] else ""
    return f"{constants}{tuned}{outcome}" + (f" ({each['note']})" if each["note"] else "")


def _has_stated(record: PaperAccuracyRecord) -> bool:
    return any(each["stated_hr"] is not None for each in record.rows)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
