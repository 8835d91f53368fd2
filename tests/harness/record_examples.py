"""One small record of each kind, as its command would write it."""

import json

from lightfr_harness import records
from lightfr_harness.audits import sensitivity
from lightfr_harness.audits.cost import cost_table, findings, formulas, methods, speed
from lightfr_harness.bench import topk as topk_bench
from lightfr_harness.paper import costs
from tests.harness.audits.cost import records as cost_records

POPULAR = {
    "hr": 0.45,
    "ndcg": 0.25,
    "hr_device": 0.455,
    "ndcg_device": 0.255,
    "hr_optimistic": 0.46,
    "ndcg_optimistic": 0.26,
    "liked_hr": 0.52,
    "liked_ndcg": 0.31,
    "disliked_hr": 0.44,
    "n_liked": 486,
    "n_disliked": 216,
    "n_users": 943,
    "k": 10,
}
HERE = {"isa": "avx2", "machine": "x86_64", "lightfr": "0.1.0"}
SHAPE = formulas.Shape(*formulas.DATASETS["ciao"], open_rows=4363)


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


def by_count(ratings, chosen):
    """Figures of one group; `chosen` is the place of the candidate that it uses."""
    rankings = [
        {"by": "codes", "prior": prior, "recency": "weak", "refine": False} for prior in (0.0, 1.0, 2.0, 4.0, 8.0)
    ]
    rankings += [{"by": "codes", "prior": 0.0, "recency": "strong", "refine": True}]
    rankings += [{"by": "popularity", "prior": 0.0, "recency": "off", "refine": False}]
    candidates = [
        {
            "ranking": ranking,
            "evaluated_net": 0.4 - 0.01 * abs(place - chosen),
            "test_net": 0.36 + 0.01 * (place == 5),
            "test_hr": 0.8,
            "test_ndcg": 0.5,
        }
        for place, ranking in enumerate(rankings)
    ]
    return {
        "ratings": ratings,
        "learned": {**POPULAR, "hr": 0.7},
        "popularity": POPULAR,
        "ranking": rankings[chosen],
        "evaluated_opinions": 1262,
        "candidates": candidates,
    }


def train():
    history = [
        {"round": n, "hr": 0.2 + 0.55 * (1 - 0.8**n), "ndcg": 0.1 + 0.34 * (1 - 0.8**n)} for n in range(0, 51, 5)
    ]
    return records.TrainRecord(
        hr=0.75,
        ndcg=0.44,
        hr_device=0.76,
        ndcg_device=0.45,
        hr_optimistic=0.78,
        ndcg_optimistic=0.46,
        liked_hr=0.86,
        liked_ndcg=0.57,
        disliked_hr=0.53,
        n_liked=486,
        n_disliked=216,
        n_users=943,
        k=10,
        popularity=POPULAR,
        by_count=[by_count("20-99", 1), by_count("100+", 2)],
        as_given={"learned": {**POPULAR, "hr": 0.72}, "popularity": POPULAR},
        history=history,
        up_bytes_per_device_round=1300.0,
        down_bytes_per_device_round=14_000.0,
        device_rounds=28_300,
        device_rounds_per_second=6000.0,
        dropped=0,
        abandoned_rounds=0,
        seconds={"load": 0.2, "setup": 0.1, "devices": 4.0, "server": 0.5, "evaluate": 0.6},
        data={
            "users": 943,
            "items": 1682,
            "train_ratings": 99_057,
            "duplicates_dropped": 3,
            "zeros_skipped": 2,
            "negatives_dropped": 1,
            "held_out": "the newest rating of each user by time",
        },
        open_rows=1150,
        privacy_loss={"epsilon": 8.1, "delta": 1e-5, "rho": 1.2, "rounds": 50, "honest_devices": 500},
        paper=None,
        options={
            "data": None,
            "synthetic": "ml-100k",
            "rounds": 50,
            "bits": 64,
            "objective": "catalogue",
            "aggregate": "catalogue",
            "privacy": "secagg+dp",
            "seed": 0,
        },
        **HERE,
    )


