"""Emulated devices as tables and plots: profiles side by side, memory over time, latencies, bytes by message."""

from __future__ import annotations

from html import escape
from typing import Any

from lightfr_harness.devices.record import quantile
from lightfr_harness.reports.figures import figure, in_bytes
from lightfr_harness.reports.page import row, table
from lightfr_harness.reports.svg import Limit, Series, bars, draw, linear_axis, log_axis, share_axis

MIB = 2**20
TIMED = ("fit", "round", "recommend")
Device = dict[str, Any]


def section(devices: list[Device]) -> str:
    """All of it; the plots show one device of each profile, the one that took most memory."""
    if not devices:
        return ""
    shown = _worst_of_each(devices)
    phases = "".join(_figures_table(f"Phases of {name_of(each)}", "phase", each["phases"]) for each in shown)
    messages = "".join(_messages(device) for device in shown)
    return (
        f"<h2>Devices</h2>{side_by_side(devices)}"
        f"<h3>Memory over time</h3>{''.join(_timeline(device) for device in shown)}"
        f"<h3>Latency</h3>{''.join(_latencies(phase, shown) for phase in TIMED)}{_latency_table(shown)}"
        f"<h3>Phases</h3>{phases}{_secure_rounds(shown)}"
        f"<h3>Bytes by message</h3>{messages}"
    )


def side_by_side(devices: list[Device], caption: str = "Profiles side by side") -> str:
    """One row for each device: what it took of what it had."""
    heads = ("profile", "peak memory", "of", "CPU", "up", "down", "on disk", "recommend, p95", "of", "ended")
    names = [name_of(device) for device in devices]
    numbered = [
        f"{name} ({d['number']})" if names.count(name) > 1 else name for name, d in zip(names, devices, strict=True)
    ]
    return table(caption, heads, [_device_row(name, d) for name, d in zip(numbered, devices, strict=True)])


def name_of(device: Device) -> str:
    """The name of its profile."""
    return str(device["profile"]["name"])


def _worst_of_each(devices: list[Device]) -> list[Device]:
    worst: dict[str, Device] = {}
    for device in sorted(devices, key=_peak):
        worst[device["profile"]["name"]] = device
    return sorted(worst.values(), key=lambda device: device.get("number", 0))


def _peak(device: Device) -> int:
    seen = max((size for _, size, _ in device["memory_timeline"]), default=0)
    return int(max(seen, *(phase["peak_rss_bytes"] for phase in device["phases"].values()), 0, 0))


def _mib(value: float) -> str:
    return f"{value / MIB:,.1f} MiB"


def _device_row(name: str, device: Device) -> str:
    profile, phases = device["profile"], device["phases"].values()
    latencies = device["phases"].get("recommend", {}).get("latencies_ms")
    breaches = ", ".join(sorted({f"{breach['kind']} in {breach['phase']}" for breach in device["breaches"]}))
    cells = (
        _mib(_peak(device)),
        _mib(profile["memory_mib"] * MIB),
        f"{sum(phase['cpu_seconds'] for phase in phases):.2f} s",
        in_bytes(sum(phase["up_bytes"] for phase in phases)),
        in_bytes(sum(phase["down_bytes"] for phase in phases)),
        in_bytes(sum(device["disk_bytes"].values())),
        figure(quantile(latencies, 0.95) if latencies else None, "ms"),
        figure(profile["recommend_ms"], "ms"),
        breaches or ("well" if device["finished"] else "early"),
    )
    return row(name, cells)


def _timeline(device: Device) -> str:
    """Resident memory as sampled, one series for each phase so that their marks differ, and the limit drawn in."""
    points, limit = device["memory_timeline"], device["profile"]["memory_mib"]
    if not points:
        return ""
    series: list[Series] = []
    for phase in dict.fromkeys(phase for _, _, phase in points):
        own = [(seconds, size / MIB, "") for seconds, size, of in points if of == phase]
        summary = f"up to {max(size for _, size, _ in own):.1f} MiB from {own[0][0]:.1f} to {own[-1][0]:.1f} s"
        # From where the phase before ended, so that the line has no gaps.
        series.append(Series(phase, [*(series[-1].points[-1:] if series else []), *own], summary=summary))
    sizes = [size / MIB for _, size, _ in points]
    # A limit far above what is used would press the line to the ground: it is then told, not drawn to scale.
    near = limit <= 4 * max(sizes)
    label = f"limit {limit:,.0f} MiB" if near else f"limit {limit:,.0f} MiB, above this drawing"
    up = linear_axis("MiB", [*sizes, 1.12 * limit] if near else [1.2 * max(sizes)])
    across = linear_axis("seconds", [seconds for seconds, _, _ in points])
    title = f"Resident memory of {name_of(device)}"
    return draw(title, across, up, series, Limit(min(limit, up.high), label))


