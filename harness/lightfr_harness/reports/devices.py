"""Emulated devices as tables and plots: shares of budgets, memory over time, latencies, bytes by message, energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightfr_harness.audits.cost.budgets import own_memory
from lightfr_harness.audits.cost.energy import PARTS, ROUNDS_A_DAY
from lightfr_harness.devices.record import quantile
from lightfr_harness.reports.figures import MIB, figure, in_bytes, in_joules, in_mib
from lightfr_harness.reports.page import Meter, Panels, Part, Row, Section, Table, Text, notes, table
from lightfr_harness.reports.svg import Plot, Series, bars, linear_axis, log_axis, share_axis

TIMED = ("fit", "round", "recommend")
BUDGET = "budget: "
ENERGY_FIGURES = ("core_watts", "up_joules_per_mb", "down_joules_per_mb", "wake_joules", "battery_wh")
FIGURE_HEADS = ("CPU", "time", "throttled", "up", "down", "peak resident memory")
Device = dict[str, Any]


def sections(devices: list[Device], findings: Sequence[Mapping[str, Any]]) -> list[Part]:
    """All of it; after the overview, one device of each profile is shown, the one that took most memory."""
    if not devices:
        return []
    shown = _worst_of_each(devices)
    latencies = [drawn for phase in TIMED if (drawn := _latencies(phase, shown))]
    phases = {f"{name_of(each)}, {phase}": told for each in shown for phase, told in each["phases"].items()}
    overview: list[Part] = [_shares(devices, findings), side_by_side(devices)]
    memory = Text(
        "Memory is what a device cannot drop and read again; the limits are about it. Resident memory, below, also "
        "counts pages of files: the interpreter's, the libraries', and the codes'.",
        kind="note",
    )
    return [
        Section("Devices", [*overview, memory, *_timeline(shown)]),
        Section("Latency", [Panels(latencies), _latency_table(shown)]),
        Section("Phases", [_figures_table("Phases of each device", "device and phase", phases)]),
        *_secure_rounds(shown),
        Section("Bytes by message", _messages(shown)),
    ]


def name_of(device: Device) -> str:
    """The name of its profile."""
    return str(device["profile"]["name"])


def _shares(devices: list[Device], findings: Sequence[Mapping[str, Any]]) -> Table:
    """How much of each limit each profile took: the audit's findings about budgets, at one glance."""
    budgets = [each for each in findings if each["claim"].startswith(BUDGET)]
    claims = list(dict.fromkeys(each["claim"] for each in budgets))
    rows = []
    for name in dict.fromkeys(map(name_of, devices)):
        of_it = [each for each in budgets if each["mode"] == name or each["mode"].startswith(f"{name}, ")]
        cells = [_share([each for each in of_it if each["claim"] == claim]) for claim in claims]
        rows.append(Row(name, cells))
    heads = [claim.removeprefix(BUDGET).removeprefix("latency of ") for claim in claims]
    return Table("Share of budget by device and limit", ("device", *heads), rows)


def _share(findings: Sequence[Mapping[str, Any]]) -> str | Meter:
    """The worst of them; a dash for what was not measured."""
    shares = [each["measured"] / each["limit"] if each["limit"] else float("inf") for each in findings]
    if not shares:
        return "-"
    kind = "broken" if any(each["verdict"] == "broken" for each in findings) else ""
    worst = max(shares)
    text = "failed" if worst == float("inf") else f"{100 * worst:.2g} %" if worst < 0.1 else f"{100 * worst:,.0f} %"
    return Meter(worst, text, kind)


def side_by_side(devices: list[Device], caption: str = "Profiles side by side") -> Table:
    """One row for each device: what it took of what it had."""
    heads = (
        "profile", "memory", "granted", "CPU", "up", "down", "on disk", "recommend, p95", "allowed", "ended"
    )  # fmt: skip
    names = [name_of(device) for device in devices]
    numbered = [
        f"{name} ({d['number']})" if names.count(name) > 1 else name for name, d in zip(names, devices, strict=True)
    ]
    return table(caption, heads, [(name, _cells(d)) for name, d in zip(numbered, devices, strict=True)])