def sweep():
    places = {
        "code bits f": ("8", "16", "32", "64"),
        "lambda": ("0.0", "0.0001", "0.001", "0.2", "0.4", "0.6", "0.8", "1.0"),
        "cohort share p": ("0.2", "0.4", "0.6", "0.8", "1.0"),
    }
    points = [
        point(panel, line, x, place)
        for panel, xs in places.items()
        for line in ("catalogue", "paper")
        for place, x in enumerate(xs)
        if panel != "lambda" or line == "paper"
    ]
    names = ("random", "init", "para", "grad", "catalogue")
    points += [
        point("ablation", "catalogue" if name == "catalogue" else "paper", name, 2 * n) for n, name in enumerate(names)
    ]
    return records.SweepRecord(points=points, rounds=50, seeds=1, data="synthetic small", **HERE)


def point(panel, line, x, place):
    hr = (0.5 if line == "catalogue" else 0.3) + 0.03 * place
    key = f"{panel}/{line}/{x}/seed 0"
    return {
        "key": key,
        "panel": panel,
        "line": line,
        "x": x,
        "seed": 0,
        "hr": hr,
        "ndcg": 0.6 * hr,
        "popularity": POPULAR,
    }


def accuracy():
    row = {
        "hr_optimistic": 0.8,
        "needed_hr": 0.775,
        "needed_ndcg": 0.46,
        "popularity": POPULAR,
        "device_rounds_per_second": 6000.0,
    }
    rows = [
        {"row": "64 bits, ternary, gate 10", "hr": 0.78, "ndcg": 0.465, "reached": True, "is_goal": False, **row},
        {"row": "goal: 256 bits, refined", "hr": 0.7, "ndcg": 0.4, "reached": False, "is_goal": True, **row},
    ]
    return records.AccuracyRecord(rows=rows, seeds=[0, 1, 2])


def paper_accuracy():
    row = {
        "protocol": "last-out-49",
        "by_seed": [{"seed": 0, "hr": 0.4, "ndcg": 0.2, "cpu_seconds": 8.0}],
        "validation_ndcg": None,
        "cpu_seconds": 8.0,
        "tuning_cpu_seconds": None,
        "down_bytes": None,
        "up_bytes": None,
        "outcome": "",
        "note": "observed ratings only",
    }
    pmf = {"method": "pmf", "title": "PMF", "family": "centralised", "steps": 50, "hr": 0.4, "ndcg": 0.2, **row}
    pmf |= {"constants": {"learning_rate": 0.01}, "stated_hr": 0.5124, "stated_ndcg": 0.2768}
    ours = pmf | {"method": "lightfr-grad", "title": "LightFR", "down_bytes": 13_456.0, "up_bytes": 9_900.0}
    rows = [
        pmf | {"settings": "authors"},
        pmf | {"settings": "tuned", "tuning_cpu_seconds": 48.0, "validation_ndcg": 0.22, "hr": 0.42},
        ours | {"settings": "authors", "outcome": "diverged", "hr": None, "ndcg": None, "by_seed": []},
        ours | {"settings": "tuned", "stated_hr": None, "stated_ndcg": None},
    ]
    return records.PaperAccuracyRecord(
        rows=rows,
        data="ratings.dat",
        users=6040,
        items=3706,
        ratings=1_000_209,
        held_out={"last-out-49": "the newest rating of each user by time"},
        seeds=1,
        quick=False,
        machine="x86_64",
        lightfr="0",
    )


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


