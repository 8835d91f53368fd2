"""Training as pages: one run, a sweep of many, and the accuracy table. Accuracy stands beside the popularity list."""

from __future__ import annotations

from statistics import mean
from typing import cast

from lightfr_harness.records import Accuracy, AccuracyRecord, SweepPoint, SweepRecord, TrainRecord
from lightfr_harness.reports.choices import choices, chosen_sentence
from lightfr_harness.reports.figures import in_bytes
from lightfr_harness.reports.page import Facts, Part, Section, Text, Verdict, document, table
from lightfr_harness.reports.svg import Bars, Limit, Plot, Series, bars, linear_axis, log_axis, share_axis

PANELS = ("code bits f", "lambda", "cohort share p")
# The paper's ablation in the order of its table, and our objective after it.
ABLATION = ("random", "init", "para", "grad", "catalogue")


def train_page(record: TrainRecord) -> str:
    """One self-contained HTML page of a training run."""
    first = "HR@10" if record.hr is not None else "recall@10"
    popular = _first(record.popularity)
    options, data = record.options, record.data
    source = options["data"] or f"synthetic data ({options['synthetic']})"
    about = (
        f"{options['rounds']} rounds, {options['bits']} bits, objective {options['objective']} "
        f"({options['aggregate']}), privacy {options['privacy']}, seed {options['seed']}. {source}: "
        f"{data['users']:,} users, {data['items']:,} items, {data['train_ratings']:,} ratings to train on. "
        f"{left_out(record)} {chosen_sentence(record)} Figures are the expectation under random tie-breaking where "
        "nothing else is said."
    )
    told = table(
        "Accuracy of the learned codes and of the popularity list", accuracy_heads(record), accuracy_rows(record)
    )
    parts = [Text(about), _history(record, first), told, *choices(record), _costs(record)]
    return document("Training run", _verdict(first, record.hit_rate, popular), parts)


def _first(accuracy: Accuracy) -> float:
    """HR, or recall where the whole catalogue was ranked."""
    return accuracy["hr"] if "hr" in accuracy else accuracy["recall"]


def _verdict(name: str, learned: float, popular: float) -> Verdict:
    kind, word = ("holds", "above") if learned > popular else ("broken", "not above")
    return Verdict(f"{name} is {learned:.1%},", kind, f"{word} the popularity list's {popular:.1%}.")


def _history(record: TrainRecord, first: str) -> Plot | None:
    if len(record.history) < 2:
        return None
    series = [
        Series(
            first, [(look["round"], look["hr"], f"{look['hr']:.3f} after {look['round']}") for look in record.history]
        ),
        Series(
            "NDCG@10",
            [(look["round"], look["ndcg"], f"{look['ndcg']:.3f} after {look['round']}") for look in record.history],
        ),
    ]
    popular = _first(record.popularity)
    across = linear_axis("rounds", [look["round"] for look in record.history], whole=True)
    limit = Limit(popular, f"{first} of the popularity list, {popular:.3f}", is_reference=True)
    return Plot("Accuracy by round", across, share_axis("accuracy"), series, limit)


def accuracy_heads(record: TrainRecord) -> list[str]:
    first = "HR@10" if record.hr is not None else "recall@10"
    return ["", first, "NDCG@10", f"popularity {first}", "popularity NDCG@10", "users"]


def accuracy_rows(record: TrainRecord) -> list[tuple[str, list[str]]]:
    """The learned codes beside the popularity list on the same items: by rule for ties, by group of users, as given."""
    first = "hr" if record.hr is not None else "recall"
    learned = cast("Accuracy", vars(record))
    rows = [
        ("ties at random, expected", learned, record.popularity, ""),
        ("ties as on a device, lower index first", learned, record.popularity, "_device"),
        ("ties won by the held-out item", learned, record.popularity, "_optimistic"),
    ]
    rows += [
        (f"users with {each['ratings']} ratings", each["learned"], each["popularity"], "") for each in record.by_count
    ]
    if record.as_given:
        given = record.as_given
        rows.append(("candidates as given, own items among them", given["learned"], given["popularity"], ""))
    return [(name, _cells(ours, popular, first, rule)) for name, ours, popular, rule in rows]


