"""The demo's report: one page that needs nothing else, and the same as JSON."""

from __future__ import annotations

import io
import json
from html import escape
from pathlib import Path
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { font-size: 1.2rem; border-left: .3rem solid #2a7; padding: .3rem .8rem; }
figure { margin: 1rem 0; background: #fff; } figure svg { width: 100%; height: auto; }
"""


def write_report(out: Path, outcome: dict[str, Any]) -> Path:
    """Write report.html and report.json; return the page."""
    (out / "report.json").write_text(json.dumps(outcome, indent=2))
    page = out / "report.html"
    page.write_text(_page(outcome))
    return page


def _page(outcome: dict[str, Any]) -> str:
    first, last, popular = outcome["accuracy"][0], outcome["accuracy"][-1], outcome["popularity"]
    names = ("random item codes", "popularity list", "learned codes")
    accuracy = [
        (name, f"{m['hr']:.3f}", f"{m['ndcg']:.3f}") for name, m in zip(names, (first, popular, last), strict=True)
    ]
    places = [
        (str(place), str(before), str(after))
        for place, (before, after) in enumerate(
            zip(outcome["device"]["before"], outcome["device"]["after"], strict=True), start=1
        )
    ]
    uploads = max(1, outcome["process_rounds"])
    traffic = [
        ("uploads of the fleet", f"{outcome['uploads']:,}"),
        (f"uploads of {outcome['processes']} device processes", f"{outcome['process_rounds']:,}"),
        ("bytes up per upload at their TLS sockets, all in all", f"{outcome['process_up_bytes'] // uploads:,}"),
        ("bytes down per upload", f"{outcome['process_down_bytes'] // uploads:,}"),
        ("bytes of the item codes", f"{outcome['codes_bytes']:,}"),
        ("seconds, training", f"{outcome['seconds']['train']:.1f}"),
        ("seconds, all", f"{outcome['seconds']['all']:.1f}"),
    ]
    better = "more often than" if last["hr"] > popular["hr"] else "less often than"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>lightfr demo</title><style>{_STYLE}</style></head><body>
<h1>lightfr demo</h1>
<p class="verdict">After {outcome["rounds"]} rounds the learned codes find a user's next item {better} the popularity
list: {last["hr"]:.1%} against {popular["hr"]:.1%}.</p>
<p>{outcome["users"]:,} synthetic users, {outcome["items"]:,} items, {outcome["ratings"]:,} ratings. Devices talked to
the coordinator over mutual TLS. Uploads were in the clear, which is not private.</p>
{_table("Finding each user's next item among 50", ("", "HR@10", "NDCG@10"), accuracy, numbers=True)}
<figure>{_plot(outcome)}<figcaption hidden>HR@10 by round</figcaption></figure>
{_table("One device's recommendations", ("", "before training", "after training"), places)}
{_table("What crossed the wire", ("", "measured"), traffic, numbers=True)}
</body></html>
"""


def _table(caption: str, head: tuple[str, ...], rows: list[tuple[str, ...]], *, numbers: bool = False) -> str:
    kind = ' class="number"' if numbers else ""
    top = "".join(f'<th scope="col"{kind if place else ""}>{escape(cell)}</th>' for place, cell in enumerate(head))
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _plot(outcome: dict[str, Any]) -> str:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3))
    rounds = [point["model_version"] - 1 for point in outcome["accuracy"]]
    axes.plot(rounds, [point["hr"] for point in outcome["accuracy"]], marker="o", label="learned codes")
    axes.axhline(outcome["popularity"]["hr"], linestyle="--", color="gray", label="popularity list")
    axes.set(xlabel="rounds", ylabel="HR@10", ylim=(0, 1))
    axes.legend()
    figure.tight_layout()
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    # Without the XML prologue, so that it stands inside the page.
    text = drawn.getvalue()
    return text[text.index("<svg") :].replace("<svg", '<svg role="img" aria-label="HR@10 by round"', 1)