def _worst_of_each(devices: list[Device]) -> list[Device]:
    worst: dict[str, Device] = {}
    for device in sorted(devices, key=own_memory):
        worst[name_of(device)] = device
    return sorted(worst.values(), key=lambda device: device.get("number", 0))


def _cells(device: Device) -> list[str]:
    profile, phases = device["profile"], device["phases"].values()
    latencies = device["phases"].get("recommend", {}).get("latencies_ms")
    breaches = ", ".join(sorted({f"{breach['kind']} in {breach['phase']}" for breach in device["breaches"]}))
    broken = [breach["actual"] for breach in device["breaches"] if breach["kind"] == "memory"]
    return [
        in_mib(max([own_memory(device), *broken])),
        in_mib(profile["memory_mib"] * MIB),
        f"{sum(phase['cpu_seconds'] for phase in phases):.2f} s",
        in_bytes(sum(phase["up_bytes"] for phase in phases)),
        in_bytes(sum(phase["down_bytes"] for phase in phases)),
        in_bytes(sum(device["disk_bytes"].values())),
        figure(quantile(latencies, 0.95) if latencies else None, "ms"),
        figure(profile["recommend_ms"], "ms"),
        breaches or ("well" if device["finished"] else "early"),
    ]


def _timeline(devices: list[Device]) -> list[Part]:
    """Resident memory as sampled, a line for each device; the peaks of its phases, and its limit, are said."""
    series = []
    for device in devices:
        points, peaks = device["memory_timeline"], dict[str, float]()
        for _, size, phase in points:
            peaks[phase] = max(size / MIB, peaks.get(phase, 0.0))
        said = ", ".join(f"{phase} up to {size:.1f} MiB" for phase, size in peaks.items())
        name = f"{name_of(device)}, limit {device['profile']['memory_mib']:,.0f} MiB"
        if points:
            series.append(Series(name, [(at, size / MIB, "") for at, size, _ in points], summary=said))
    if not series:
        return []
    across = log_axis("seconds since the start", [x for one in series for x, _, _ in one.points])
    up = linear_axis("MiB", [1.1 * y for one in series for _, y, _ in one.points])
    return [Plot("Resident memory over time", across, up, series)]


def _latencies(phase: str, devices: list[Device]) -> Plot | None:
    """Share of calls that took at most so long, for phases with more than one call."""
    series = []
    for device in devices:
        latencies = sorted(device["phases"].get(phase, {}).get("latencies_ms", []))
        if len(latencies) > 1:
            points = [(ms, (place + 1) / len(latencies), "") for place, ms in enumerate(latencies)]
            summary = f"half within {quantile(latencies, 0.5):.2f} ms, 95 % within {quantile(latencies, 0.95):.2f} ms"
            series.append(Series(name_of(device), points, summary=summary))
    if not series:
        return None
    across = log_axis("milliseconds", [ms for one in series for ms, _, _ in one.points])
    return Plot(f"Calls of {phase} that took at most so long", across, share_axis("share of calls"), series)


def _latency_table(devices: list[Device]) -> Table:
    rows = []
    for device in devices:
        for phase in TIMED:
            latencies = device["phases"].get(phase, {}).get("latencies_ms")
            if latencies:
                quantiles = [figure(quantile(latencies, share), "ms") for share in (0.5, 0.95, 0.99)]
                budget = figure(device["profile"][f"{phase}_ms"], "ms")
                rows.append((f"{name_of(device)}, {phase}", [str(len(latencies)), *quantiles, budget]))
    return table("Latencies", ("device and phase", "calls", "p50", "p95", "p99", "budget, p95"), rows)


