"""The demo as one page: what was learned, what one device would recommend, and what it sent."""

from __future__ import annotations

from itertools import zip_longest

from lightfr_harness.records import DemoRecord
from lightfr_harness.reports.page import Facts, Part, Section, Table, Text, Verdict, document, table
from lightfr_harness.reports.svg import Limit, Plot, Series, linear_axis, share_axis


def page(record: DemoRecord) -> str:
    """One self-contained HTML page of the demo."""
    last, popular = record.accuracy[-1], record.popularity
    better = "more often than" if last["hr"] > popular["hr"] else "less often than"
    verdict = Verdict(
        f"After {record.rounds} rounds the learned codes find a user's next item {better} the popularity list:",
        rest=f"{last['hr']:.1%} against {popular['hr']:.1%}.",
    )
    about = (
        f"{record.users:,} users, {record.items:,} items, {record.ratings:,} ratings. Devices talked to the "
        f"coordinator over mutual TLS, {record.cohort} in a round, with secure aggregation, which is the default: the "
        "coordinator learned the sum of each round, and no device's part of it. No device adds to a sum over fewer "
        f"than {record.minimum_cohort}. The catalogue told the coordinator how many users rate each item. A sum still "
        "says something about those in it: see README, Privacy."
    )
    parts: list[Part] = [Text(about), _accuracy(record), _recommendations(record), _upload(record), _traffic(record)]
    return document("lightfr demo", verdict, parts)


def upload_rows(record: DemoRecord) -> list[tuple[str, str, str]]:
    """One device's upload in words: name, as it was sent, as it would be in the clear."""
    sent = record.upload
    return [
        ("bytes", f"{sent['masked_bytes']:,}", f"{sent['clear_bytes']:,}"),
        ("items it has rows for", f"all {sent['masked_items']:,} that learn", f"{sent['clear_items']}, all rated"),
        ("the user's code", "under the masks", f"all {sent['clear_code_bits']} bits"),
        ("bits that are 1", f"{sent['masked_ones']:.1%}, as in noise", ""),
    ]


def _accuracy(record: DemoRecord) -> Section:
    told = [
        (name, [f"{hr:.3f}", f"{ndcg:.3f}"])
        for name, hr, ndcg in (
            ("before training", record.accuracy[0]["hr"], record.accuracy[0]["ndcg"]),
            ("popularity list", record.popularity["hr"], record.popularity["ndcg"]),
            ("learned codes", record.accuracy[-1]["hr"], record.accuracy[-1]["ndcg"]),
        )
    ]
    points = [(look["model_version"], look["hr"]) for look in record.accuracy]
    learned = Series("learned codes", [(x, hr, f"{hr:.3f} with version {x}") for x, hr in points])
    popular = record.popularity["hr"]
    limit = Limit(popular, f"popularity list, {popular:.3f}", is_reference=True)
    across = linear_axis("model version", [x for x, _ in points], whole=True)
    drawn = Plot("HR@10 by model version", across, share_axis("HR@10"), [learned], limit)
    shown = table("Finding each user's next item among 50", ("", "HR@10", "NDCG@10"), told)
    return Section("What was learned", [shown, drawn])


def device_rows(record: DemoRecord) -> list[tuple[str, str, str, str]]:
    """One device in words: place, what its user liked, and what it recommended before and after training."""
    shown, held_out = record.device, record.device.get("held_out")
    after = [f"{name}, held out" if name == held_out else str(name) for name in shown["after"]]
    lists = zip_longest(shown.get("liked", []), map(str, shown["before"]), after, fillvalue="")
    return [(str(place), *names) for place, names in enumerate(lists, start=1)]


def device_words(record: DemoRecord) -> str:
    """Whether devices found what their users rated next, and which of them is shown."""
    found, shown = record.device.get("found", 0), len(record.device["after"])
    which = f"The first {'of them ' if found else ''}is shown."
    return (
        f"{found} of {record.processes} devices had their user's newest item, which was held out of training, among "
        f"their {shown}. {which}"
    )


def _recommendations(record: DemoRecord) -> Section:
    heads = ("", "its user liked", "recommended at first", "and after training")
    told = table(
        "What its user liked, and what it recommended", heads, [(place, cells) for place, *cells in device_rows(record)]
    )
    return Section("One device", [told, Text(device_words(record))])


def _upload(record: DemoRecord) -> Table:
    told = [(name, cells) for name, *cells in upload_rows(record)]
    return table("One device's upload", ("", "as the coordinator got it", "in the clear it would be"), told)


def _traffic(record: DemoRecord) -> Section:
    uploads = max(1, record.process_rounds)
    facts = {
        "uploads of the fleet": f"{record.uploads:,}",
        f"uploads of {record.processes} device processes": f"{record.process_rounds:,}",
        "bytes up per upload at their TLS sockets, all in all": f"{record.process_up_bytes // uploads:,}",
        "bytes down per upload": f"{record.process_down_bytes // uploads:,}",
        "bytes of the item codes": f"{record.codes_bytes:,}",
        "seconds, training": f"{record.seconds['train']:.1f}",
        "seconds, all": f"{record.seconds['all']:.1f}",
    }
    return Section("What crossed the wire", [Facts(facts)])
