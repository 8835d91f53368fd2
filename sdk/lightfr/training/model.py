"""What a server published for a round, checked, with what every fit needs computed once."""

from __future__ import annotations

from array import array
from functools import cached_property
from typing import TYPE_CHECKING

from lightfr import _kernel
from lightfr.errors import ProtocolError
from lightfr.training.constants import MAX_WEIGHT, MEAN_PULL, MEAN_UNIT
from lightfr.v1 import model_pb2

if TYPE_CHECKING:
    from lightfr.codes import ItemCodes, ItemSet

CATALOGUE = model_pb2.OBJECTIVE_CATALOGUE
PAPER = model_pb2.OBJECTIVE_PAPER
TERNARY = model_pb2.UPLOAD_KIND_TERNARY
EXACT = model_pb2.UPLOAD_KIND_EXACT
CODES = model_pb2.UPLOAD_KIND_CODES

# Standard deviations of noise, in thousandths. Below the least a sum of discrete Gaussians is far from being one;
# beyond the most the table that they are drawn from would be large.
LEAST_NOISE = 500
MOST_NOISE = 1_000_000


class PublishedModel:
    """Item codes and their RoundModel. Raises ProtocolError where they contradict each other or the protocol.

    The codes say which rows are open. `removed` are items that left the catalogue; None: none did.
    """

    def __init__(self, codes: ItemCodes, message: model_pb2.RoundModel, removed: ItemSet | None = None) -> None:
        _require(message.code_bits == codes.code_bits, "code_bits is not that of the item codes")
        _require(message.item_count == codes.n_items, "item_count is not that of the item codes")
        _require(message.objective in (CATALOGUE, PAPER), "unknown objective")
        _require(message.upload_kind in (TERNARY, EXACT, CODES), "unknown upload_kind")
        _require(message.balance < 2**40, "balance is not below 2^40")
        _require(not message.balance or message.objective == PAPER, "balance belongs to objective PAPER")
        _require_summable(message)
        self.codes = codes
        self.code_bits = codes.code_bits
        self.n_items = codes.n_items
        self.objective = message.objective
        self.upload_kind = message.upload_kind
        self.max_rows = message.max_rows
        self.balance = message.balance
        self.noise = _noise(message)
        self.mean_user = _mean_user(message.mean_user, codes.code_bits)
        self.open_rows = codes.open_rows
        self.removed = removed

    @property
    def n_open(self) -> int:
        """Number of items that devices may upload rows of."""
        return self.n_items if self.open_rows is None else self.open_rows.n_open

    @cached_property
    def fit(self) -> _kernel.Fit:
        """The fit with this catalogue's terms; one model is fitted by one thread at a time."""
        fit = _kernel.Fit(self.code_bits)
        if self.objective == CATALOGUE:
            f = self.code_bits
            gram, sums = array("q", bytes(8 * f * f)), array("q", bytes(8 * f))
            _kernel.gram(self.codes.kernel_pointer(), gram, sums)
            fit.use_catalogue(gram, sums, _mean_pull(gram, self.mean_user))
        return fit


def _mean_pull(gram: array[int], mean_user: array[int]) -> array[int]:
    """K (G mu), mu being the mean user; G mu is rounded down after the sum."""
    f = len(mean_user)
    rows = (gram[k * f : (k + 1) * f] for k in range(f))
    return array("q", [MEAN_PULL * (sum(map(int.__mul__, row, mean_user)) // MEAN_UNIT) for row in rows])


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ProtocolError(f"round model: {reason}")


def _require_summable(message: model_pb2.RoundModel) -> None:
    """Raise ProtocolError where the vectors of docs/secagg.md have no room for what the model asks for."""
    mode = message.privacy_mode
    if mode not in (model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP):
        return
    is_noisy = mode == model_pb2.PRIVACY_MODE_SECAGG_DP
    _require(message.objective == CATALOGUE, "secure aggregation sums the user codes of objective CATALOGUE alone")
    _require(
        message.upload_kind == (EXACT if is_noisy else TERNARY),
        "mode SECAGG sums ternary updates, and mode SECAGG_DP exact ones",
    )
    _require(is_noisy or 1 <= message.max_rows <= MAX_WEIGHT, f"mode SECAGG has max_rows 1 to {MAX_WEIGHT}")


def _mean_user(field: bytes, code_bits: int) -> array[int]:
    _require(len(field) in (0, 2 * code_bits), "mean_user has another length than code_bits")
    mean = array("h", field or bytes(2 * code_bits))
    _require(all(-MEAN_UNIT <= value <= MEAN_UNIT for value in mean), "mean_user leaves -256 to 256")
    return mean


def _noise(message: model_pb2.RoundModel) -> model_pb2.Noise | None:
    """Return the noise that each device adds, which mode SECAGG_DP has and no other."""
    wanted = message.privacy_mode == model_pb2.PRIVACY_MODE_SECAGG_DP
    _require(wanted == message.HasField("noise"), "noise belongs to mode SECAGG_DP, which cannot be without")
    if not wanted:
        return None
    noise = message.noise
    levels = (noise.rows_thousandths, noise.sums_thousandths, noise.counts_thousandths)
    _require(all(LEAST_NOISE <= level <= MOST_NOISE for level in levels), "noise is not 500 to 1,000,000 thousandths")
    return noise
