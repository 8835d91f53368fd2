"""What a cohort of a round adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class CohortSum:
    """The sums by block, in the blocks of docs/secagg.md, and over how many devices."""

    sums: Mapping[str, npt.NDArray[np.int64]]
    survivors: int
