"""Accuracy, as the expectation under random tie-breaking, with the optimistic rule beside it."""

from .errors import EvaluationError
from .full_catalogue import CatalogueMetrics, ScoreUsers, evaluate_catalogue
from .popularity import popularity_of_candidates, popularity_scores
from .ranking import Metrics, evaluate_candidates

__all__ = [
    "CatalogueMetrics",
    "EvaluationError",
    "Metrics",
    "ScoreUsers",
    "evaluate_candidates",
    "evaluate_catalogue",
    "popularity_of_candidates",
    "popularity_scores",
]
