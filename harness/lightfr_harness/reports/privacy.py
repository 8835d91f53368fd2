"""The privacy audit as one page: the verdict first, then a table per claim, then leakage against bytes and cohorts."""

from __future__ import annotations

from html import escape

from lightfr_harness.records import FindingFields, PrivacyRecord, PrivacyRun
from lightfr_harness.reports.page import document, notes, row, table
from lightfr_harness.reports.svg import Series, plot

HEADINGS = ("mode", "guessing", "measured", "95 % interval", "limit", "verdict")
BY_BYTES = ("user codes read from uploads", "ratings recovered exactly", "rated items named")
BY_COHORT = ("user codes read from one sum", "uploaded rows named from one sum")


def page(record: PrivacyRecord) -> str:
    """One self-contained HTML page of a privacy audit's record."""
    findings = record.findings
    claims = list(dict.fromkeys(finding["claim"] for finding in findings))
    tables = ""
    for claim in claims:
        same = [finding for finding in findings if finding["claim"] == claim]
        caption = f"{claim[0].upper() + claim[1:]} ({same[0]['unit']})"
        said = [f"{finding['mode']}: {finding['note']}" for finding in same if finding["note"]]
        tables += table(caption, HEADINGS, [_row(finding) for finding in same], claim) + notes(said)
    body = (
        f"<h1>Privacy audit</h1>{_verdict(findings)}{_about(record)}<h2>Leakage against bytes, accuracy and cohort</h2>"
        f"{_by_bytes(record)}{_runs_table(record.runs)}{_by_cohort(findings)}<h2>Claims</h2>{tables}"
    )
    return document("Privacy audit", body)


def _verdict(findings: list[FindingFields]) -> str:
    broken = [finding for finding in findings if finding["verdict"] == "broken"]
    limits = sum(finding["limit"] is not None for finding in findings)
    if not broken:
        return f'<p class="verdict"><strong class="holds">All {limits} limits hold.</strong></p>'
    lines = "".join(
        f"<li>{escape(f['mode'])}: {escape(f['claim'])}: {_share(f['measured'])}, limit {_limit(f)}</li>"
        for f in broken
    )
    said = f"{len(broken)} of {limits} limits are broken."
    return f'<p class="verdict"><strong class="broken">{said}</strong></p><ul>{lines}</ul>'


def _about(record: PrivacyRecord) -> str:
    options = record.options
    data = "the data set given" if options["data"] else f"synthetic data ({options['synthetic']})"
    per_device = options.get("rounds_per_device", options["rounds"])
    return (
        f"<p>At most {options['rounds']} rounds, and {per_device} for a device; "
        f"{options['bits']} bits, seed {options['seed']}, {escape(data)}. "
        "Guessing is the best that an attacker without the capture does, on the same users. "
        "The attacker is the coordinator with 5 % of the devices colluding. "
        "Modes paper and clear promise nothing; secagg and secagg+dp promise something to cohorts of at least "
        f"{options['minimum_cohort']} devices. Intervals are Wilson's for shares of codes, and a bootstrap over users "
        f"elsewhere. Masked uploads: {escape(record.masked_uploads)}.</p>{_epsilons(record.runs)}"
    )


def _epsilons(runs: list[PrivacyRun]) -> str:
    losses = {run["mode"]: run["privacy_loss"] for run in runs if run["privacy_loss"]}
    return "".join(
        f"<p>{escape(mode)}: epsilon {loss['epsilon']:.1f} at delta {loss['delta']:g}, for a user who is in all "
        f"{loss['rounds']} rounds, each with the noise of {loss['honest_devices']} devices that do not collude.</p>"
        for mode, loss in losses.items()
    )


def _row(finding: FindingFields) -> str:
    low, high = finding["interval"]
    cells = (
        _share(finding["predicted"]),
        _share(finding["measured"]),
        f"{_share(low)} to {_share(high)}",
        _limit(finding),
    )
    return row(finding["mode"], cells, finding["verdict"])


def _by_bytes(record: PrivacyRecord) -> str:
    size = {run["mode"]: run["upload_bytes"] for run in record.runs}
    series = []
    for claim in BY_BYTES:
        found = [f for f in record.findings if f["claim"] == claim]
        points = [(size[f["mode"]], f["measured"] or 0.0, f"{f['mode']}: {_share(f['measured'])}") for f in found]
        series.append(Series(claim, points, joined=False))
    return plot("What is read of a device against the bytes it uploads", "bytes of an upload", "share read", series)


def _runs_table(runs: list[PrivacyRun]) -> str:
    """The same in numbers, with the accuracy that the mode reaches in these few rounds."""
    names = ("mode", "cohort", "gate", "open rows", "bytes of an upload", "epsilon", "HR@10", "NDCG@10")
    rows = [
        row(
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
    return table("The runs", names, rows, "Runs")


def _by_cohort(findings: list[FindingFields]) -> str:
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
    return plot("What one sum says of its devices against their number", "devices in the sum", "share read", series)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _limit(finding: FindingFields) -> str:
    if finding["limit"] is None:
        return "none"
    return f"{'at least' if finding['at_least'] else 'at most'} {_share(finding['limit'])}"
