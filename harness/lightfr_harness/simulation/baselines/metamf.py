"""MetaMF: Lin, Ren, Chen, Ren, Yu, Ma, de Rijke, Cheng, *Meta Matrix Factorization for Federated Rating Predictions*,
SIGIR 2020.

The server has a vector x_u of every user and generates the user's whole private model from it:

    c = x_u M;  three generators with hidden layers h_k = relu(c H_k + b_k), each linear from there on:
    h_1 gives W1 (factors x units) and b1;  h_2 gives W2 (units x 1) and b2;
    h_3 gives A (items x rank) and B (rank x factors)

The device predicts relu(q_i W1 + b1) W2 + b2 with q_i = (A B)_i, and its loss is the squared error. It uploads the
gradient of the loss by W1, b1, W2, b2 and the rows q_i of its samples; the server goes on back through the generators.
x_u lives on the server, which can therefore compute the scores of every user.

Where we differ: the authors' code is not federated, it takes central batches of 64 ratings. Here the devices of a round
come in batches of `devices`, and the server steps after each: with one step a round, 50 rounds train nothing. A user is
in one step of a round at most, so x_u hardly moves at the rate of the generators: it may have a `user_rate` of its own.
Adam and weight decay touch only the users and items of a batch (`adam.py`). With `negatives` a rating counts as 1,
whatever its value, and so many unrated items for each rating as 0; without them it is as published, on raw ratings. The
server computes in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.adam import Adam, Array, Parameters, Rows, clip_norm, xavier
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import GeneratedModel, GeneratedModelGradient
from lightfr_harness.simulation.baselines.method import FACTORS, DeviceCost, Entry, Federated, Floats, Settings, Traffic
from lightfr_harness.simulation.baselines.negatives import draw_unrated, positions_by_user
from lightfr_harness.simulation.baselines.tables import (
    best_unrated,
    from_rows,
    from_table,
    stored_bytes,
    to_rows,
    to_table,
)

STREAM = 73
USER_NUMBERS, MEMORY, HIDDEN = 32, 128, 512
UNITS, RANK = 8, 8
LARGEST_NORM = 5.0
NUMBERS_AT_ONCE = 1 << 24
"""Bounds memory when models of many users are generated."""

LAYERS = ("hidden_weights", "hidden_bias", "output_weights", "output_bias")
GENERATOR_OF = {
    "hidden_weights": 0,
    "hidden_bias": 0,
    "output_weights": 1,
    "output_bias": 1,
    "right": 2,
    "left": 2,
}
"""Which generator makes what."""


@dataclass(frozen=True)
class MetamfOptions:
    """rate and weight_decay are Adam's, user_rate is the rate for x_u; negatives are those for each rating, devices
    those of a step.
    """

    rate: float = 1e-4
    user_rate: float = 1e-4
    weight_decay: float = 1e-3
    negatives: int = 0
    devices: int = 64


@dataclass(frozen=True)
class PrivateModel:
    """What the server generates for one user, or gradients of it. left is A, right is B."""

    left: Array
    right: Array
    hidden_weights: Array
    hidden_bias: Array
    output_weights: Array
    output_bias: Array

    def encode(self) -> bytes:
        return GeneratedModel(**{name: to_table(getattr(self, name)) for name in GENERATOR_OF}).SerializeToString()

    @classmethod
    def decode(cls, message: bytes) -> PrivateModel:
        model = GeneratedModel.FromString(message)
        return cls(**{name: from_table(getattr(model, name)) for name in GENERATOR_OF})

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Predictions for rows of the item table, and the hidden layer."""
        hidden = np.maximum(rows @ self.hidden_weights + self.hidden_bias, 0)
        return (hidden @ self.output_weights + self.output_bias)[:, 0], hidden


