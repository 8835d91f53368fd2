"""The coordinator's side of training: what uploads add up to, and how the item matrix follows.

`CatalogueRule` is the default objective, `PaperRule` the one the paper prints (Agg_grad and Agg_para). Both are
deterministic for a seed and give the same bits on every instruction set.
"""

from lightfr.v1 import model_pb2
from lightfr_harness.server.rules.catalogue import CatalogueRule
from lightfr_harness.server.rules.paper import PaperRule, balance_of
from lightfr_harness.server.rules.rule import AggregationRule
from lightfr_harness.server.rules.uploads import UploadError, UploadReader

# The privacy modes by the names that options and records use.
PRIVACY_MODES = {
    "secagg": model_pb2.PRIVACY_MODE_SECAGG,
    "secagg+dp": model_pb2.PRIVACY_MODE_SECAGG_DP,
    "clear": model_pb2.PRIVACY_MODE_CLEAR,
}
# A device uploads at most this many ternary rows in the clear: more would tell more about its user.
TERNARY_ROWS = 64

__all__ = [
    "PRIVACY_MODES",
    "TERNARY_ROWS",
    "AggregationRule",
    "CatalogueRule",
    "PaperRule",
    "UploadError",
    "UploadReader",
    "balance_of",
]
