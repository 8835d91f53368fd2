"""The paper's Tables 1 and 5 and its Figure 3: what each federated method costs, beside formulas, ticks and text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lightfr_harness.paper.stated import COLUMNS, TICKS
from lightfr_harness.records import FindingFields, PaperCostRow, PaperCostsRecord
from lightfr_harness.reports.cost import claims, of_the_paper
from lightfr_harness.reports.figures import bytes_tick, figure, in_bytes, in_time, times_tick
from lightfr_harness.reports.page import document, notes, row, table
from lightfr_harness.reports.svg import Bar, log_bars

TITLE = "What every federated method costs"
INFERENCE = "inference, times faster"
# LightFR's own row has the formula as printed; its measured figures are those of packed codes.
LIGHTFR, PACKED = "LightFR", "LightFR, packed"


def page(record: PaperCostsRecord) -> str:
    """One self-contained HTML page of `paper costs`."""
    body = (
        f'<h1>{TITLE}</h1><p class="verdict"><strong>{escape(lightfr_sentence(record))}</strong></p>'
        f"{of_the_paper(record.findings)}<p>{escape(about(record))}</p>"
        f"<h2>Figure 3</h2>{panels(record)}<h2>Table 5</h2>{formula_table(record)}<h2>Table 1</h2>{tick_table(record)}"
        f"<h2>Claims</h2>{claims(record.findings)}"
    )
    return document(TITLE, body)


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


def panels(record: PaperCostsRecord) -> str:
    """Figure 3: three panels of bars, with what the paper predicts as marks."""
    stated = {each["mode"]: each["predicted"] for each in record.findings if each["claim"] == INFERENCE}
    rows = [each for each in record.rows if each["name"] != LIGHTFR]
    storage = [_bytes_bar(each, each["storage_bytes"], each["storage_formula_bytes"]) for each in rows]
    sent = [_bytes_bar(each, each["down_bytes"] + each["up_bytes"], each["round_formula_bytes"]) for each in rows]
    times = [
        Bar(each["name"], each["ratio"], figure(each["ratio"], "times"), stated.get(f"than {each['name']}"))
        for each in rows
        if each["ratio"] is not None
    ]
    drawn = (
        log_bars("Storage on the device", storage, bytes_tick, ("measured", "the formula")),
        log_bars("Bytes of a round, both ways", sent, bytes_tick, ("measured", "the formula")),
        log_bars("Inference, as a multiple of LightFR's time", times, times_tick, ("measured", "the text")),
    )
    return f'<div class="panels">{"".join(drawn)}</div>'


def _bytes_bar(each: PaperCostRow, measured: float, formula: float) -> Bar:
    return Bar(each["name"], measured, in_bytes(measured), formula)


HEADS = ("", "storage", "formula", "factor", "a round", "formula", "factor", "down", "up", "top 10", "minimum", "ratio")


def cost_rows(record: PaperCostsRecord) -> list[tuple[str, list[str]]]:
    """Each row under its method's name; a dash for what was not timed anew."""
    return [(each["name"], [*_byte_cells(each), *_time_cells(each)]) for each in record.rows]


def _byte_cells(each: PaperCostRow) -> list[str]:
    cells = []
    pairs = (
        (each["storage_bytes"], each["storage_formula_bytes"]),
        (each["down_bytes"] + each["up_bytes"], each["round_formula_bytes"]),
    )
    for measured, formula in pairs:
        cells += [in_bytes(measured), in_bytes(formula), f"{measured / formula:.3g}"]
    return [*cells, in_bytes(each["down_bytes"]), in_bytes(each["up_bytes"])]


def _time_cells(each: PaperCostRow) -> list[str]:
    if each["median_ns"] is None or each["min_ns"] is None:
        return ["-", "-", "-"]
    return [in_time(each["median_ns"]), in_time(each["min_ns"]), figure(each["ratio"], "times")]


def formula_table(record: PaperCostsRecord) -> str:
    """Table 5, with times."""
    said = [f"{each['name']}: {each['note']}" for each in record.rows if each["note"]]
    rows = [row(name, cells) for name, cells in cost_rows(record)]
    return table("Measured beside the paper's formulas; ratio is to LightFR's time", HEADS, rows) + notes(said)


def tick_table(record: PaperCostsRecord) -> str:
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
        rows.append(row(name, [f"{'✓' if tick else '✗'} {said}" for tick, said in zip(ticks, figures, strict=True)]))
    return table("The paper's ticks and crosses, beside what we measured", ("", *COLUMNS), rows)


def findings_of(record: PaperCostsRecord, *starts: str) -> Sequence[FindingFields]:
    """Those whose claims begin so."""
    return [each for each in record.findings if each["claim"].startswith(starts)]
