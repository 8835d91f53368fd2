"""MATLAB files: Ciao and Douban. SciPy is imported only when one is read.

Files of MATLAB 7.3 are HDF5 inside, as the public Douban file is; SciPy cannot read those, so
h5py is asked for them, and only for them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightfr_harness.errors import import_package

from ..errors import DataFileError
from ..ratings import Ratings, ratings_from_ids
from .text import require_file

PURPOSE = "Reading this MATLAB file"
STARS_MIN, STARS_MAX = 1.0, 5.0
MASKS: tuple[str, ...] = ("Otraining", "Otest")
ADVICE = "Correct the matrix or name the format the file really has."

Matrix = Any  # A dense array or a SciPy sparse matrix; SciPy has no types of its own.


def read_ciao(path: Path) -> Ratings:
    """Matrix `rating`: user, item, category, rating, helpfulness and perhaps the time; 1 to 5."""
    table = _dense(_require(path, _load(path), "rating"))
    if table.ndim != 2 or table.shape[1] not in (5, 6):
        reason = f"'rating' has shape {table.shape}; 5 or 6 columns are expected"
        raise DataFileError(path, None, reason, ADVICE)
    columns = [0, 1, 3] + ([5] if table.shape[1] == 6 else [])
    return _from_table(path, table[:, columns])


def read_douban(path: Path) -> Ratings:
    """Either matrices `M`, `Otraining`, `Otest`, or a table `rating` or `ratings`; 1 to 5.

    M has a row per user and a column per item; the other two mark which cells are observed. With
    M alone, its nonzero cells are observed: the scale starts at 1, so 0 is no rating there. The
    table has the columns user, item, rating and perhaps the time. M has no times: the last
    rating of a user is then merely the one with the highest item number.
    """
    variables = _load(path)
    if "M" in variables:
        return _from_matrix(path, variables)
    name = "ratings" if "ratings" in variables else "rating"
    table = _dense(_require(path, variables, name))
    if table.ndim != 2 or table.shape[1] not in (3, 4):
        reason = f"{name!r} has shape {table.shape}; 3 or 4 columns are expected"
        raise DataFileError(path, None, reason, ADVICE)
    return _from_table(path, table)


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


def _from_table(path: Path, table: NDArray[np.float64]) -> Ratings:
    if len(table) == 0:
        raise DataFileError(path, None, "there are no ratings in it", ADVICE)
    whole = (table[:, :2] == np.floor(table[:, :2])).all(axis=1)
    _require_rows(path, whole, "an id is not a whole number")
    inside = (table[:, 2] >= STARS_MIN) & (table[:, 2] <= STARS_MAX)
    _require_rows(path, inside, f"the rating is NaN or outside {STARS_MIN:g} to {STARS_MAX:g}")
    _require_rows(path, np.isfinite(table.sum(axis=1)), "an id or time is not finite")
    time = table[:, 3].astype(np.int64) if table.shape[1] == 4 else None
    ids = table[:, :2].astype(np.int64)
    return ratings_from_ids(ids[:, 0], ids[:, 1], table[:, 2], time, (STARS_MIN, STARS_MAX))


def _require_rows(path: Path, good: NDArray[np.bool_], reason: str) -> None:
    if not good.all():
        row = int(np.argmin(good)) + 1
        raise DataFileError(path, None, f"matrix row {row}: {reason}", ADVICE)


def _require(path: Path, variables: dict[str, Matrix], name: str) -> Matrix:
    if name not in variables:
        found = ", ".join(sorted(variables)) or "nothing"
        raise DataFileError(path, None, f"there is no matrix {name!r}; found: {found}", ADVICE)
    return variables[name]


def _dense(matrix: Matrix) -> NDArray[np.float64]:
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return np.asarray(dense, dtype=np.float64)


def _load(path: Path) -> dict[str, Matrix]:
    require_file(path)
    scipy_io = import_package("scipy.io", "scipy", PURPOSE)
    try:
        with warnings.catch_warnings():
            # SciPy 1.18 announces another type of sparse matrix; both have toarray(), which is all that is used here.
            warnings.simplefilter("ignore", DeprecationWarning)
            variables = scipy_io.loadmat(str(path))
    except NotImplementedError:  # SciPy's way to say "MATLAB 7.3".
        h5py = import_package("h5py", "h5py", PURPOSE)
        with h5py.File(path, "r") as file:
            return {name: _hdf5_matrix(node) for name, node in file.items() if name[0] != "#"}
    except Exception as error:  # SciPy has no common root for what a broken file may raise.
        reason = f"this is not a MATLAB file ({type(error).__name__})"
        raise DataFileError(path, None, reason, ADVICE) from error
    return {name: value for name, value in variables.items() if not name.startswith("__")}


def _hdf5_matrix(node: Any) -> Matrix:
    if hasattr(node, "keys"):  # A group: the parts of a matrix sparse by columns.
        sparse = import_package("scipy.sparse", "scipy", PURPOSE)
        values = np.asarray(node["data"], dtype=np.float64)
        shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
        return sparse.csc_matrix((values, node["ir"][()], node["jc"][()]), shape=shape)
    return np.asarray(node).T  # MATLAB stores by columns, HDF5 reads by rows.
