"""The paper's Tables 1 and 5 and its Figure 3: what each federated method costs, beside formulas, ticks and text."""

from __future__ import annotations

from collections.abc import Sequence

from lightfr_harness.paper.stated import COLUMNS, TICKS
from lightfr_harness.records import FindingFields, PaperCostRow, PaperCostsRecord
from lightfr_harness.reports.figures import bytes_tick, figure, in_bytes, in_time, times_tick
from lightfr_harness.reports.findings import claims, of_the_paper
from lightfr_harness.reports.page import Panels, Part, Section, Table, Text, Verdict, document, notes, table
from lightfr_harness.reports.svg import Bar, log_bars

TITLE = "What every federated method costs"
INFERENCE = "inference, times faster"
# LightFR's own row has the formula as printed; its measured figures are those of packed codes.
LIGHTFR, PACKED = "LightFR", "LightFR, packed"


def page(record: PaperCostsRecord) -> str:
    """One self-contained HTML page of `paper costs`."""
    parts: list[Part] = [
        Text(about(record)),
        Section("Figure 3", figure_3(record)),
        Section("Table 5", formula_table(record)),
        Section("Table 1", [tick_table(record)]),
        Section("Claims", [*of_the_paper(record.findings), *claims(record.findings)]),
    ]
    return document(TITLE, Verdict(lightfr_sentence(record)), parts)


def about(record: PaperCostsRecord) -> str:
    return (
        f"The shape of {record.dataset}: {record.items:,} items, {record.ratings} ratings of a user, codes of "
        f"{record.bits} bits, {record.open_rows:,} open rows, seed {record.seed}. Bytes are those of files and encoded "
        "messages; times are CPU time of a top 10, all methods in turn, and only their ratios mean much."
    )


def by_name(record: PaperCostsRecord) -> dict[str, PaperCostRow]:
    return {each["name"]: each for each in record.rows}


def lightfr_sentence(record: PaperCostsRecord) -> str:
    """LightFR beside FCF, the plainest of the others."""
    rows = by_name(record)
    ours, fcf = rows[PACKED], rows["FCF"]
    storage, sent = (fcf[key] / ours[key] for key in ("storage_bytes", "down_bytes"))
    faster = f", and {fcf['ratio']:.0f} times faster" if fcf["ratio"] else ""
    return (
        f"LightFR's packed codes take {in_bytes(ours['storage_bytes'])} on a device: {storage:.0f} times less than "
        f"FCF, {sent:.0f} times less to download{faster}."
    )


def _panels(record: PaperCostsRecord) -> Panels:
    """Three panels of bars, with what the paper predicts as marks."""
    stated = _stated_times(record)
    rows = [each for each in record.rows if each["name"] != LIGHTFR]
    # A reading that was not timed differs from its method in what it sends alone.
    own = [each for each in rows if each["ratio"] is not None]
    storage = [_bytes_bar(each, each["storage_bytes"], each["storage_formula_bytes"]) for each in own]
    sent = [_bytes_bar(each, each["down_bytes"] + each["up_bytes"], each["round_formula_bytes"]) for each in rows]
    times = [
        Bar(
            each["name"],
            each["ratio"],
            figure(each["ratio"], "times"),
            [(3, stated[each["name"]])] if each["name"] in stated else (),
        )
        for each in own
        if each["ratio"] is not None
    ]
    drawn = [
        log_bars("Storage on the device", storage, bytes_tick, ("measured", "the formula")),
        log_bars("Bytes of a round, both ways", sent, bytes_tick, ("measured", "the formula")),
        log_bars("Inference, as a multiple of LightFR's time", times, times_tick, ("measured", "the text")),
    ]
    return Panels(drawn)


def _bytes_bar(each: PaperCostRow, measured: float, formula: float) -> Bar:
    return Bar(each["name"], measured, in_bytes(measured), [(3, formula)])


BYTE_HEADS = ("", "storage", "formula", "factor", "a round", "formula", "factor", "down", "up")
TIME_HEADS = ("", "median", "minimum", "median / LightFR's", "minimum / LightFR's", "the text")


def byte_rows(record: PaperCostsRecord) -> list[tuple[str, list[str]]]:
    """Bytes of each method beside its formulas."""
    rows = []
    for each in record.rows:
        cells = []
        for measured, formula in (
            (each["storage_bytes"], each["storage_formula_bytes"]),
            (each["down_bytes"] + each["up_bytes"], each["round_formula_bytes"]),
        ):
            cells += [in_bytes(measured), in_bytes(formula), f"{measured / formula:.3g}"]
        rows.append((each["name"], [*cells, in_bytes(each["down_bytes"]), in_bytes(each["up_bytes"])]))
    return rows


def time_rows(record: PaperCostsRecord) -> list[tuple[str, list[str]]]:
    """CPU time of a top 10 of each method that was timed."""
    stated, rows = _stated_times(record), []
    for each in record.rows:
        if each["median_ns"] is not None and each["min_ns"] is not None and each["name"] != LIGHTFR:
            factors = [each["ratio"], each["min_ratio"], stated.get(each["name"])]
            times = [in_time(each["median_ns"]), in_time(each["min_ns"])]
            rows.append((each["name"], [*times, *(figure(factor, "times") for factor in factors)]))
    return rows


def _stated_times(record: PaperCostsRecord) -> dict[str, float]:
    """The text's factors, by method."""
    found = [each for each in record.findings if each["claim"] == INFERENCE]
    return {each["mode"].removeprefix("than "): each["predicted"] for each in found}


def formula_table(record: PaperCostsRecord) -> list[Part]:
    """Table 5."""
    said = [f"{each['name']}: {each['note']}" for each in record.rows if each["note"]]
    return [table("Bytes, measured beside the paper's formulas", BYTE_HEADS, byte_rows(record)), *notes(said)]


def figure_3(record: PaperCostsRecord) -> list[Part]:
    """The three panels, and the times in numbers."""
    return [_panels(record), table("CPU time of a top 10", TIME_HEADS, time_rows(record))]


def tick_table(record: PaperCostsRecord) -> Table:
    """Table 1: its ticks and crosses, and what was measured."""
    measured, rows = by_name(record), []
    for name, ticks in TICKS.items():
        each = measured[PACKED if name == LIGHTFR else name]
        figures = (
            in_bytes(each["storage_bytes"]),
            in_time(each["median_ns"] or 0.0),
            in_bytes(each["down_bytes"] + each["up_bytes"]),
            "",
        )
        rows.append((name, [f"{'✓' if tick else '✗'} {said}" for tick, said in zip(ticks, figures, strict=True)]))
    return table("The paper's ticks and crosses, beside what we measured", ("", *COLUMNS), rows)


def findings_of(record: PaperCostsRecord, *starts: str) -> Sequence[FindingFields]:
    """Those whose claims begin so."""
    return [each for each in record.findings if each["claim"].startswith(starts)]