def _cells(learned: Accuracy, popular: Accuracy, first: str, rule: str) -> list[str]:
    figures: list[float] = [each[key] for each in (learned, popular) for key in (first + rule, "ndcg" + rule)]  # type: ignore[literal-required]
    return [*(f"{figure:.4f}" for figure in figures), f"{learned['n_users']:,}"]


def left_out(record: TrainRecord) -> str:
    """One sentence on what is held out, and on what the data had that was not used."""
    data = record.data
    counts = {
        "repeated ratings (the latest stands)": data["duplicates_dropped"],
        "zeros that are no ratings": data["zeros_skipped"],
        "negatives that their user had rated": data["negatives_dropped"],
    }
    dropped = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"Held out: {data['held_out']}." + (f" Left out: {dropped}." if dropped else "")


def _costs(record: TrainRecord) -> Section:
    facts = {
        "bytes up, a device round": in_bytes(record.up_bytes_per_device_round),
        "bytes down, a device round": in_bytes(record.down_bytes_per_device_round),
        "device rounds": f"{record.device_rounds:,}",
        "of them dropped out": f"{record.dropped:,}",
        "rounds abandoned": f"{record.abandoned_rounds:,}",
        "rows that learn from devices": f"{record.open_rows:,} of {record.data['items']:,}",
    }
    if record.device_rounds_per_second:
        facts["device rounds a CPU second"] = f"{record.device_rounds_per_second:,.0f}"
    if record.privacy_loss:
        loss = record.privacy_loss
        facts[f"epsilon at delta {loss['delta']:g}, of a user in all {loss['rounds']} rounds"] = (
            f"{loss['epsilon']:.2f}"
        )
    if record.paper and record.paper["stated"]:
        stated = record.paper["stated"]
        facts["the paper states HR@10, NDCG@10"] = f"{stated['hr']:.4f}, {stated['ndcg']:.4f}"
    facts |= {f"CPU seconds: {name}": f"{seconds:.2f}" for name, seconds in record.seconds.items()}
    return Section("What it took", [Facts(facts)])


def sweep_page(record: SweepRecord) -> str:
    """One self-contained HTML page of a sweep: four panels, as the paper draws them."""
    popular = mean(point["popularity"]["hr"] for point in record.points)
    best = max(record.points, key=lambda point: point["hr"])
    where = f"{best['panel']}: {best['x']}" + (f", {best['line']}" if best["line"] != best["x"] else "")
    panels = [
        Section(name[0].upper() + name[1:], sweep_panel(points))
        for name in PANELS
        if (points := [point for point in record.points if point["panel"] == name])
    ]
    about = (
        f"{record.data}, {record.rounds} rounds, {record.seeds} seed{'s' if record.seeds > 1 else ''}. The line across "
        "is the HR@10 of the popularity list."
    )
    ablation = _ablation([point for point in record.points if point["panel"] == "ablation"])
    return document(
        "Sweep", _verdict(f"The best HR@10, at {where},", best["hr"], popular), [Text(about), *panels, ablation]
    )


def _means(points: list[SweepPoint], line: str | None) -> dict[str, tuple[float, float]]:
    """HR and NDCG at each place of a line, averaged over the seeds."""
    chosen = [point for point in points if line in (None, point["line"])]
    return {
        x: (mean(p["hr"] for p in chosen if p["x"] == x), mean(p["ndcg"] for p in chosen if p["x"] == x))
        for x in dict.fromkeys(point["x"] for point in chosen)
    }


