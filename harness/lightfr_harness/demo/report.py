"""The demo's report: one page that needs nothing else, and the same as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lightfr_harness.demo import upload
from lightfr_harness.reports.page import document, row, table
from lightfr_harness.reports.svg import Limit, Series, draw, linear_axis, share_axis


def write_report(out: Path, outcome: dict[str, Any]) -> Path:
    """Write report.html and report.json; return the page."""
    (out / "report.json").write_text(json.dumps(outcome, indent=2))
    page = out / "report.html"
    page.write_text(document("lightfr demo", _body(outcome)))
    return page


def _body(outcome: dict[str, Any]) -> str:
    last, popular = outcome["accuracy"][-1], outcome["popularity"]
    better = "more often than" if last["hr"] > popular["hr"] else "less often than"
    return f"""<h1>lightfr demo</h1>
<p class="verdict">After {outcome["rounds"]} rounds the learned codes find a user's next item {better} the popularity
list: {last["hr"]:.1%} against {popular["hr"]:.1%}.</p>
<p>{outcome["users"]:,} synthetic users, {outcome["items"]:,} items, {outcome["ratings"]:,} ratings. Devices talked to
the coordinator over mutual TLS, {outcome["cohort"]} in a round, with secure aggregation, which is the default: the
coordinator learned the sum of each round, and no device's part of it. No device adds to a sum over fewer than
{outcome["minimum_cohort"]}. How many users rate an item was given to the coordinator with the catalogue. A sum still says
something about those in it: see README, Privacy.</p>
{_accuracy(outcome)}{_plot(outcome)}{_recommendations(outcome)}{_upload(outcome)}{_traffic(outcome)}"""


def _accuracy(outcome: dict[str, Any]) -> str:
    rows = {
        "random item codes": outcome["accuracy"][0],
        "popularity list": outcome["popularity"],
        "learned codes": outcome["accuracy"][-1],
    }
    told = [row(name, [f"{metrics['hr']:.3f}", f"{metrics['ndcg']:.3f}"]) for name, metrics in rows.items()]
    return table("Finding each user's next item among 50", ("", "HR@10", "NDCG@10"), told)


def _plot(outcome: dict[str, Any]) -> str:
    points = [(look["model_version"] - 1, look["hr"]) for look in outcome["accuracy"]]
    learned = Series("learned codes", [(x, hr, f"{hr:.3f} after {x} rounds") for x, hr in points])
    popular = Limit(outcome["popularity"]["hr"], f"popularity list, {outcome['popularity']['hr']:.3f}")
    across = linear_axis("rounds", [x for x, _ in points])
    return draw("HR@10 by round", across, share_axis("HR@10"), [learned], popular)


def _recommendations(outcome: dict[str, Any]) -> str:
    pairs = zip(outcome["device"]["before"], outcome["device"]["after"], strict=True)
    told = [row(str(place), [str(before), str(after)]) for place, (before, after) in enumerate(pairs, start=1)]
    return table("One device's recommendations", ("", "before training", "after training"), told)


def _upload(outcome: dict[str, Any]) -> str:
    told = [row(name, cells) for name, *cells in upload.rows(outcome["upload"])]
    return table("One device's upload", ("", "as the coordinator got it", "in the clear it would be"), told)


def _traffic(outcome: dict[str, Any]) -> str:
    uploads = max(1, outcome["process_rounds"])
    facts = {
        "uploads of the fleet": f"{outcome['uploads']:,}",
        f"uploads of {outcome['processes']} device processes": f"{outcome['process_rounds']:,}",
        "bytes up per upload at their TLS sockets, all in all": f"{outcome['process_up_bytes'] // uploads:,}",
        "bytes down per upload": f"{outcome['process_down_bytes'] // uploads:,}",
        "bytes of the item codes": f"{outcome['codes_bytes']:,}",
        "seconds, training": f"{outcome['seconds']['train']:.1f}",
        "seconds, all": f"{outcome['seconds']['all']:.1f}",
    }
    return table("What crossed the wire", ("", "measured"), [row(name, [told]) for name, told in facts.items()])
