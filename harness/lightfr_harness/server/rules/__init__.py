"""The coordinator's side of training: what uploads add up to, and how the item matrix follows.

`CatalogueServer` is the default objective, `PaperServer` the one the paper prints (Agg_grad and Agg_para). Both are
deterministic for a seed and give the same bits on every instruction set.
"""

from lightfr_harness.server.rules.catalogue import CatalogueServer
from lightfr_harness.server.rules.paper import PaperServer, balance_of
from lightfr_harness.server.rules.rule import Server
from lightfr_harness.server.rules.uploads import UploadError, UploadReader

__all__ = ["CatalogueServer", "PaperServer", "Server", "UploadError", "UploadReader", "balance_of"]
