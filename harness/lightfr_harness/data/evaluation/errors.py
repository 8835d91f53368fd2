"""What can go wrong when accuracy is measured."""

from __future__ import annotations

from lightfr.errors import InvalidInputError


class EvaluationError(InvalidInputError):
    """A question that has no honest answer: fix K, the scores or the candidates."""
