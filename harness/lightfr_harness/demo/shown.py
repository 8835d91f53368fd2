"""What the terminal shows at the end, and what the page says of its model."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lightfr_harness.records import DemoRecord
from lightfr_harness.reports.demo import device_rows, device_words, upload_rows


def show(console: Console, record: DemoRecord) -> None:
    """Print the accuracy, one device's lists, its upload, and what it all took."""
    table = Table("", "HR@10", "NDCG@10", title="finding each user's next item among 50")
    rows = {
        "before training": record.accuracy[0],
        "popularity list": record.popularity,
        "learned codes": record.accuracy[-1],
    }
    for name, metrics in rows.items():
        table.add_row(name, f"{metrics['hr']:.3f}", f"{metrics['ndcg']:.3f}")
    console.print(table)
    lists = Table("", "its user liked", "recommended at first", "and after training", title="one device")
    for cells in device_rows(record):
        lists.add_row(*map(Text, cells))
    console.print(lists)
    console.print(Text(device_words(record)))
    sent = Table("", "as the coordinator got it", "in the clear it would be", title="one device's upload")
    for row in upload_rows(record):
        sent.add_row(*row)
    console.print(sent)
    uploads = max(1, record.process_rounds)
    console.print(
        f"{record.rounds} rounds of {record.cohort} devices with secure aggregation, the default: the coordinator "
        "learned the sum of each round, and no device's part of it. A sum still says something about those in it: see "
        "README, Privacy\n"
        f"{record.uploads:,} uploads of the fleet, {record.process_rounds} of {record.processes} device processes, "
        f"in {record.seconds['all']:.0f} s\n"
        f"at the TLS sockets of those processes, all in all, per upload: {record.process_up_bytes // uploads:,} bytes "
        f"up, {record.process_down_bytes // uploads:,} down"
    )


def sentences(record: DemoRecord) -> tuple[str, str]:
    """Where the page's model comes from, and how well it does."""
    made = f"{record.users:,} devices have just learned which of {record.items:,} titles go together, in private."
    learned = (
        f"After {record.rounds} rounds, the next title of {record.accuracy[-1]['hr']:.0%} of the users is among the "
        f"first 10 of 50; with a popularity list it is {record.popularity['hr']:.0%}."
    )
    return made, learned
