"""Reading one upload in the clear. Its rows are c_i b + d_i with d_i public: rank one, so b falls out, and then c_i.

One doubt stays, and it is exact: with objective paper, (b, r) and (-b, 1 - r) give the same upload. Which of the two
it is follows from what people's ratings are like (`mirrors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr.interactions import LEVELS
from lightfr.training.constants import rated_target
from lightfr.v1 import model_pb2
from lightfr_harness.audits.capture import Floats, Ints, RoundView, Signs
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.server.rules.uploads import Upload

EM_STEPS = 5


@dataclass(frozen=True)
class DecodedUpload:
    """A code, and how likely each level of each uploaded item is (rows x levels, any scale; all ones: unknown)."""

    device: int
    items: Ints
    code: Signs
    likelihood: Floats


def decode(view: RoundView, device: int, upload: Upload, levels: tuple[int, ...]) -> DecodedUpload:
    """Code and level evidence of one upload; with objective paper, up to the mirror image."""
    items = upload.item_indices.astype(np.int64)
    rows = view.before[items].astype(np.int64)
    kind = upload.rows.WhichOneof("rows")
    if view.model.objective == model_pb2.OBJECTIVE_CATALOGUE:
        return DecodedUpload(device, items, _code_of_catalogue(upload, rows), np.ones((len(items), len(levels))))
    if kind == "exact":
        code = _leading_code(upload.values().astype(np.int64) - LEVELS * rows)
        return DecodedUpload(device, items, code, _exact_evidence(upload.values(), rows, code, levels))
    new_rows = upload.values().astype(np.int64)
    code = _leading_code(np.where((new_rows != rows).any(axis=1, keepdims=True), new_rows, 0))
    return DecodedUpload(device, items, code, _codes_evidence(new_rows, rows, code, levels))


def _leading_code(rank_one: Ints) -> Signs:
    """b or -b of rows c_i b: every row that is not zero says it, the largest one most safely. O(rows f)."""
    largest = rank_one[np.abs(rank_one).sum(axis=1).argmax()] if len(rank_one) else np.zeros(rank_one.shape[1])
    return np.where(largest >= 0, 1, -1).astype(np.int8)


def _exact_evidence(gradients: Ints, rows: Ints, code: Signs, levels: tuple[int, ...]) -> Floats:
    """c_i + 2520 s_i + 2520 f = 2 f l_i: solved for the level, then the nearest of the scale."""
    f = rows.shape[1]
    b = code.astype(np.int64)
    coefficient = (gradients.astype(np.int64) - LEVELS * rows) @ b / f
    level = (coefficient + LEVELS * (rows @ b) + LEVELS * f) / (2 * f)
    nearest = np.abs(level[:, None] - np.array(levels)).argmin(axis=1)
    return np.eye(len(levels))[nearest]


def _codes_evidence(new_rows: Ints, rows: Ints, code: Signs, levels: tuple[int, ...]) -> Floats:
    """Agg_para without balance: a level is possible when it explains the row, which is b, -b or unchanged."""
    f = rows.shape[1]
    b = code.astype(np.int64)
    coefficient = 2 * f * np.array(levels) - LEVELS * f - LEVELS * (rows @ b)[:, None]
    expected = np.where(np.abs(coefficient) > LEVELS, np.sign(coefficient), 0)
    seen = np.where((new_rows != rows).any(axis=1), np.sign(new_rows @ b), 0)
    # A row that was b before and stays b has not changed, whatever the vote.
    already = (np.abs(rows @ b) == f) & (seen == 0)
    return np.where((expected == seen[:, None]) | already[:, None], 1.0, 1e-6)


def _code_of_catalogue(upload: Upload, rows: Ints) -> Signs:
    """The field user_code says it."""
    return unpack_signs(upload.rows.user_code, (rows.shape[1],))


def code_from_rows_alone(view: RoundView, upload: Upload) -> Signs:
    """The user code of a catalogue upload from its rows, as if the field user_code were not there. O(rows f) a step.

    An element's expectation is (c_i b_k + d_ik) / f with c_i = t - s_i. Starting from plain sums over the rows, b gives
    the c_i and they weigh the rows anew; a few steps settle it. With exact rows the first step is already right.
    """
    rows = view.before[upload.item_indices].astype(np.float64)
    f = rows.shape[1]
    values = _values(upload, rows.shape) - rows / (f if upload.rows.WhichOneof("rows") == "ternary" else 1)
    code = np.where(values.sum(axis=0) >= 0, 1.0, -1.0)
    for _ in range(EM_STEPS):
        residual = rated_target(f) - rows @ code
        code = np.where(residual @ values >= 0, 1.0, -1.0)
    return code.astype(np.int8)


def _values(upload: Upload, shape: tuple[int, ...]) -> Floats:
    if upload.rows.WhichOneof("rows") != "ternary":
        return upload.values().astype(np.float64)
    planes = upload.rows.ternary
    nonzero, signs = (unpack_signs(plane, shape) for plane in (planes.nonzero, planes.positive))
    return np.where(nonzero > 0, signs, 0).astype(np.float64)
