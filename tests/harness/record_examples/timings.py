"""Records of benchmarks."""

from lightfr_harness import records


def topk(items=1_000_000, bits=64, batch=1):
    nanoseconds = {"ours": 0.4 * items, "floor": 0.3 * items, "faiss": 1.2 * items, "float64": 20.0 * items}
    times = {f"{name}{kind}_ns": ns for name, ns in nanoseconds.items() for kind in ("", "_median")}
    ratios = {"faiss_ratio": 3.0, "float64_ratio": 50.0, "floor_ratio": 1.33}
    return records.TopkRecord(
        items=items,
        bits=bits,
        batch=batch,
        codes="random",
        k=10,
        seed=0,
        isa="avx2",
        machine="x86_64",
        repeats=40,
        **times,
        **ratios,
        **{f"{name}_median": ratio for name, ratio in ratios.items()},
    )


def figure_1():
    timings = [topk(items, bits).__dict__ for bits in (64, 128) for items in (1000, 10_000, 100_000, 1_000_000)]
    sizes = [
        {"items": m, "codes, packed": 8 * m, "codes, the paper's formula": 64 * m, "real values": 256 * m}
        for m in (1000, 10_000, 100_000, 1_000_000)
    ]
    return records.Figure1Record(timings=timings, figure_bits=64, storage_bytes=sizes, communication_bytes=sizes)


def load():
    latency = {"min": 5.0, "p50": 12.0, "p95": 40.0, "p99": 90.0, "max": 140.0}
    units = {
        "asked_per_second": 160.0,
        "accepted_per_second": 158.2,
        "accepted": 9492,
        "errors": {},
        "told_to_come_back": 12,
        "request_bytes": 2668,
        "seconds": 60.0,
        "latency_ms": latency,
        "client_cpu_ms_each": 2.1,
        "server_cpu_ms_each": 3.2,
        "server_rss_bytes": 90_000_000,
        "load_average": 1.7,
    }
    held = {
        "connections": 2000,
        "open_at_the_server": 2000,
        "check_ins": 8000,
        "turns": 4,
        "errors": 0,
        "server_rss_before_bytes": 90_000_000,
        "server_rss_bytes": 170_000_000,
        "kilobytes_each": 40.0,
    }
    return records.LoadRecord(units=[units], held=held)


def secure_load():
    one = {
        "server": "SQLite",
        "devices": 512,
        "uploaded": 487,
        "dropped": 25,
        "errors": {},
        "request_bytes": 176_221,
        "seconds": 42.0,
        "latency_ms": {"min": 1.0, "p50": 40.0, "p95": 200.0, "p99": 350.0, "max": 420.0},
        "client_cpu_ms_each": 4.3,
        "server_cpu_ms_each": 9.1,
        "database_cpu_ms_each": 0.0,
        "server_written_bytes_each": 820_000.0,
        "server_peak_rss_bytes": 140_000_000,
        "load_average": 1.7,
    }
    return records.SecureLoadRecord(cohort=512, open_rows=2000, bits=64, dropout=0.05, processes=2, rounds=[one])


def device():
    call = {"count": 1, "request_bytes": 176_207, "answer_bytes": 38}
    secure = {
        "open_rows": 2000,
        "cohort": 512,
        "peak_rss_bytes": 47_000_000,
        "cpu_ms": 64.0,
        "most_threads": 1,
        "loaded": [],
        "up_bytes": 193_682,
        "down_bytes": 174_878,
        "calls": {"Upload": call},
    }
    return records.DeviceRecord(
        items=1_000_000,
        open_items=100_000,
        bits=64,
        ratings=166,
        import_cpu_ms_min=10.0,
        import_cpu_ms_median=13.0,
        bare_rss_bytes=11_000_000,
        peak_rss_bytes=46_800_000,
        most_threads=1,
        loaded=[],
        codes_bytes=8_000_000,
        catalogue_bytes=4_000_000,
        first_sync_bytes=12_031_593,
        first_sync_over_codes_bytes=31_593,
        first_sync_limit_bytes=96_384,
        upload_payload_bytes=1300,
        upload_overhead_bytes=489,
        changed_rows_bytes=80_000,
        delta_sync_bytes=91_840,
        delta_ratio=1.148,
        phases={},
        secure=secure,
    )


EXAMPLES = {
    "topk": topk(),
    "figure-1": figure_1(),
    "fit": records.FitRecord(rated=166, bits=64, numpy_ratio=80.0, numpy_ratio_median=75.0, ours_ns=9e4, repeats=40),
    "open-rows": records.OpenRowsRecord(
        items=1_000_000,
        open_items=98_000,
        bits=64,
        bitmap="prefix",
        k=10,
        seed=0,
        ratio=8.0,
        ratio_median=7.9,
        open_ns=1.7e4,
        full_ns=1.4e5,
        prior_ratio=7.5,
        prior_ratio_median=7.4,
        prior_open_ns=1.8e4,
        prior_full_ns=1.4e5,
        repeats=40,
    ),
    "rounds": records.RoundsRecord(
        bits=64,
        us_by_ratings={"64": 60.0, "256": 110.0, "1024": 300.0},
        us_by_items={"10000": 90.0, "100000": 95.0},
        us_by_devices={"100": 80.0, "10000": 85.0},
        exponent_in_ratings=0.9,
    ),
    "load": load(),
    "load-secagg": secure_load(),
    "device": device(),
}