def sweep_panel(points: list[SweepPoint]) -> list[Part]:
    """One panel in a figure and a table.

    The paper's lambdas lie far apart, so their axis counts places; the other axes are true to scale.
    """
    if not points:
        return []
    name = points[0]["panel"]
    places = sorted({float(point["x"]) for point in points})
    by_place = name == "lambda"
    series = []
    for line in ("catalogue", "paper"):
        means = sorted(_means(points, line).items(), key=lambda item: float(item[0]))
        for metric, which in (("HR@10", 0), ("NDCG@10", 1)):
            drawn = [
                (
                    places.index(float(x)) if by_place else float(x),
                    values[which],
                    f"{values[which]:.3f} at {x}",
                )
                for x, values in means
            ]
            if drawn:
                series.append(Series(f"{line}, {metric}", drawn))
    if by_place:
        across = linear_axis(name, [len(places) - 1], lambda at: f"{places[round(at)]:g}", range(len(places)))
    elif name == "code bits f":
        across = log_axis(name, places, marks=places)
    else:
        across = linear_axis(name, places)
    popular = mean(point["popularity"]["hr"] for point in points)
    limit = Limit(popular, f"popularity list, {popular:.3f}", is_reference=True)
    heads = ("", *(one.name for one in series))
    rows = []
    for place, x in enumerate(places):
        heights = ({at: y for at, y, _ in one.points}.get(place if by_place else x) for one in series)
        rows.append((f"{x:g}", ["-" if y is None else f"{y:.4f}" for y in heights]))
    title = f"Accuracy against {name}"
    return [Plot(title, across, share_axis("accuracy"), series, limit), table(title, heads, rows)]


def _ablation(points: list[SweepPoint]) -> Section | None:
    if not points:
        return None
    means = _means(points, None)
    names = [name for name in ABLATION if name in means]
    drawn = []
    for which, (metric, title) in enumerate((("hr", "HR@10"), ("ndcg", "NDCG@10"))):
        values = [(name, means[name][which]) for name in names]
        popular = mean(point["popularity"][metric] for point in points)  # type: ignore[literal-required]
        drawn.append(
            _beside_popularity(f"{title} of the paper's ablation, and of our objective", values, popular, which)
        )
    return Section("Ablation", drawn)


def _beside_popularity(title: str, values: list[tuple[str, float]], popular: float, kind: int) -> Bars:
    rows = [(name, value, f"{value:.3f}") for name, value in values]
    return bars(title, rows, kind, reference=(popular, f"popularity list, {popular:.3f}"))


def accuracy_page(record: AccuracyRecord) -> str:
    """One self-contained HTML page of `bench accuracy`: every row beside what it must reach."""
    missed = [each["row"] for each in record.rows if not each["reached"] and not each["is_goal"]]
    required = sum(not each["is_goal"] for each in record.rows)
    verdict = Verdict(f"All {required} required rows are reached.", "holds")
    if missed:
        verdict = Verdict(f"{len(missed)} of {required} required rows are missed:", "broken", lines=missed)
    popular = record.rows[0]["popularity"]
    drawn = [
        _beside_popularity("HR@10", [(each["row"], each["hr"]) for each in record.rows], popular["hr"], 0),
        _beside_popularity("NDCG@10", [(each["row"], each["ndcg"]) for each in record.rows], popular["ndcg"], 1),
    ]
    heads = ("", "HR@10", "NDCG@10", "needed", "device rounds a CPU second", "reached")
    rows = [("popularity list", [f"{popular['hr']:.4f}", f"{popular['ndcg']:.4f}", "", "", ""])]
    rows += [
        (
            each["row"],
            [
                f"{each['hr']:.4f}",
                f"{each['ndcg']:.4f}",
                f"{each['needed_hr']:.3f} / {each['needed_ndcg']:.3f}",
                f"{each['device_rounds_per_second']:,.0f}",
                "yes" if each["reached"] else "no",
            ],
        )
        for each in record.rows
    ]
    about = f"Leave-last-out, 49 negatives, expected ties, mean of seeds {', '.join(map(str, record.seeds))}."
    return document("Accuracy on MovieLens-100K", verdict, [Text(about), *drawn, table("Accuracy", heads, rows)])
