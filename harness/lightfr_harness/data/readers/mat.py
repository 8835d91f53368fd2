"""MATLAB files: Ciao, and Douban where it is not text. SciPy is imported only when one is read.

Files of MATLAB 7.3 are HDF5 inside, as the public Douban file is; SciPy cannot read those, so
h5py is asked for them, and only for them.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightfr_harness.errors import import_package

from ..errors import DataFileError
from ..ratings import Ratings, ratings_from_ids
from .files import open_bytes
from .numbers import LARGEST_WHOLE_NUMBER, is_id, read_douban_text

PURPOSE = "Reading this MATLAB file"
STARS_MIN, STARS_MAX = 1.0, 5.0
MASKS: tuple[str, ...] = ("Otraining", "Otest")
ADVICE = "Correct the matrix or name the format the file really has."

Matrix = Any  # A dense array or a SciPy sparse matrix; SciPy has no types of its own.


def read_ciao(path: Path) -> Ratings:
    """Matrix `rating`: user, item, category, rating, helpfulness and perhaps the time; 1 to 5.

    The scale starts at 1, so a 0 is no rating: such rows are left out and counted.
    """
    table = _table(path, _require(path, _load(path), "rating"), "rating", (5, 6))
    columns = [0, 1, 3] + ([5] if table.shape[1] == 6 else [])
    is_zero = table[:, 3] == 0
    return _from_table(path, table[:, columns], is_zero)


def read_douban(path: Path) -> Ratings:
    """Text, or MATLAB matrices `M`, `Otraining`, `Otest`, or a MATLAB table `rating` or `ratings`; 1 to 5.

    M has a row per user and a column per item; the other two mark which cells are observed. With
    M alone, its nonzero cells are observed: the scale starts at 1, so 0 is no rating there. The
    table has the columns user, item, rating and perhaps the time. M has no times.
    """
    with open_bytes(path) as file:
        start = file.read(128)
    if b"\0" not in start and not start.startswith(b"MATLAB"):
        return read_douban_text(path)
    variables = _load(path)
    if "M" in variables:
        return _from_matrix(path, variables)
    name = "ratings" if "ratings" in variables else "rating"
    return _from_table(path, _table(path, _require(path, variables, name), name, (3, 4)))


def _from_matrix(path: Path, variables: dict[str, Matrix]) -> Ratings:
    # Sparse throughout: written out, a catalogue of 40,000 items would take gigabytes.
    sparse = import_package("scipy.sparse", "scipy", PURPOSE)
    values = sparse.csr_matrix(variables["M"], dtype=np.float64)
    observed = sparse.csr_matrix(values.shape, dtype=np.bool_)
    masks = [name for name in MASKS if name in variables]
    for name in masks or ["M"]:
        mask = sparse.csr_matrix(variables[name])
        if mask.shape != values.shape:
            reason = f"{name!r} has shape {mask.shape}, but 'M' has {values.shape}"
            raise DataFileError(path, None, reason, ADVICE)
        observed = observed + (mask != 0)
    observed.sort_indices()
    user, item = observed.nonzero()
    rating = np.asarray(values[user, item]).ravel()
    # MATLAB counts from 1, and so do the ids.
    return _from_table(path, np.column_stack((user + 1, item + 1, rating)))


def _from_table(path: Path, table: NDArray[np.float64], is_zero: NDArray[np.bool_] | None = None) -> Ratings:
    """Columns user, item, rating and perhaps time; the rows where `is_zero` are left out and counted."""
    rated = np.ones(len(table), np.bool_) if is_zero is None else ~is_zero
    if not rated.any():
        raise DataFileError(path, None, "there are no ratings in it", ADVICE)
    _require_rows(path, is_id(table[:, 0]) & is_id(table[:, 1]), "an id is not a whole number")
    inside = (table[:, 2] >= STARS_MIN) & (table[:, 2] <= STARS_MAX)
    _require_rows(path, inside | ~rated, f"the rating is NaN or outside {STARS_MIN:g} to {STARS_MAX:g}")
    _require_rows(path, abs(table[:, -1]) < LARGEST_WHOLE_NUMBER, "the time is not finite")
    kept = table[rated]
    time = kept[:, 3].astype(np.int64) if table.shape[1] == 4 else None
    ids, scale = kept[:, :2].astype(np.int64), (STARS_MIN, STARS_MAX)
    return ratings_from_ids(ids[:, 0], ids[:, 1], kept[:, 2], time, scale, n_zeros=int((~rated).sum()))


def _require_rows(path: Path, good: NDArray[np.bool_], reason: str) -> None:
    if not good.all():
        row = int(np.argmin(good)) + 1
        raise DataFileError(path, None, f"matrix row {row}: {reason}", ADVICE)


def _require(path: Path, variables: dict[str, Matrix], name: str) -> Matrix:
    if name not in variables:
        found = ", ".join(sorted(variables)) or "nothing"
        raise DataFileError(path, None, f"there is no matrix {name!r}; found: {found}", ADVICE)
    return variables[name]


def _table(path: Path, matrix: Matrix, name: str, widths: tuple[int, int]) -> NDArray[np.float64]:
    shape = tuple(matrix.shape)
    # Checked before it is written out: a sparse matrix of a few bytes may claim any shape.
    if len(shape) != 2 or shape[1] not in widths:
        reason = f"{name!r} has shape {shape}; {widths[0]} or {widths[1]} columns are expected"
        raise DataFileError(path, None, reason, ADVICE)
    try:
        return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataFileError(path, None, f"{name!r} does not hold plain numbers", ADVICE) from None


def _load(path: Path) -> dict[str, Matrix]:
    with open_bytes(path) as file:
        content = io.BytesIO(file.read())
    scipy_io = import_package("scipy.io", "scipy", PURPOSE)
    try:
        with warnings.catch_warnings():
            # SciPy 1.18 announces another type of sparse matrix; both have toarray(), which is all that is used here.
            warnings.simplefilter("ignore", DeprecationWarning)
            variables = scipy_io.loadmat(content)
    except NotImplementedError:  # SciPy's way to say "MATLAB 7.3".
        return _load_hdf5(path, content)
    except Exception as error:  # SciPy has no common root for what a broken file may raise.
        raise _not_matlab(path, error) from error
    return {name: value for name, value in variables.items() if not name.startswith("__")}


def _load_hdf5(path: Path, content: io.BytesIO) -> dict[str, Matrix]:
    h5py = import_package("h5py", "h5py", PURPOSE)
    try:
        with h5py.File(content, "r") as file:
            return {name: _hdf5_matrix(node) for name, node in file.items() if name[0] != "#"}
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise _not_matlab(path, error) from error


def _not_matlab(path: Path, error: Exception) -> DataFileError:
    return DataFileError(path, None, f"this is not a sound MATLAB file ({type(error).__name__})", ADVICE)


def _hdf5_matrix(node: Any) -> Matrix:
    if hasattr(node, "keys"):  # A group: the parts of a matrix sparse by columns.
        sparse = import_package("scipy.sparse", "scipy", PURPOSE)
        values = np.asarray(node["data"], dtype=np.float64)
        shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
        return sparse.csc_matrix((values, node["ir"][()], node["jc"][()]), shape=shape)
    return np.asarray(node).T  # MATLAB stores by columns, HDF5 reads by rows.
