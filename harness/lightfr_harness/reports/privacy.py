"""The privacy audit as one page: the verdict first, then what is read against accuracy and bytes, then the claims."""

from __future__ import annotations

from collections.abc import Callable

from lightfr_harness.records import FindingFields, PrivacyRecord, PrivacyRun
from lightfr_harness.reports.figures import figure
from lightfr_harness.reports.findings import GUESSED, claims, of_limits
from lightfr_harness.reports.page import Panels, Part, Section, Table, Text, document, table
from lightfr_harness.reports.svg import Axis, Limit, Plot, Series, log_axis, share_axis

BY_RUN = ("user codes read from uploads", "ratings recovered exactly", "rated items named")
BY_COHORT = ("user codes read from one sum", "uploaded rows named from one sum")


def page(record: PrivacyRecord) -> str:
    """One self-contained HTML page of a privacy audit's record."""
    findings = record.findings
    by_accuracy = _by_run(record, share_axis("HR@10"), lambda run: run["accuracy"]["hr"])
    sizes = log_axis("bytes of an upload", [run["upload_bytes"] for run in record.runs])
    by_bytes = _by_run(record, sizes, lambda run: run["upload_bytes"])
    parts = [
        *_about(record),
        Section("What is read, against accuracy", [Text(_READ), Panels(by_accuracy), _runs_table(record.runs)]),
        Section("What is read, against the bytes of an upload", [Panels(by_bytes)]),
        *_by_cohort(findings),
        Section("Claims", claims(findings, GUESSED)),
    ]
    return document("Privacy audit", of_limits(findings), parts)


_READ = (
    "Each point is a mode, named beside it: the further down, the less an attacker reads; the further to the right, "
    "the better its recommendations. The line across is what guessing reads, without any upload."
)


def _about(record: PrivacyRecord) -> list[Part]:
    options = record.options
    data = "the data set given" if options["data"] else f"synthetic data ({options['synthetic']})"
    per_device = options.get("rounds_per_device", options["rounds"])
    about = (
        f"At most {options['rounds']} rounds, and {per_device} for a device; {options['bits']} bits, seed "
        f"{options['seed']}, {data}. Guessing is the best that an attacker without the capture does, on the same "
        "users. The attacker is the coordinator with 5 % of the devices colluding. Modes paper and clear promise "
        "nothing; secagg and secagg+dp promise something to cohorts of at least "
        f"{options['minimum_cohort']} devices. Intervals are Wilson's for shares of codes, and a bootstrap over users "
        f"elsewhere. Masked uploads: {record.masked_uploads}."
    )
    losses = {run["mode"]: run["privacy_loss"] for run in record.runs if run["privacy_loss"]}
    epsilons = [
        f"{mode}: epsilon {loss['epsilon']:.1f} at delta {loss['delta']:g}, for a user who is in all "
        f"{loss['rounds']} rounds, each with the noise of {loss['honest_devices']} devices that do not collude."
        for mode, loss in losses.items()
    ]
    return [Text(about), *map(Text, epsilons)]


def _by_run(record: PrivacyRecord, across: Axis, place: Callable[[PrivacyRun], float]) -> list[Plot]:
    """A panel for each claim about runs, with a point for each mode."""
    places = {run["mode"]: place(run) for run in record.runs}
    drawn = []
    for claim in BY_RUN:
        found = [f for f in record.findings if f["claim"] == claim and f["mode"] in places]
        series = [
            Series(
                f["mode"],
                [(places[f["mode"]], f["measured"] or 0.0, f"{f['mode']}: {_share(f['measured'])}")],
                tag=f["mode"].replace(", cohort", ""),
            )
            for f in found
        ]
        if series:
            guess = max(f["predicted"] for f in found)
            limit = Limit(guess, f"guessing, {_share(guess)}", is_reference=True)
            title = claim[0].upper() + claim[1:]
            drawn.append(Plot(title, across, share_axis("share read"), series, limit))
    return drawn


def _runs_table(runs: list[PrivacyRun]) -> Table:
    """The same in numbers, with the accuracy that the mode reaches in these few rounds."""
    names = ("mode", "cohort", "gate", "open rows", "bytes of an upload", "epsilon", "HR@10", "NDCG@10")
    rows = [
        (
            run["mode"],
            [
                str(run["cohort"]),
                str(run["gate"] or "off"),
                f"{run['open_rows']:,}",
                f"{run['upload_bytes']:,.0f}",
                f"{run['privacy_loss']['epsilon']:.1f}" if run["privacy_loss"] else "none",
                f"{run['accuracy']['hr']:.3f}",
                f"{run['accuracy']['ndcg']:.3f}",
            ],
        )
        for run in runs
    ]
    return table("The runs", names, rows)


def _by_cohort(findings: list[FindingFields]) -> list[Part]:
    """Each mode's figures, and beside them the guessing of the first mode: the tables have it of all."""
    series = []
    for claim in BY_COHORT:
        found = []
        for finding in findings:
            if finding["claim"] == claim:
                mode, size = finding["mode"].split(", cohort ")
                found.append((mode, int(size), finding))
        modes = list(dict.fromkeys(mode for mode, _, _ in found))
        for mode, is_guess in [*((mode, False) for mode in modes), *((mode, True) for mode in modes[:1])]:
            points = []
            for its_mode, n, finding in found:
                share = finding["predicted"] if is_guess else finding["measured"] or 0.0
                if its_mode == mode:
                    points.append((float(n), share, f"{n} devices: {_share(share)}"))
            series.append(Series(f"{mode}: {claim}{', guessing' if is_guess else ''}", points))
    if not series:
        return []
    across = log_axis("devices in the sum", [x for one in series for x, _, _ in one.points])
    drawn = Plot("What one sum says of its devices against their number", across, share_axis("share read"), series)
    return [Section("What one sum says", [drawn])]


def _share(value: float | None) -> str:
    return figure(value, "share")
