"""Records of audits."""

import json

from lightfr_harness import records
from lightfr_harness.audits.cost import findings
from tests.harness.audits.cost import records as cost_records
from tests.harness.record_examples.common import HERE, POPULAR


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


EXAMPLES = {
    "cost": cost(),
    "privacy": privacy(),
    "privacy-methods": privacy_methods(),
}