def _secure_rounds(devices: list[Device]) -> list[Part]:
    """Stage by stage, for devices that took part in one; the figures are the device's own, under its limits."""
    rounds = {
        name_of(device): device["phases"]["round"]["stages"]
        for device in devices
        if "keys_sent" in device["phases"].get("round", {}).get("stages", {})
    }
    if not rounds:
        return []
    about = (
        "Each stage goes from the end of the one before to the server's answer. The other devices of the cohort worked "
        "while this one waited between two stages, and that wait is not counted."
    )
    first, stages = next(iter(rounds.items()))
    sent = [
        (stage.replace("_", " "), n := figures["up_bytes"] + figures["down_bytes"], in_bytes(n))
        for stage, figures in stages.items()
    ]
    told = {f"{name}, {stage.replace('_', ' ')}": each for name, of in rounds.items() for stage, each in of.items()}
    drawn = bars(f"Bytes of {first} at the socket, up and down, by stage", sent)
    numbers = _figures_table("The secure round of each device", "device and stage", told)
    return [Section("Secure round", [Text(about), drawn, numbers])]


def _figures_table(caption: str, of: str, named: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        (
            name,
            [
                f"{figures['cpu_seconds']:.3f} s",
                f"{figures['wall_seconds']:.3f} s",
                f"{figures['throttled_seconds']:.3f} s",
                in_bytes(figures["up_bytes"]),
                in_bytes(figures["down_bytes"]),
                in_mib(figures["peak_rss_bytes"]),
            ],
        )
        for name, figures in named.items()
    ]
    return table(caption, (of, *FIGURE_HEADS), rows)


def _messages(devices: list[Device]) -> list[Part]:
    """Those of the first device are drawn: the others' differ in how often they asked."""
    silent = [name_of(device) for device in devices if not device["message_bytes"]]
    said: list[Part] = [Text(f"{name}: no message was answered.") for name in silent]
    heard = [device for device in devices if device["message_bytes"]]
    if not heard:
        return said
    ordered = sorted(heard[0]["message_bytes"].items(), key=lambda message: -sum(message[1]))
    drawn = bars(
        f"Bytes inside the messages of {name_of(heard[0])}",
        [(name, up + down, in_bytes(up + down)) for name, (up, down) in ordered],
    )
    names = dict.fromkeys([name for name, _ in ordered] + [name for each in heard for name in each["message_bytes"]])
    rows = []
    for name in names:
        pairs = (device["message_bytes"].get(name) for device in heard)
        rows.append((name, [f"{pair[0]:,} / {pair[1]:,}" if pair else "-" for pair in pairs]))
    caption = "Bytes inside the messages, up / down"
    return [*said, drawn, table(caption, ("message", *map(name_of, heard)), rows)]


def energy(devices: list[Device], estimates: Mapping[str, Any]) -> Section | None:
    """What the audit's record estimates, with the constants behind it."""
    if not estimates:
        return None
    about = (
        "An estimate: CPU seconds times the power of the core, bytes times what the radio takes for them, and a "
        "wake-up of the radio for the sync and for each stage of the round. A day is a session like this one with "
        f"{ROUNDS_A_DAY:g} of a round, which is what the SDK's budget of rounds grants. A first session downloads the "
        "whole catalogue: later ones take less."
    )
    rows, shares = [], []
    for name, spans in estimates.items():
        for span, spent in spans.items():
            share = spent["battery_share"]
            told = "no battery" if share is None else f"{100 * share:.2g} %"
            rows.append((f"{name}, a {span}", [*(in_joules(spent[key]) for key in (*PARTS, "joules")), told]))
            if span == "day" and share is not None:
                shares.append((name, share, told))
    drawn = [bars("Share of the battery that a day takes, estimated", shares)] if shares else []
    heads = ("device and span", "CPU", "radio, bytes", "radio, wake-ups", "in all", "of the battery")
    constants = [
        f"{name_of(device)}: {key} {device['profile'][key]:g}: {device['profile']['sources'][key]}"
        for device in _worst_of_each(devices)
        for key in ENERGY_FIGURES
        if key in device["profile"].get("sources", {})
    ]
    return Section("Energy", [Text(about), *drawn, table("Energy, estimated", heads, rows), *notes(constants)])
