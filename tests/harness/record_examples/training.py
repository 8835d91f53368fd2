"""Records of training runs."""

from lightfr_harness import records
from tests.harness.record_examples.common import HERE, POPULAR


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


EXAMPLES = {
    "train": train(),
    "sweep": sweep(),
    "accuracy": accuracy(),
    "demo": demo(),
}
