"""A cost record made by hand, in the shape that the runner gives, and ways to spoil it."""

from lightfr_harness.audits.cost import energy

MIB = 2**20
ITEMS, RATINGS, BITS = 105_096, 38, 64
OPEN_ROWS = 2000
CODES, CATALOGUE, UPLOAD = (OPEN_ROWS + 1) * BITS // 8, 3 * ITEMS, 857
SIZES = {"items": ITEMS, "ratings": RATINGS, "bits": BITS, "dataset": "ciao", "cohort": 256, "open_rows": OPEN_ROWS}
# 256 devices: 10 bits an element, and 16 for each of the 65 sums; 80 holders, and a quorum of 179.
ROWS, SUMS = OPEN_ROWS * 64 * 10 // 8, 65 * 16 // 8


def profile(**figures):
    return {
        "name": "mid-phone",
        "memory_mib": 256,
        "storage_mib": 512,
        "up_mib_per_day": 10,
        "down_mib_per_day": 512,
        "fit_ms": 5000,
        "round_ms": 60_000,
        "recommend_ms": 100,
        "relative_speed": 0.5,
        "core_watts": 1.0,
        "up_joules_per_mb": 4.0,
        "down_joules_per_mb": 0.5,
        "wake_joules": 2.0,
        "battery_wh": 10.0,
        "sources": {"core_watts": "estimate: made up"},
        **figures,
    }


def phase(up=0, down=0, latencies=()):
    return {
        "cpu_seconds": 0.2,
        "wall_seconds": 0.5,
        "throttled_seconds": 0.0,
        "up_bytes": up,
        "down_bytes": down,
        "peak_rss_bytes": 37 * MIB,
        "latencies_ms": list(latencies),
    }


def device(**changes):
    return {
        "number": 0,
        "finished": True,
        "ended": "",
        "profile": profile(),
        "phases": {
            "open": phase(),
            "sync": phase(1_800, CODES + CATALOGUE + 5_700),
            "fit": phase(latencies=[4.0, 5.0, 6.0]),
            "round": phase(1_340, 380, [34.0]),
            "recommend": phase(latencies=[0.1, 0.2, 0.3, 0.4]),
        },
        "memory_timeline": [[0.1, 8 * MIB, "open"], [0.6, 36 * MIB, "sync"], [1.2, 37 * MIB, "recommend"]],
        "peak_charged_bytes": 20 * MIB,
        "peak_anonymous_bytes": 17 * MIB,
        "peak_data_bytes": 17 * MIB,
        "disk_bytes": {"codes": CODES, "open_rows": 40, "catalogue": CATALOGUE, "store": 1_929, "other": 184},
        "message_bytes": {"codes": [0, CODES], "catalogue": [0, CATALOGUE], "Upload": [UPLOAD, 52]},
        "breaches": [],
        **changes,
    }


def secure_device(**changes):
    """The same device after a round of secure aggregation."""
    stages = {
        "placed": phase(250, 215),
        "keys_sent": phase(640, 13_700),
        "shares_sent": phase(8_400, 64_000),
        "shares_acknowledged": phase(550, 8_300),
        "included_signed": phase(600, 550),
        "uploaded": phase(ROWS + SUMS + 600, 12_000),
        "survivors_signed": phase(600, 550),
        "revealed": phase(3_500, 12_000),
        "finished": phase(250, 130),
    }
    for stage in stages.values():
        del stage["latencies_ms"]
    made = device()
    up, down = (sum(stage[f"{way}_bytes"] for stage in stages.values()) for way in ("up", "down"))
    made["phases"]["round"] = {**phase(up, down, [900.0]), "stages": stages}
    made["message_bytes"] |= {
        "Upload": [ROWS + SUMS + 77, 52],
        "AdvertiseKeys": [258, 0],
        "ShareKeys": [80 * 98 + 21, 0],
        "AcknowledgeShares": [52, 0],
        "SignIncluded": [84, 0],
        "SignSurvivors": [84, 0],
        "RevealShares": [81 * 37 + 21, 0],
        "GetStep": [140, 256 * 248 + 80 * 98 + (3 + 2 * 179) * 64 + 4 * 32 + 40],
    }
    return {**made, **changes}


def secure_record(*devices, **changes):
    return record(*(devices or [secure_device()]), scenario={**SIZES, "privacy": "secagg"}, **changes)


def breach(kind, phase, limit, actual):
    return {"kind": kind, "phase": phase, "seconds": 3.25, "limit": limit, "actual": actual}


def timing(items, ratio=50.0):
    return {
        "items": items,
        "bits": 64,
        "codes_ns": 1e3,
        "real_ns": 1e3 * ratio,
        "ratio": ratio,
        "ratio_interval": [0.9 * ratio, 1.1 * ratio],
        "storage_bytes": {
            "codes, packed": items * 8.0,
            "codes, the paper's formula": items * 64.0,
            "real values": items * 256.0,
        },
        "communication_bytes": {
            "codes, packed": items * 8.0,
            "codes, the paper's formula": items * 64.0,
            "real values": items * 256.0,
        },
    }


def power_law(exponent, sizes=(100, 200, 400, 800)):
    """Samples of a fit whose time grows with that power, 1 % apart."""
    return [[size, [1e-6 * size**exponent * (1 + 0.01 * n) for n in range(5)]] for size in sizes]


def record(*devices, **changes):
    devices = list(devices or [device()])
    return {
        "format": 1,
        "kind": "cost",
        "version": "0.1.0",
        "seed": 0,
        "scenario": {**SIZES, "privacy": "clear"},
        "profiles": ["mid-phone"],
        "machine": {},
        "interrupted": False,
        "devices": {
            "enforcement": {"memory": "cgroup-v1", "cpu": "cgroup-v1"},
            "interrupted": False,
            "devices": devices,
        },
        "baselines": {
            "fcf": {
                "storage_bytes": 256 * (1 + ITEMS),
                "round_bytes": 256 * ITEMS + 259 * RATINGS,
                "published_round_bytes": 512 * ITEMS,
            }
        },
        "training": {
            "bits": {"points": power_law(2), "note": "n"},
            "ratings": {"points": power_law(1), "note": "n"},
            "items": {"points": power_law(1), "note": "n"},
        },
        "inference": timing(ITEMS),
        "search": {
            "rows": OPEN_ROWS + 1,
            "items": ITEMS,
            "open_rows_ns": 2e3,
            "every_item_ns": 2e4,
            "ratio": 10.0,
            "ratio_interval": [9.0, 11.0],
        },
        "figure_1": [timing(10**power) for power in range(3, 8)],
        "energy": energy.estimates(devices),
        **changes,
    }