class MetamfDevice:
    """One user: rated items, sorted, and the target of each."""

    def __init__(self, rated: Index, targets: Floats, n_items: int, negatives: int, draws: np.random.Generator) -> None:
        self._rated, self._targets, self._n_items = rated, targets, n_items
        self._negatives, self._draws = negatives, draws

    def answer(self, message: bytes) -> bytes:
        """The gradient of the sum of this user's squared errors."""
        model, (items, targets) = PrivateModel.decode(message), self._samples()
        rows, layers = gradient(model, model.left[items] @ model.right, targets)
        tables = {name: to_table(values) for name, values in layers.items()}
        return GeneratedModelGradient(items=to_rows(items, rows), **tables).SerializeToString()

    def _samples(self) -> tuple[Index, Floats]:
        if not self._negatives:
            return self._rated, self._targets
        count = self._negatives * len(self._rated)
        unrated = draw_unrated(self._rated, self._n_items, count, self._draws, distinct=True)
        return np.append(self._rated, unrated.astype(np.uint32)), np.append(self._targets, np.zeros(len(unrated)))


def gradient(model: PrivateModel, rows: Array, targets: Array) -> tuple[Array, Parameters]:
    """The gradient of the sum of squared errors by the rows of the item table, and by the layers."""
    predicted, hidden = model.predict(rows)
    error = 2 * (predicted - targets)[:, None]
    flow = (error @ model.output_weights.T) * (hidden > 0)
    layers: Parameters = {
        "hidden_weights": rows.T @ flow,
        "hidden_bias": flow.sum(axis=0, keepdims=True),
        "output_weights": hidden.T @ error,
        "output_bias": error.sum(axis=0, keepdims=True),
    }
    return flow @ model.hidden_weights.T, layers


@dataclass(frozen=True)
class Trace:
    """What the generators computed for some users, kept for the way back; hidden has one layer per generator."""

    users: Rows
    memory: Array
    hidden: Array


class MetamfServer:
    """The vectors of all users, and the generators."""

    def __init__(self, n_users: int, n_items: int, options: MetamfOptions, draws: np.random.Generator) -> None:
        self._n_items = n_items
        self._parameters = {name: np.asarray(v, np.float32) for name, v in start(n_users, n_items, draws).items()}
        self._adam = Adam(self._parameters, options.rate, options.weight_decay, {"users": options.user_rate})

    def generate(self, users: Rows) -> tuple[Trace, list[PrivateModel]]:
        return generate(self._parameters, users)

    def learn(self, trace: Trace, models: list[PrivateModel], messages: list[bytes]) -> None:
        """One step from the gradients that the devices of these models sent."""
        gradients, rows = backward(self._parameters, trace, models, messages)
        clip_norm(gradients, LARGEST_NORM)
        self._adam.step(gradients, rows)


def start(n_users: int, n_items: int, draws: np.random.Generator) -> Parameters:
    """Vectors of users N(0, 1), weights as Xavier, biases zero. Each generated number has a row of weights."""
    drawn: Parameters = {
        "users": draws.normal(size=(n_users, USER_NUMBERS)),
        "memory": xavier(draws, USER_NUMBERS, MEMORY),
        "hidden": np.concatenate([xavier(draws, MEMORY, HIDDEN) for _ in range(3)], axis=1),
        "hidden_bias": np.zeros(3 * HIDDEN),
    }
    for name, shape in _shapes(n_items).items():
        weights = xavier(draws, shape[0] * shape[1], HIDDEN)
        drawn[f"to_{name}"] = weights.reshape(*shape, HIDDEN)
        drawn[f"offset_{name}"] = np.zeros(shape)
    return drawn


def _shapes(n_items: int) -> dict[str, tuple[int, int]]:
    return {
        "hidden_weights": (FACTORS, UNITS),
        "hidden_bias": (1, UNITS),
        "output_weights": (UNITS, 1),
        "output_bias": (1, 1),
        "right": (RANK, FACTORS),
        "left": (n_items, RANK),
    }


