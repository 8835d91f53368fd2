"""The accuracy that the paper states, for records to say how far they are from it."""

from __future__ import annotations

from typing import Any

from lightfr_harness.simulation.options import TrainOptions

# HR@10 and NDCG@10 by data set and method, table of the LightFR paper.
STATED: dict[str, dict[str, tuple[float, float]]] = {
    "ml-1m": {"grad": (0.5014, 0.2709), "para": (0.4942, 0.2618), "init": (0.3110, 0.1542), "random": (0.2419, 0.1043)},
    "filmtrust": {
        "grad": (0.8615, 0.6565),
        "para": (0.8589, 0.6554),
        "init": (0.6129, 0.4932),
        "random": (0.5793, 0.3531),
    },
    "douban": {
        "grad": (0.2934, 0.1665),
        "para": (0.2913, 0.1619),
        "init": (0.1832, 0.1193),
        "random": (0.1408, 0.0893),
    },
    "ciao": {"grad": (0.4556, 0.2413), "para": (0.4489, 0.2267), "init": (0.3105, 0.1632), "random": (0.2882, 0.1254)},
}


def compare(options: TrainOptions, metrics: dict[str, Any]) -> dict[str, Any] | None:
    """What the paper states for this data set and method and how far the run is from it; None in our own objective."""
    if options.objective != "paper":
        return None
    stated = STATED.get(options.format, {}).get(options.aggregate) if options.data else None
    if stated is None or "hr" not in metrics:
        return {"stated": None, "reason": "the paper states no figure for this data set and evaluation"}
    return {
        "stated": {"hr": stated[0], "ndcg": stated[1]},
        "hr_difference": metrics["hr"] - stated[0],
        "ndcg_difference": metrics["ndcg"] - stated[1],
    }
