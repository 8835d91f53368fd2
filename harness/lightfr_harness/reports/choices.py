"""How a trained fleet ranks, for people: liked beside disliked items, and what each candidate gave by group."""

from __future__ import annotations

from lightfr_harness.records import AccuracyByCount, RankingFields, TrainRecord
from lightfr_harness.reports.page import Part, Section, Text, table

OPINION_HEADS = ("", "liked: HR@10", "liked: NDCG@10", "disliked: HR@10")
# Candidates of a group on a page: so many of those that the fleet likes best.
SHOWN = 5
# Marks the candidate that a group uses.
CHOSEN = "*"


def opinion_rows(record: TrainRecord) -> list[tuple[str, list[str]]]:
    """Held-out items that users like and dislike, side by side; none where the ratings have no dislikes."""
    if record.disliked_hr is None:
        return []
    popular = record.popularity
    rows = [
        ("learned", (record.liked_hr, record.liked_ndcg, record.disliked_hr)),
        ("popularity list", tuple(popular.get(name) for name in ("liked_hr", "liked_ndcg", "disliked_hr"))),
    ]
    told = [(name, ["-" if figure is None else f"{figure:.3f}" for figure in figures]) for name, figures in rows]
    users = [f"{record.n_liked or 0:,}", "", f"{record.n_disliked or 0:,}"]
    return [*told, ("users", users)]


def ranking_name(ranking: RankingFields) -> str:
    """A ranking in a few words."""
    if ranking["by"] == "popularity":
        return "popularity alone"
    parts = [f"recency {ranking['recency']}"]
    parts += [f"prior {ranking['prior']:g}"] if ranking["prior"] else []
    parts += ["refined"] if ranking["refine"] else []
    return ", ".join(parts)


def evaluated_groups(record: TrainRecord) -> list[AccuracyByCount]:
    return [each for each in record.by_count if each.get("candidates")]


def candidate_heads(record: TrainRecord) -> list[str]:
    return ["", *(f"{each['ratings']} ratings" for each in evaluated_groups(record))]


def candidate_rows(record: TrainRecord) -> list[tuple[str, list[str]]]:
    """For each candidate and group what the fleet said and what it gave in the test; a star marks what is used."""
    groups = evaluated_groups(record)
    if not groups:
        return []
    rows = []
    for place, candidate in enumerate(groups[0]["candidates"]):
        cells = []
        for each in groups:
            figures = each["candidates"][place]
            mark = CHOSEN if figures["ranking"] == each["ranking"] else ""
            cells.append(f"{mark}{_short(figures['evaluated_net'])} {_short(figures['test_net'])}")
        rows.append((ranking_name(candidate["ranking"]), cells))
    return rows


def _short(figure: float) -> str:
    return f"{figure:.3f}".replace("0.", ".", 1)


def chosen_sentence(record: TrainRecord) -> str:
    """What each group ranks by, in one sentence; empty for objective paper."""
    groups = [each for each in record.by_count if "ranking" in each]
    if not groups:
        return ""
    told = "; ".join(f"{each['ratings']} ratings: {ranking_name(each['ranking'])}" for each in groups)
    if not evaluated_groups(record):
        return f"The options say how to rank. {told}."
    return f"The fleet's evaluation chose how to rank. {told}."


def best_rows(each: AccuracyByCount) -> list[tuple[str, list[str]]]:
    """Of one group the candidates that the fleet likes best, the best one of the test, and popularity."""
    candidates = sorted(each["candidates"], key=lambda one: -one["evaluated_net"])
    best = max(candidates, key=lambda one: one["test_net"])
    shown = [one for one in candidates if one in candidates[:SHOWN] or one["ranking"]["by"] == "popularity"]
    rows = []
    for one in shown if best in shown else [*shown, best]:
        mark = f"{CHOSEN} " if one["ranking"] == each["ranking"] else ""
        rows.append((mark + ranking_name(one["ranking"]), [_short(one["evaluated_net"]), _short(one["test_net"])]))
    return rows


def choices(record: TrainRecord) -> list[Part]:
    """Liked and disliked items, and the best candidates of each group, as parts of a page."""
    parts: list[Part] = []
    if opinions := opinion_rows(record):
        parts.append(table("Held-out items that users like, and dislike (lower is better)", OPINION_HEADS, opinions))
    if groups := evaluated_groups(record):
        about = (
            "NDCG@10, disliked items counted negative, by users' number of ratings: what the evaluation said, and "
            f"what the test says. {CHOSEN} marks what a group uses; a group with fewer than 100 evaluated opinions "
            "uses what is best for all. Shown are the candidates that the fleet likes best, the best one of the test, "
            "and popularity."
        )
        tables = [table(_group(each), ("", "fleet", "test"), best_rows(each)) for each in groups]
        parts.append(Section("How the fleet ranks", [Text(about), *tables]))
    return parts


def _group(each: AccuracyByCount) -> str:
    users, seen = each["learned"]["n_users"], each["evaluated_opinions"]
    return f"{each['ratings']} ratings: {users:,} users in the test, {seen:,} opinions evaluated"
