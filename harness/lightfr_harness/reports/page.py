"""What all reports share: one self-contained document, its style, tables that scroll, and figures as text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

STYLE = """
:root {
  color-scheme: light dark; --line: #8886; --bad: #b3261e; --good: #1b6e3c; --odd: #8a5a00;
  --s0: #1f5fa8; --s1: #b3541e; --s2: #2c7a4b; --s3: #7a3e9d; --s4: #8f6a00; --s5: #a0316b
}
@media (prefers-color-scheme: dark) {
  :root {
    --bad: #ff8a80; --good: #7ddc9c; --odd: #f2c14e;
    --s0: #8ab8f0; --s1: #f0a878; --s2: #86d3a2; --s3: #cfa3ec; --s4: #e6c766; --s5: #f09ac5
  }
}
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right }
td, .entry { white-space: nowrap } .entry { margin-right: .8rem }
th:first-child, td:first-child { text-align: left } caption { text-align: left; font-weight: 600; padding: .5rem 0 }
.broken { color: var(--bad); font-weight: 700 } .holds, .confirmed { color: var(--good); font-weight: 700 }
.refuted { color: var(--odd); font-weight: 700 } .verdict { font-size: 1.25rem }
.note { text-align: left; font-size: .85rem } figure { margin: 1.5rem 0 }
/* Narrower than this the text in it is too small: the figure scrolls instead. */
svg { width: 100%; min-width: 30rem; max-width: 46rem }
.panels { display: flex; flex-wrap: wrap; gap: 1rem 2rem } .panels figure { flex: 1 1 17rem; margin: 1rem 0 }
.panels svg { min-width: 0; max-width: 26rem } .panels .mark { stroke: Canvas; stroke-width: 1.5 }
.judged { margin: 1rem 0 }
svg text { fill: currentColor; font-size: 12px } .grid { stroke: var(--line) } .line { fill: none; stroke-width: 2 }
.limit { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 6 4 } svg .limit-text { fill: var(--bad) }
.reference { stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 2 4 }
/* Text across a line stays readable: it is drawn over a margin in the colour of the page. */
svg .value, svg .limit-text, svg .reference-text { paint-order: stroke; stroke: Canvas; stroke-width: 4px }
.s0 { fill: var(--s0); stroke: var(--s0); color: var(--s0) }
.s1 { fill: var(--s1); stroke: var(--s1); color: var(--s1) }
.s2 { fill: var(--s2); stroke: var(--s2); color: var(--s2) }
.s3 { fill: var(--s3); stroke: var(--s3); color: var(--s3) }
.s4 { fill: var(--s4); stroke: var(--s4); color: var(--s4) }
.s5 { fill: var(--s5); stroke: var(--s5); color: var(--s5) }
.line.s0, .line.s1, .line.s2, .line.s3, .line.s4, .line.s5 { fill: none }
/* Many columns of few digits, with what may stand below in brackets. */
@media (max-width: 40rem) {
  .dense { font-size: .68rem } .dense th, .dense td { padding: .2rem .1rem; hyphens: auto; white-space: normal }
}
@media print {
  body { margin: 0; max-width: none; font-size: 10pt }
  table, figure { break-inside: avoid } .scroll { overflow: visible } svg { min-width: 0 }
  td { white-space: normal } th, td { padding: .15rem .3rem }
}
"""


def document(title: str, body: str) -> str:
    """The whole page around its main part."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><style>{STYLE}</style></head>\n'
        f"<body><main>{body}</main></body></html>\n"
    )


def table(caption: str, heads: Sequence[str], rows: Sequence[str], label: str = "", *, dense: bool = False) -> str:
    """A table of finished rows, in a region that scrolls where the page is narrow; a dense one is made to fit there."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    opening = '<table class="dense">' if dense else "<table>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label or caption)}">'
        f"{opening}<caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(name: str, cells: Sequence[str], verdict: str = "") -> str:
    """A row under its name; a verdict is coloured as well as said."""
    said = f'<td class="{verdict_class(verdict)}">{escape(verdict)}</td>' if verdict else ""
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}{said}</tr>'


def notes(lines: Sequence[str]) -> str:
    """Folded away, if there are any."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<details class="note"><summary>Notes</summary><ul>{items}</ul></details>' if items else ""


def verdict_class(verdict: str) -> str:
    """The style of a verdict; none for what is there for information."""
    return verdict if verdict in ("broken", "holds", "confirmed", "refuted") else ""