def demo():
    looks = [{"model_version": n + 1, "hr": 0.2 + 0.07 * n, "ndcg": 0.1 + 0.04 * n} for n in range(7)]
    upload = {
        "masked_bytes": 90_000,
        "masked_ones": 0.5,
        "masked_items": 1100,
        "clear_bytes": 1300,
        "clear_items": 40,
        "clear_code_bits": 64,
    }
    return records.DemoRecord(
        users=943,
        items=1682,
        ratings=99_057,
        popularity=POPULAR,
        accuracy=looks,
        device={"before": [1, 2, 3], "after": [7, 8, 9], "rounds": 3},
        upload=upload,
        uploads=1500,
        rounds=6,
        cohort=264,
        minimum_cohort=256,
        processes=16,
        process_rounds=48,
        process_up_bytes=9_000_000,
        process_down_bytes=5_000_000,
        codes_bytes=13_456,
        seconds={"enrol": 3.0, "train": 40.0, "all": 50.0},
    )


def cost():
    record = cost_records.record()
    record["findings"] = [finding.record() for finding in findings.audit(record)]
    return records.from_dict(records.CostRecord, json.loads(json.dumps(record)))


def finding(claim, mode, measured, limit=None):
    return {
        "claim": claim,
        "source": "docs/protocol.md",
        "predicted": 0.1,
        "measured": measured,
        "unit": "share of codes",
        "limit": limit,
        "verdict": "for information" if limit is None else "holds" if measured <= limit else "broken",
        "interval": [measured - 0.01, measured + 0.01],
        "mode": mode,
        "at_least": False,
        "note": "",
    }


def privacy():
    # Mode, bytes of an upload, HR@10, and what is read of codes, ratings and items.
    modes = (
        ("paper", 9_900.0, 0.42, (1.0, 0.995, 1.0)),
        ("clear", 1_300.0, 0.74, (1.0, 0.343, 0.9)),
        ("secagg, cohort 256", 90_000.0, 0.72, (0.11, 0.346, 0.443)),
        ("secagg, cohort 565", 92_000.0, 0.73, (0.09, 0.344, 0.437)),
        ("secagg+dp, cohort 256", 99_000.0, 0.51, (0.08, 0.341, 0.43)),
    )
    claims = ("user codes read from uploads", "ratings recovered exactly", "rated items named")
    found = [
        finding(claim, mode, read[place], read[place] + 0.01 if mode.startswith("secagg") else None)
        for place, claim in enumerate(claims)
        for mode, _, _, read in modes
    ]
    found += [finding("user codes read from one sum", f"secagg, cohort {n}", 1 / n) for n in (1, 4, 16, 64)]
    runs = [
        {
            "mode": mode,
            "cohort": 256,
            "gate": 10,
            "gate_only": False,
            "upload_bytes": size,
            "open_rows": 300,
            "accuracy": {**POPULAR, "hr": hr},
            "privacy_loss": None,
        }
        for mode, size, hr, _ in modes
    ]
    campaign = {"rounds": 200, "rounds_per_device": 16}
    options = {"data": None, "synthetic": "small", **campaign, "bits": 64, "seed": 0, "minimum_cohort": 256}
    return records.PrivacyRecord(
        options=options, findings=found, runs=runs, masked_uploads="the SDK's own in the first round", **HERE
    )


def privacy_methods():
    found = [
        finding("rated items named", "FedMF, part", 1.0),
        finding("ratings recovered exactly", "FedMF, part", 0.34),
        {**finding("privacy, by Table 1", "FedMF, part", 0.56), "verdict": "refuted"},
        finding("rated items named", "PrivRec, reconstructed", 1.0),
        {**finding("epsilon", "PrivRec, reconstructed", 57.3), "note": "Of the published tables."},
    ]
    ours = [
        finding("rated items named", "secagg, cohort 256", 0.44),
        finding("user codes read from uploads", "secagg, cohort 256", 0.0),
    ]
    options = {"data": None, "synthetic": "small", "rounds": 10, "seed": 0}
    return records.MethodsPrivacyRecord(
        options={**options, "methods": ["fedmf-part", "privrec"], "format": "ml-100k"},
        findings=found,
        beside=ours,
        beside_options={**options, "modes": ["secagg"], "rounds": 200, "rounds_per_device": 12},
        machine="x86_64",
        lightfr="0.1.0",
    )


