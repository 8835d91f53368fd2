"""The coordinator's side of training: what uploads add up to, and how the item matrix follows.

`CatalogueRule` is the default objective, `PaperRule` the one the paper prints (Agg_grad and Agg_para). Both are
deterministic for a seed and give the same bits on every instruction set.
"""

from lightfr_harness.server.rules.catalogue import CatalogueRule
from lightfr_harness.server.rules.paper import PaperRule, balance_of
from lightfr_harness.server.rules.rule import AggregationRule
from lightfr_harness.server.rules.uploads import UploadError, UploadReader

__all__ = ["AggregationRule", "CatalogueRule", "PaperRule", "UploadError", "UploadReader", "balance_of"]
