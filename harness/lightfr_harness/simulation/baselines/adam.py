"""Adam (Kingma and Ba, 2015) on whole arrays and on some of their rows, and random starts of layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# float32 in training, where speed needs it, and float64 where tests check gradients.
Array = npt.NDArray[np.floating[Any]]
Parameters = dict[str, Array]
Rows = npt.NDArray[np.integer[Any]]

FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.999, 1e-8
NUMBERS_AT_ONCE = 1 << 16
"""So many stay in the processor's cache from one operation to the next, which is twice as fast for large tables."""


class Adam:
    """Moves parameters in place. Weight decay is added to the gradient, as L2 regularisation is.

    `rows` says that the gradient is of those rows alone, each named once. The others stay as they are, and so do
    their moments: the usual shortcut for tables. Plain Adam lets rows without a gradient coast on for a while.
    `rates` names parameters that have a rate of their own.
    """

    def __init__(
        self, parameters: Parameters, rate: float, weight_decay: float = 0.0, rates: dict[str, float] | None = None
    ) -> None:
        self._parameters, self._weight_decay = parameters, weight_decay
        self._rates = dict.fromkeys(parameters, rate) | (rates or {})
        self._mean = {name: np.zeros_like(values) for name, values in parameters.items()}
        self._square = {name: np.zeros_like(values) for name, values in parameters.items()}
        self._steps = 0

    def step(self, gradients: Parameters, rows: dict[str, Rows] | None = None) -> None:
        """One step; parameters without a gradient stay."""
        self._steps += 1
        for name, gradient in gradients.items():
            named = None if rows is None else rows.get(name)
            at_once = max(1, NUMBERS_AT_ONCE * len(gradient) // gradient.size)
            for first in range(0, len(gradient), at_once):
                part = slice(first, first + at_once)
                self._move(name, gradient[part], part if named is None else named[part])

    def _move(self, name: str, gradient: Array, where: slice | Rows) -> None:
        values = self._parameters[name]
        if self._weight_decay:
            gradient = gradient + self._weight_decay * values[where]
        mean = FIRST_DECAY * self._mean[name][where] + (1 - FIRST_DECAY) * gradient
        square = SECOND_DECAY * self._square[name][where] + (1 - SECOND_DECAY) * gradient * gradient
        self._mean[name][where], self._square[name][where] = mean, square
        rate = self._rates[name] / (1 - FIRST_DECAY**self._steps)
        values[where] -= rate * mean / (np.sqrt(square / (1 - SECOND_DECAY**self._steps)) + TINY)


def clip_norm(gradients: Parameters, largest: float) -> None:
    """Scale all gradients down, in place, so that together they are no longer than `largest`."""
    norm = np.sqrt(sum(float(np.vdot(values, values)) for values in gradients.values()))
    if norm > largest:
        for values in gradients.values():
            values *= largest / norm


def row_sums(rows: Rows, values: Array) -> tuple[Rows, Array]:
    """Each row once, in order, with the sum of its values."""
    order = np.argsort(rows, kind="stable")
    in_order = rows[order]
    starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
    return in_order[starts], np.add.reduceat(values[order], starts, axis=0)


def xavier(draws: np.random.Generator, inputs: int, outputs: int) -> npt.NDArray[np.float64]:
    """Weights of a layer, of shape (inputs, outputs): normal, of variance 2 / (inputs + outputs)."""
    return draws.normal(0, np.sqrt(2 / (inputs + outputs)), (inputs, outputs))


def sigmoid(logits: Array) -> Array:
    """Without overflow at either end."""
    chance: Array = 0.5 * (1 + np.tanh(0.5 * logits))
    return chance
