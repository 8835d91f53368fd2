"""The coordinator's side of training: what uploads add up to, and how the item matrix follows.

`CatalogueServer` is the default objective, `PaperServer` the one the paper prints (Agg_grad and Agg_para). Both are
deterministic for a seed and give the same bits on every instruction set.
"""

from lightfr_harness.aggregate.catalogue import CatalogueServer
from lightfr_harness.aggregate.paper import PaperServer, balance_of
from lightfr_harness.aggregate.server import Server
from lightfr_harness.aggregate.uploads import UploadError, UploadReader

__all__ = ["CatalogueServer", "PaperServer", "Server", "UploadError", "UploadReader", "balance_of"]