def figure_1():
    timings = [topk(items, bits).__dict__ for bits in (64, 128) for items in (1000, 10_000, 100_000, 1_000_000)]
    sizes = [
        {"items": m, "codes, packed": 8 * m, "codes, the paper's formula": 64 * m, "real values": 256 * m}
        for m in (1000, 10_000, 100_000, 1_000_000)
    ]
    return records.Figure1Record(timings=timings, figure_bits=64, storage_bytes=sizes, communication_bytes=sizes)


def paper_cost_row(name, method):
    """As if a method's real figures were its formula's."""
    timed = name not in cost_table.SENT_OTHERWISE
    ratio = 1.0 if method in (formulas.LIGHTFR, formulas.PACKED) else 60.0
    return {
        "name": name,
        "formula": method.name,
        "storage_bytes": method.storage(SHAPE),
        "storage_formula_bytes": method.storage(SHAPE),
        "down_bytes": method.communication(SHAPE) - 1000,
        "up_bytes": 1000,
        "round_formula_bytes": method.communication(SHAPE),
        "median_ns": 3e4 * ratio if timed else None,
        "min_ns": 2e4 * ratio if timed else None,
        "ratio": ratio if timed else None,
        "ratio_interval": [0.9 * ratio, 1.1 * ratio] if timed else [],
        "min_ratio": ratio if timed else None,
        "note": f"{name}, counted.",
    }


def paper_costs():
    rows = [paper_cost_row(name, method) for name, method in costs.FORMULAS.items()]
    found = json.loads(json.dumps([each.record() for each in methods.audit(SHAPE, rows)]))
    shape = {"items": SHAPE.items, "ratings": SHAPE.ratings, "bits": SHAPE.bits, "open_rows": SHAPE.open_rows}
    return records.PaperCostsRecord(rows=rows, findings=found, dataset="ciao", **shape, seed=0, **HERE)


def paper_figures():
    points = [
        {
            "items": items,
            "bits": 64,
            "codes_ns": 1e3 + items / 5,
            "real_ns": 20.0 * items,
            "ratio": 90.0,
            "ratio_interval": [80.0, 100.0],
            "storage_bytes": topk_bench.storage_bytes(items, 64),
            "communication_bytes": topk_bench.communication_bytes(items, 100, 64),
        }
        for items in (1000, 10_000, 100_000)
    ]
    swept = {"data": "ratings.dat", "points": [each for each in sweep().points if each["panel"] != "ablation"]}
    findings = [*speed.figure_1(points), *sensitivity.audit(swept)]
    found = json.loads(json.dumps([each.record() for each in findings]))
    return records.PaperFiguresRecord(figure_1=points, sweeps=[swept], findings=found, rounds=5, seeds=2, **HERE)


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


SCENARIO = {
    "devices": 10_000_000, "coming": 0.4, "swing": 0.8, "cohorts": 64, "goal": 512, "dropout": 0.1,
    "deadline_seconds": 60.0,
}  # fmt: skip
CONSTANTS = {
    "check_in_cpu_ms": 3.0, "phase_cpu_ms": [2.0] * 7, "phase_bytes": [500] * 7, "open_rows": 2000, "code_bits": 64
}  # fmt: skip


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
    "train": train(),
    "sweep": sweep(),
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
    "accuracy": accuracy(),
    "load": load(),
    "load-secagg": secure_load(),
    "device": device(),
    "demo": demo(),
    "cost": cost(),
    "privacy": privacy(),
    "privacy-methods": privacy_methods(),
    "paper-accuracy": paper_accuracy(),
    "paper-costs": paper_costs(),
    "paper-figures": paper_figures(),
    "scale": scale(),
    "scale-real": scale_real(),
}
