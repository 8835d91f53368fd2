"""The privacy audit as one page: the verdict first, then a table per claim, then leakage against bytes and cohorts."""

from __future__ import annotations

from html import escape
from typing import Any

from lightfr_harness.reports.svg import Series, plot

STYLE = """
:root {
  color-scheme: light dark; --line: #8886; --bad: #b3261e; --good: #1b6e3c;
  --s0: #1f5fa8; --s1: #b3541e; --s2: #2c7a4b; --s3: #7a3e9d
}
@media (prefers-color-scheme: dark) {
  :root { --bad: #ff8a80; --good: #7ddc9c; --s0: #8ab8f0; --s1: #f0a878; --s2: #86d3a2; --s3: #cfa3ec }
}
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right }
th:first-child, td:first-child { text-align: left } caption { text-align: left; font-weight: 600; padding: .5rem 0 }
.broken { color: var(--bad); font-weight: 700 } .holds { color: var(--good); font-weight: 700 }
.note { text-align: left; font-size: .85rem } figure { margin: 1.5rem 0 } svg { width: 100%; max-width: 46rem }
svg text { fill: currentColor; font-size: 12px } .grid { stroke: var(--line) } .line { fill: none; stroke-width: 2 }
.s0 { fill: var(--s0); stroke: var(--s0); color: var(--s0) }
.s1 { fill: var(--s1); stroke: var(--s1); color: var(--s1) }
.s2 { fill: var(--s2); stroke: var(--s2); color: var(--s2) }
.s3 { fill: var(--s3); stroke: var(--s3); color: var(--s3) }
.line.s0, .line.s1, .line.s2, .line.s3 { fill: none }
@media print { body { margin: 0; max-width: none; font-size: 10pt } table, figure { break-inside: avoid } }
"""
HEADINGS = ("mode", "guessing", "measured", "95 % interval", "limit", "verdict")
BY_BYTES = ("user codes read from uploads", "ratings recovered exactly", "rated items named")
BY_COHORT = ("user codes read from one sum", "uploaded rows named from one sum")


def page(record: dict[str, Any]) -> str:
    """One self-contained HTML page of a privacy audit's record."""
    findings = record["findings"]
    claims = list(dict.fromkeys(finding["claim"] for finding in findings))
    tables = "".join(_table(claim, [f for f in findings if f["claim"] == claim]) for claim in claims)
    body = (
        f"<h1>Privacy audit</h1>{_verdict(findings)}{_about(record)}<h2>Leakage against bytes, accuracy and cohort</h2>"
        f"{_by_bytes(record)}{_runs(record['runs'])}{_by_cohort(findings)}<h2>Claims</h2>{tables}"
    )
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>Privacy audit</title><style>{STYLE}</style></head>\n'
        f"<body><main>{body}</main></body></html>\n"
    )


def _verdict(findings: list[dict[str, Any]]) -> str:
    broken = [finding for finding in findings if finding["verdict"] == "broken"]
    limits = sum(finding["limit"] is not None for finding in findings)
    if not broken:
        return f'<p><strong class="holds">All {limits} limits hold.</strong></p>'
    lines = "".join(
        f"<li>{escape(f['mode'])}: {escape(f['claim'])}: {_share(f['measured'])}, limit {_limit(f)}</li>"
        for f in broken
    )
    return f'<p><strong class="broken">{len(broken)} of {limits} limits are broken.</strong></p><ul>{lines}</ul>'


def _about(record: dict[str, Any]) -> str:
    options = record["options"]
    data = "the data set given" if options["data"] else f"synthetic data ({options['synthetic']})"
    return (
        f"<p>{options['rounds']} rounds, {options['bits']} bits, seed {options['seed']}, {escape(data)}. "
        "Guessing is the best that an attacker without the capture does, on the same users. "
        "The attacker is the coordinator with 5 % of the devices colluding. "
        "Modes paper and clear promise nothing; secagg promises something to cohorts of at least "
        f"{options['minimum_cohort']} devices. Intervals are Wilson's for shares of codes, and a bootstrap over users "
        f"elsewhere. Masked uploads: {escape(record['masked_uploads'])}.</p>"
    )


def _table(claim: str, findings: list[dict[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in HEADINGS)
    rows = "".join(_row(finding) for finding in findings)
    caption = f"{escape(claim[0].upper() + claim[1:])} ({escape(findings[0]['unit'])})"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(claim)}">'
        f"<table><caption>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{_notes(findings)}"
    )


def _row(finding: dict[str, Any]) -> str:
    low, high = finding["interval"]
    verdict = finding["verdict"]
    kind = verdict if verdict in ("broken", "holds") else ""
    cells = (
        _share(finding["predicted"]),
        _share(finding["measured"]),
        f"{_share(low)} to {_share(high)}",
        _limit(finding),
    )
    numbers = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{escape(finding["mode"])}</th>{numbers}<td class="{kind}">{verdict}</td></tr>'


def _notes(findings: list[dict[str, Any]]) -> str:
    lines = "".join(f"<li>{escape(f['mode'])}: {escape(f['note'])}</li>" for f in findings if f["note"])
    return f'<details class="note"><summary>Notes</summary><ul>{lines}</ul></details>' if lines else ""


def _by_bytes(record: dict[str, Any]) -> str:
    size = {run["mode"]: run["upload_bytes"] for run in record["runs"]}
    series = []
    for claim in BY_BYTES:
        found = [f for f in record["findings"] if f["claim"] == claim]
        points = [(size[f["mode"]], f["measured"], f"{f['mode']}: {_share(f['measured'])}") for f in found]
        series.append(Series(claim, points, joined=False))
    return plot("What is read of a device against the bytes it uploads", "bytes of an upload", "share read", series)


def _runs(runs: list[dict[str, Any]]) -> str:
    """The same in numbers, with the accuracy that the mode reaches in these few rounds."""
    rows = "".join(
        f'<tr><th scope="row">{escape(run["mode"])}</th><td>{run["cohort"]}</td><td>{run["gate"] or "off"}</td>'
        f"<td>{run['open_rows']:,}</td><td>{run['upload_bytes']:,.0f}</td><td>{run['accuracy']['hr']:.3f}</td>"
        f"<td>{run['accuracy']['ndcg']:.3f}</td></tr>"
        for run in runs
    )
    names = ("mode", "cohort", "gate", "open rows", "bytes of an upload", "HR@10", "NDCG@10")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Runs"><table><caption>The runs</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _by_cohort(findings: list[dict[str, Any]]) -> str:
    series = []
    for claim in BY_COHORT:
        found = [f for f in findings if f["claim"] == claim]
        cohorts = [int(f["mode"].rsplit(" ", 1)[1]) for f in found]
        for name, key in ((claim, "measured"), (f"{claim}, guessing", "predicted")):
            points = [(n, f[key], f"{n} devices: {_share(f[key])}") for n, f in zip(cohorts, found, strict=True)]
            series.append(Series(name, points))
    return plot("What one sum says of its devices against their number", "devices in the sum", "share read", series)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _limit(finding: dict[str, Any]) -> str:
    if finding["limit"] is None:
        return "none"
    return f"{'at least' if finding['at_least'] else 'at most'} {_share(finding['limit'])}"
