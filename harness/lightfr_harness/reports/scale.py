"""What a large fleet takes: one page for the simulated day, one for the real run beside its simulation."""

from __future__ import annotations

from lightfr_harness.records import ScaleAnswer, ScaleRealRecord, ScaleRecord
from lightfr_harness.reports.figures import in_bytes
from lightfr_harness.reports.page import Part, Text, Verdict, document, table
from lightfr_harness.reports.svg import Plot, Series, linear_axis

TITLE = "A day of a large fleet"
REAL_TITLE = "A real run beside its simulation"
# Arrivals that stay below so many times the mean of their hour are no herd.
NO_HERD = 3.0


# Title, unit, and the name and field of each line of a chart.
_CHARTS = (
    ("Devices over the day", "a second", (("check-ins", "check_ins"), ("finished device rounds", "device_rounds"))),
    ("Load over the day", "cores, databases", (("cores of coordinators", "cores"), ("database", "database"))),
)


def page(record: ScaleRecord) -> str:
    """One self-contained HTML page of `simulate scale`."""
    answer = record.answer
    told = table("The day", ("", "simulated"), [(name, [value]) for name, value in answer_rows(answer)])
    charts = [
        _day(title, unit, [(name, [hour[key] for hour in answer["hours"]]) for name, key in lines])  # type: ignore[literal-required]
        for title, unit, lines in _CHARTS
        if len(answer["hours"]) > 1
    ]
    kind = "holds" if answer["peak_over_hour"] < NO_HERD and answer["rounds"] else "broken"
    return document(TITLE, Verdict(verdict(record), kind), [Text(about(record)), told, *charts])


def verdict(record: ScaleRecord) -> str:
    """How many replicas, how long a round, and whether there is a herd."""
    answer = record.answer
    herd = "no herd arises" if answer["peak_over_hour"] < NO_HERD else "A HERD ARISES"
    lasts = f"a round takes {answer['round_seconds_p50'] / 60:.1f} minutes" if answer["rounds"] else "NO ROUND ENDED"
    return (
        f"{answer['replicas']} replica{'s' if answer['replicas'] != 1 else ''} of one core carry "
        f"{record.scenario['devices']:,} devices; {lasts}; "
        f"{herd}: at most {answer['peak_over_hour']:.1f} times the check-ins of the hour in ten seconds."
    )


def about(record: ScaleRecord) -> str:
    """The scenario in words."""
    scenario, constants = record.scenario, record.constants
    return (
        f"In each day {100 * scenario['coming']:.0f} % of the devices come, by a rhythm that swings by "
        f"{100 * scenario['swing']:.0f} %. A round has up to {scenario['cohorts']} cohorts of {scenario['goal']} "
        f"devices, phases of at most {scenario['deadline_seconds']:.0f} s, and loses "
        f"{100 * scenario['dropout']:.0f} % of its devices. "
        f"Uploads are of {constants['open_rows']:,} open rows of {constants['code_bits']} bits."
    )


def answer_rows(answer: ScaleAnswer) -> list[tuple[str, str]]:
    """What the terminal and the page list."""
    return [
        ("finished device rounds", f"{answer['device_rounds']:,}"),
        ("check-ins for each place", f"{answer['check_ins_per_place']:.2f}"),
        ("rounds", f"{answer['rounds']:,}"),
        (
            "a round takes, median and 95 %",
            f"{answer['round_seconds_p50']:,.0f} s, {answer['round_seconds_p95']:,.0f} s" if answer["rounds"] else "-",
        ),
        ("cohorts summed, abandoned", f"{answer['cohorts']:,}, {answer['abandoned_cohorts']:,}"),
        ("a device waits for its roster, median", f"{answer['wait_seconds_p50']:,.0f} s"),
        (
            "check-ins a second, mean and most in ten seconds",
            f"{answer['mean_check_ins_per_second']:,.1f}, {answer['peak_check_ins_per_second']:,.1f}",
        ),
        ("most over the mean of its hour", f"{answer['peak_over_hour']:.2f}"),
        ("busy cores, mean and busiest minute", f"{answer['mean_cores']:.2f}, {answer['busiest_minute_cores']:.2f}"),
        ("replicas of one core, at most 70 % busy", f"{answer['replicas']:,}"),
        (
            "database busy, mean and busiest minute",
            f"{100 * answer['database_busy_mean']:.1f} %, {100 * answer['database_busy_minute']:.1f} %",
        ),
        ("inserts a second", f"{answer['inserts_per_second']:,.0f}"),
        ("bytes up a second", in_bytes(answer["up_bytes_per_second"])),
        ("bytes up of a device round", in_bytes(answer["up_bytes_per_device_round"])),
        (
            "codes that a device fetches, whole and as a delta",
            f"{in_bytes(answer['down_bytes_whole'])}, {in_bytes(answer['down_bytes_delta'])}",
        ),
    ]


def _day(title: str, unit: str, lines: list[tuple[str, list[float]]]) -> Plot:
    series = [
        Series(name, [(hour, value, f"{hour} h: {value:,.2f}") for hour, value in enumerate(values)])
        for name, values in lines
    ]
    most = max(value for _, values in lines for value in values)
    across = linear_axis("hour of the day", [len(lines[0][1]) - 1], marks=range(0, len(lines[0][1]), 3))
    return Plot(title, across, linear_axis(unit, [most]), series)


REAL_HEADS = ("", "real", "simulated")


def real_page(record: ScaleRealRecord) -> str:
    """One self-contained HTML page of `simulate real`."""
    rows = [(name, [real, simulated]) for name, real, simulated in real_rows(record)]
    costs = zip(record.constants["phase_cpu_ms"], record.constants["phase_bytes"], strict=True)
    phases = [(str(phase), [f"{ms:.2f} ms", f"{size:,}"]) for phase, (ms, size) in enumerate(costs, 1)]
    said = (
        f"A check-in that is turned away costs the server {record.constants['check_in_cpu_ms']:.2f} ms of CPU; to disk "
        f"went {in_bytes(record.written_bytes_per_device_round)} a device round. The machine's load was "
        f"{record.load_average:.1f}."
    )
    rounds = f"{record.real['rounds']:,.0f} real rounds, {record.simulated['rounds']:,.0f} simulated."
    parts: list[Part] = [
        table(f"{record.scenario['devices']:,} devices", REAL_HEADS, rows),
        Text(said),
        table("What a device costs the server", ("phase", "CPU", "bytes up"), phases),
    ]
    return document(REAL_TITLE, Verdict(rounds), parts)


def real_rows(record: ScaleRealRecord) -> list[tuple[str, str, str]]:
    """What the terminal and the page list."""
    real, simulated, chance = record.real, record.simulated, record.deviation
    named = (
        ("places given", "placed", "{:,.0f}"), ("devices that took all steps", "contributions", "{:,.0f}"),
        ("check-ins", "check_ins", "{:,.0f}"), ("rounds", "rounds", "{:,.0f}"),
        ("a round takes, median", "round_seconds_p50", "{:,.0f} s"),
        ("the last device came after", "last_place_seconds", "{:,.0f} s"),
        ("most check-ins a second, in ten", "peak_check_ins_per_second", "{:,.1f}"),
        ("server CPU of a device round", "cpu_ms_per_device_round", "{:,.1f} ms"),
    )  # fmt: skip
    return [
        (name, text.format(real[key]), f"{text.format(simulated[key])} ± {text.format(chance[key])}")  # type: ignore[literal-required]
        for name, key, text in named
    ]
