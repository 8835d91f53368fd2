"""NCF, in its form NeuMF: He, Liao, Zhang, Nie, Hu, Chua, *Neural Collaborative Filtering*, WWW 2017. Centralised.

A user and an item each have two embeddings: one of `factors` numbers for GMF, one of 32 for the MLP.

    g = p_u * q_i (element by element);  a_0 = [p'_u, q'_i];  a_k = relu(a_(k-1) W_k + b_k), of 64-32-16-8 units
    logit = [g, a_3] h + b,  trained by binary cross-entropy and Adam

Each rating of train is a positive, whatever its value, with `negatives` unrated items, drawn anew in each pass.
Where we differ: there is no pretraining of the halves. Adam touches only the rows that a batch uses (`adam.py`). The
authors choose the best pass on test, and we do not. Training is in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.adam import Adam, Array, Parameters, Rows, row_sums, sigmoid, xavier
from lightfr_harness.simulation.baselines.method import FACTORS, Entry, Floats, Method, Settings
from lightfr_harness.simulation.baselines.negatives import draw_unrated, rated_by_user

STREAM = 61
LAYERS = (64, 32, 16, 8)
SIDE = LAYERS[0] // 2
SCORES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class NcfOptions:
    """factors is the dimension of GMF, rate that of Adam, negatives those for each rating."""

    factors: int = 8
    rate: float = 0.001
    batch: int = 256
    negatives: int = 4


def start(n_users: int, n_items: int, factors: int, draws: np.random.Generator) -> Parameters:
    """Small random embeddings, GMF's numbers first, and layers as Xavier."""
    drawn: Parameters = {
        "users": draws.normal(0, 0.01, (n_users, factors + SIDE)),
        "items": draws.normal(0, 0.01, (n_items, factors + SIDE)),
        "output": xavier(draws, factors + LAYERS[-1], 1)[:, 0],
        "output_bias": np.zeros(1),
    }
    for number, (inputs, outputs) in enumerate(pairwise(LAYERS), 1):
        drawn[f"weights_{number}"] = xavier(draws, inputs, outputs)
        drawn[f"bias_{number}"] = np.zeros(outputs)
    return drawn


def forward(parameters: Parameters, users: Rows, items: Rows) -> tuple[Array, list[Array]]:
    """Logits, and what each layer of the MLP gave, its input first."""
    user, item = parameters["users"][users], parameters["items"][items]
    factors = user.shape[1] - SIDE
    layers = [np.concatenate((user[:, factors:], item[:, factors:]), axis=1)]
    for number in range(1, len(LAYERS)):
        sums = layers[-1] @ parameters[f"weights_{number}"] + parameters[f"bias_{number}"]
        layers.append(np.maximum(sums, 0))
    output = parameters["output"]
    logits = (user[:, :factors] * item[:, :factors]) @ output[:factors] + layers[-1] @ output[factors:]
    return logits + parameters["output_bias"], layers


def backward(parameters: Parameters, users: Rows, items: Rows, labels: Array) -> tuple[Parameters, dict[str, Rows]]:
    """The gradients of the mean cross-entropy, and which rows those of the embeddings are of."""
    logits, layers = forward(parameters, users, items)
    error = (sigmoid(logits) - labels) / len(labels)
    output = parameters["output"]
    factors = len(output) - LAYERS[-1]
    user, item = parameters["users"][users][:, :factors], parameters["items"][items][:, :factors]
    gradients: Parameters = {
        "output": np.append(error @ (user * item), error @ layers[-1]),
        "output_bias": error.sum(keepdims=True),
    }
    flow = np.outer(error, output[factors:])
    for number in range(len(LAYERS) - 1, 0, -1):
        flow = flow * (layers[number] > 0)
        gradients[f"weights_{number}"] = layers[number - 1].T @ flow
        gradients[f"bias_{number}"] = flow.sum(axis=0)
        flow = flow @ parameters[f"weights_{number}"].T
    product = np.outer(error, output[:factors])
    user_rows, gradients["users"] = row_sums(users, np.concatenate((product * item, flow[:, :SIDE]), axis=1))
    item_rows, gradients["items"] = row_sums(items, np.concatenate((product * user, flow[:, SIDE:]), axis=1))
    return gradients, {"users": user_rows, "items": item_rows}


class Ncf(Method):
    """NeuMF. A step is a pass over the ratings and their negatives."""

    def __init__(self, options: NcfOptions) -> None:
        self._options = options

    def begin(self, train: Ratings, seed: int) -> None:
        self._draws = np.random.default_rng([seed, STREAM])
        self._n_items, self._rated = train.n_items, rated_by_user(train)
        drawn = start(train.n_users, train.n_items, self._options.factors, self._draws)
        self._parameters: Parameters = {name: values.astype(np.float32) for name, values in drawn.items()}
        self._adam = Adam(self._parameters, self._options.rate)

    def step(self) -> None:
        users, items, labels = self._samples()
        order = self._draws.permutation(len(users))
        for first in range(0, len(order), self._options.batch):
            batch = order[first : first + self._options.batch]
            self._adam.step(*backward(self._parameters, users[batch], items[batch], labels[batch]))

    def _samples(self) -> tuple[Rows, Rows, Array]:
        """Users, items, and 1 for a rating, 0 for a negative."""
        count = self._options.negatives
        unrated = [draw_unrated(rated, self._n_items, count * len(rated), self._draws) for rated in self._rated]
        items = np.concatenate(self._rated + unrated).astype(np.int64)
        everyone = np.arange(len(self._rated))
        sizes = [[len(group) for group in groups] for groups in (self._rated, unrated)]
        users = np.concatenate([np.repeat(everyone, size) for size in sizes])
        labels = np.repeat(np.array([1, 0], np.float32), [sum(size) for size in sizes])
        return users, items, labels

    def scores(self, users: Index, items: Index) -> Floats:
        found = np.empty(len(users))
        for first in range(0, len(users), SCORES_AT_ONCE):
            part = slice(first, first + SCORES_AT_ONCE)
            found[part] = forward(self._parameters, users[part], items[part])[0]
        return found


def make(settings: Settings) -> Ncf:
    options: dict[str, Any] = dict(settings)
    return Ncf(NcfOptions(**options))


ENTRY = Entry(
    name="ncf",
    title="NCF (NeuMF)",
    family="centralised",
    make=make,
    authors={"factors": 8, "rate": 0.001, "batch": 256, "negatives": 4},
    # LightFR states dimension 32 and batches of 512.
    grid=tuple(
        {"factors": factors, "rate": rate, "batch": 512, "negatives": 4}
        for factors in (8, FACTORS)
        for rate in (0.0005, 0.001, 0.002)
    ),
    authors_steps=20,
    note="The authors choose the best pass on test; here it is chosen on validation.",
)