def generate(parameters: Parameters, users: Rows) -> tuple[Trace, list[PrivateModel]]:
    """The private models of these users."""
    memory = parameters["users"][users] @ parameters["memory"]
    sums = memory @ parameters["hidden"] + parameters["hidden_bias"]
    hidden = np.maximum(sums, 0).reshape(len(users), 3, HIDDEN)
    made: Parameters = {}
    for name, generator in GENERATOR_OF.items():
        weights, offset = parameters[f"to_{name}"], parameters[f"offset_{name}"]
        made[name] = (hidden[:, generator] @ weights.reshape(-1, HIDDEN).T).reshape(-1, *offset.shape) + offset
    models = [PrivateModel(**{name: values[place] for name, values in made.items()}) for place in range(len(users))]
    return Trace(users, memory, hidden), models


def backward(
    parameters: Parameters, trace: Trace, models: list[PrivateModel], messages: list[bytes]
) -> tuple[Parameters, dict[str, Rows]]:
    """The gradient of the mean squared error of a batch by all parameters; of users and items, the rows that it has."""
    by_model, touched = _gradients_of_models(models, messages, parameters["users"].dtype)
    rows: dict[str, Rows] = {"users": trace.users, "to_left": touched, "offset_left": touched}
    gradients: Parameters = {}
    flow = np.zeros_like(trace.hidden)
    for name, generator in GENERATOR_OF.items():
        weights = parameters[f"to_{name}"]
        used = weights[touched] if name == "left" else weights
        values = by_model[name].reshape(len(models), -1)
        gradients[f"to_{name}"] = (values.T @ trace.hidden[:, generator]).reshape(used.shape)
        gradients[f"offset_{name}"] = by_model[name].sum(axis=0)
        flow[:, generator] += values @ used.reshape(-1, HIDDEN)
    flow = (flow * (trace.hidden > 0)).reshape(len(models), -1)
    gradients["hidden"], gradients["hidden_bias"] = trace.memory.T @ flow, flow.sum(axis=0)
    flow = flow @ parameters["hidden"].T
    gradients["memory"] = parameters["users"][trace.users].T @ flow
    gradients["users"] = flow @ parameters["memory"].T
    return gradients, rows


def _gradients_of_models(
    models: list[PrivateModel], messages: list[bytes], dtype: np.dtype[Any]
) -> tuple[Parameters, Rows]:
    """The gradient of the mean by every generated number, stacked by user, and the items that its rows of A are of."""
    answers = [GeneratedModelGradient.FromString(message) for message in messages]
    uploads = [from_rows(answer.items) for answer in answers]
    touched = np.unique(np.concatenate([items for items, _ in uploads]))
    count = max(1, sum(len(items) for items, _ in uploads))
    stacked: Parameters = {
        name: np.stack([from_table(getattr(answer, name)) for answer in answers]).astype(dtype) / count
        for name in LAYERS
    }
    stacked["left"] = np.zeros((len(models), len(touched), RANK), dtype)
    stacked["right"] = np.empty((len(models), RANK, FACTORS), dtype)
    for place, (model, (items, rows)) in enumerate(zip(models, uploads, strict=True)):
        # The rows are of Q = A B.
        stacked["left"][place, np.searchsorted(touched, items)] = rows @ model.right.T / count
        stacked["right"][place] = model.left[items].T @ rows / count
    return stacked, touched


