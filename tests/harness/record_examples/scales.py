"""Records of fleets of millions, simulated and real."""

from lightfr_harness import records

SCENARIO = {
    "devices": 10_000_000, "coming": 0.4, "swing": 0.8, "cohorts": 64, "goal": 512, "dropout": 0.1,
    "deadline_seconds": 60.0,
}  # fmt: skip
CONSTANTS = {
    "check_in_cpu_ms": 3.0, "phase_cpu_ms": [2.0] * 7, "phase_bytes": [500] * 7, "open_rows": 2000, "code_bits": 64
}  # fmt: skip


def scale():
    hour = {"check_ins": 100.0, "device_rounds": 40.0, "cores": 0.7, "database": 0.08}
    answer = {
        "device_rounds": 3_240_000,
        "check_ins": 8_650_000,
        "check_ins_per_place": 2.4,
        "rounds": 57,
        "round_seconds_p50": 815.0,
        "round_seconds_p95": 843.0,
        "cohorts": 5_387,
        "abandoned_cohorts": 0,
        "wait_seconds_p50": 58.0,
        "wait_seconds_p95": 59.0,
        "mean_check_ins_per_second": 100.0,
        "peak_check_ins_per_second": 256.0,
        "peak_over_hour": 1.55,
        "mean_cores": 0.8,
        "busiest_minute_cores": 2.1,
        "replicas": 3,
        "database_busy_mean": 0.07,
        "database_busy_minute": 0.2,
        "inserts_per_second": 270.0,
        "up_bytes_per_second": 4.5e6,
        "up_bytes_per_device_round": 115_000.0,
        "down_bytes_whole": 16_000.0,
        "down_bytes_delta": 3_200.0,
        "hours": [hour, {**hour, "check_ins": 60.0}] * 12,
    }
    return records.ScaleRecord(
        scenario=SCENARIO, constants=CONSTANTS, answer=answer, seconds=30.0, peak_bytes=250_000_000
    )


def scale_real():
    figures = {
        "placed": 300,
        "contributions": 270,
        "check_ins": 700,
        "rounds": 8,
        "round_seconds_p50": 80.0,
        "last_place_seconds": 560.0,
        "peak_check_ins_per_second": 9.0,
        "cpu_ms_per_device_round": 15.0,
    }
    return records.ScaleRealRecord(
        scenario={**SCENARIO, "devices": 300},
        constants=CONSTANTS,
        real=figures,
        simulated={**figures, "check_ins": 690},
        deviation={name: 0.1 * value for name, value in figures.items()},
        written_bytes_per_device_round=400_000.0,
        load_average=2.0,
    )


EXAMPLES = {
    "scale": scale(),
    "scale-real": scale_real(),
}