def _latencies(phase: str, devices: list[Device]) -> str:
    """Share of calls that took at most so long, for phases with more than one call."""
    series = []
    for device in devices:
        latencies = sorted(device["phases"].get(phase, {}).get("latencies_ms", []))
        if len(latencies) > 1:
            points = [(ms, (place + 1) / len(latencies), "") for place, ms in enumerate(latencies)]
            summary = f"half within {quantile(latencies, 0.5):.2f} ms, 95 % within {quantile(latencies, 0.95):.2f} ms"
            series.append(Series(name_of(device), points, summary=summary))
    if not series:
        return ""
    across = log_axis("milliseconds", [ms for one in series for ms, _, _ in one.points])
    return draw(f"Calls of {phase} that took at most so long", across, share_axis("share of calls"), series)


def _latency_table(devices: list[Device]) -> str:
    rows = []
    for device in devices:
        for phase in TIMED:
            latencies = device["phases"].get(phase, {}).get("latencies_ms")
            if latencies:
                quantiles = [figure(quantile(latencies, share), "ms") for share in (0.5, 0.95, 0.99)]
                budget = figure(device["profile"][f"{phase}_ms"], "ms")
                rows.append(row(f"{name_of(device)}, {phase}", [str(len(latencies)), *quantiles, budget]))
    return table("Latencies", ("device and phase", "calls", "p50", "p95", "p99", "budget, p95"), rows)


def _secure_rounds(devices: list[Device]) -> str:
    """Stage by stage, for devices that took part in one; the figures are the device's own, under its limits."""
    rounds = {
        name_of(device): device["phases"]["round"]["stages"]
        for device in devices
        if "keys_sent" in device["phases"].get("round", {}).get("stages", {})
    }
    if not rounds:
        return ""
    drawn = ""
    for name, stages in rounds.items():
        told = {stage.replace("_", " "): figures for stage, figures in stages.items()}
        sent = [
            (stage, n := figures["up_bytes"] + figures["down_bytes"], in_bytes(n)) for stage, figures in told.items()
        ]
        drawn += bars(f"Bytes of {name} at the socket, up and down, by stage", sent)
        drawn += _figures_table(f"The secure round of {name}", "stage", told)
    return (
        "<h3>Secure round</h3><p>Each stage goes from the end of the one before to the server's answer. The other "
        "devices of the cohort worked while this one waited between two stages, and that wait is not counted.</p>"
        + drawn
    )


def _figures_table(caption: str, of: str, named: dict[str, dict[str, Any]]) -> str:
    heads = (of, "CPU", "time", "throttled", "up", "down", "peak memory")
    rows = [
        row(
            name,
            (
                f"{figures['cpu_seconds']:.3f} s",
                f"{figures['wall_seconds']:.3f} s",
                f"{figures['throttled_seconds']:.3f} s",
                in_bytes(figures["up_bytes"]),
                in_bytes(figures["down_bytes"]),
                _mib(figures["peak_rss_bytes"]),
            ),
        )
        for name, figures in named.items()
    ]
    return table(caption, heads, rows)


def _messages(device: Device) -> str:
    messages = device["message_bytes"]
    if not messages:
        return f"<p>{escape(name_of(device))}: no message was answered.</p>"
    ordered = sorted(messages.items(), key=lambda message: -sum(message[1]))
    title = f"Bytes inside the messages of {name_of(device)}"
    drawn = bars(title, [(name, up + down, in_bytes(up + down)) for name, (up, down) in ordered])
    rows = [row(name, (f"{up:,}", f"{down:,}")) for name, (up, down) in ordered]
    return drawn + table(title, ("message", "up, bytes", "down, bytes"), rows)