class Metamf(Federated):
    """MetaMF as a simulation."""

    def __init__(self, options: MetamfOptions) -> None:
        super().__init__()
        self._options = options

    def begin(self, train: Ratings, seed: int) -> None:
        self._n_items, self._draws = train.n_items, np.random.default_rng([seed, STREAM])
        self._server = MetamfServer(train.n_users, train.n_items, self._options, self._draws)
        order = np.lexsort((train.item_index, train.user_index))
        cuts = np.cumsum(np.bincount(train.user_index, minlength=train.n_users))[:-1]
        targets = np.ones(len(train)) if self._options.negatives else train.rating
        self.devices = [
            MetamfDevice(
                train.item_index[rows],
                targets[rows],
                train.n_items,
                self._options.negatives,
                np.random.default_rng([seed, STREAM, user]),
            )
            for user, rows in enumerate(np.split(order, cuts))
        ]

    def round(self, users: list[int]) -> Traffic:
        in_order, down, up = self._draws.permutation(users), 0, 0
        for first in range(0, len(users), self._options.devices):
            batch = in_order[first : first + self._options.devices]
            trace, models = self._server.generate(batch)
            downloads = [model.encode() for model in models]
            answers = [self.devices[user].answer(part) for user, part in zip(batch, downloads, strict=True)]
            for exchange in zip(batch.tolist(), downloads, answers, strict=True):
                self.observer(*exchange)
            self._server.learn(trace, models, answers)
            down, up = down + sum(map(len, downloads)), up + sum(map(len, answers))
        return Traffic(len(users), down, up)

    def scores(self, users: Index, items: Index) -> Floats:
        found, wanted = np.empty(len(users)), list(positions_by_user(users))
        at_once = max(1, NUMBERS_AT_ONCE // (RANK * self._n_items))
        for first in range(0, len(wanted), at_once):
            group = wanted[first : first + at_once]
            _, models = self._server.generate(np.array([user for user, _ in group]))
            for (_, positions), model in zip(group, models, strict=True):
                found[positions] = model.predict(model.left[items[positions]] @ model.right)[0]
        return found


def cost(n_items: int, n_ratings: int, seed: int, *, multiplied: bool = False) -> DeviceCost:
    """A round of one device with a model of random numbers: at Ciao's size the generator alone has 430 million.

    With `multiplied` the server sends A B instead of A and B.
    """
    draws = np.random.default_rng([seed, STREAM])
    rated = np.sort(draws.choice(n_items, n_ratings, replace=False)).astype(np.uint32)
    model = PrivateModel(**{name: draws.normal(size=shape) for name, shape in _shapes(n_items).items()})
    download = model.encode()
    answer = MetamfDevice(rated, np.ones(n_ratings), n_items, 0, draws).answer(download)
    table = model.left @ model.right
    layers = {name: getattr(model, name) for name in LAYERS}
    if multiplied:
        # B is left out: the items come in its stead, in A's place.
        tables = {name: to_table(values) for name, values in (("left", table), *layers.items())}
        download = GeneratedModel(**tables).SerializeToString()
    down = "A B and the layers" if multiplied else "A, B and the layers, and the device multiplies and stores A B"
    return DeviceCost(
        stored_bytes(table, *layers.values()),
        len(download),
        len(answer),
        lambda k: best_unrated(model.predict(table)[0], rated, k),
        f"Down come {down}. Every user has a private table, which no cache can serve.",
    )


def make(settings: Settings) -> Metamf:
    options: dict[str, Any] = dict(settings)
    return Metamf(MetamfOptions(**options))


ENTRY = Entry(
    name="metamf",
    title="MetaMF",
    family="federated",
    make=make,
    authors={"rate": 1e-4, "user_rate": 1e-4, "weight_decay": 1e-3, "negatives": 0},
    # Rates of 1e-3 kill the hidden units. Without negatives it learns ratings, and ranks below popularity.
    grid=tuple(
        {"rate": rate, "user_rate": user_rate, "weight_decay": 1e-3, "negatives": negatives}
        for rate, user_rate, negatives in (
            (3e-4, 0.1, 0),
            (3e-4, 0.1, 1),
            (3e-4, 0.03, 4),
            (3e-4, 0.1, 4),
            (3e-4, 0.3, 4),
            (5e-4, 0.1, 4),
        )
    ),
    cost=cost,
    authors_steps=100,
    note="The server steps after every batch of devices, several times a round: one step a round trains nothing in 50 "
    "rounds. The tuned settings give the vectors of users a rate of their own. The server has the "
    "vector of every user, and so can compute every user's scores.",
)
