"""What the paper states: the ticks of its Table 1, the data sets of Table 3, HR@10 and NDCG@10 of Tables 4 and 6."""

from __future__ import annotations

# By the names of the methods in the registry, in the order of DATASETS.
_TABLE = {
    "pmf": ((0.5124, 0.2768), (0.8704, 0.6610), (0.3011, 0.1678), (0.4636, 0.2434)),
    "svdpp": ((0.5291, 0.2826), (0.8793, 0.6777), (0.3118, 0.1886), (0.4692, 0.2463)),
    "ddl": ((0.5101, 0.2743), (0.8630, 0.6579), (0.2967, 0.1671), (0.4566, 0.2429)),
    "ncf": ((0.5342, 0.2901), (0.8827, 0.6907), (0.3223, 0.2097), (0.4732, 0.2513)),
    "fcf": ((0.4945, 0.2625), (0.8543, 0.6376), (0.2921, 0.1615), (0.4492, 0.2304)),
    "fedmf": ((0.4836, 0.2534), (0.8601, 0.6563), (0.2786, 0.1443), (0.4461, 0.2272)),
    "fedrec": ((0.4893, 0.2612), (0.8503, 0.6304), (0.2832, 0.1593), (0.4474, 0.2301)),
    "metamf": ((0.4994, 0.2691), (0.8566, 0.6389), (0.2937, 0.1669), (0.4503, 0.2402)),
    "privrec": ((0.4989, 0.2688), (0.8605, 0.6563), (0.2931, 0.1666), (0.4534, 0.2411)),
    "lightfr-grad": ((0.5014, 0.2709), (0.8615, 0.6565), (0.2934, 0.1665), (0.4556, 0.2413)),
    "lightfr-para": ((0.4942, 0.2618), (0.8589, 0.6554), (0.2913, 0.1619), (0.4489, 0.2267)),
    "lightfr-init": ((0.3110, 0.1542), (0.6129, 0.4932), (0.1832, 0.1193), (0.3105, 0.1632)),
    "lightfr-random": ((0.2419, 0.1043), (0.5793, 0.3531), (0.1408, 0.0893), (0.2882, 0.1254)),
}
# Formats of the files of the paper's data sets.
DATASETS = ("ml-1m", "filmtrust", "douban", "ciao")
# By data set, then by method: HR@10 and NDCG@10.
STATED: dict[str, dict[str, tuple[float, float]]] = {
    dataset: {method: figures[place] for method, figures in _TABLE.items()} for place, dataset in enumerate(DATASETS)
}
# Users, items, ratings and density in percent, as Table 3 has them.
SHAPES = {
    "ml-1m": (6_040, 3_952, 1_000_209, 4.19),
    "filmtrust": (1_508, 2_071, 35_497, 1.14),
    "douban": (2_964, 39_695, 894_888, 0.76),
    "ciao": (7_375, 105_096, 282_619, 0.04),
}
COLUMNS = ("memory", "inference", "communication", "privacy")
# By method, which columns have a tick in Table 1.
TICKS = {
    "FCF": (False, False, False, False),
    "FedMF": (False, False, False, True),
    "FedRec": (False, False, False, True),
    "MetaMF": (True, False, True, False),
    "PrivRec": (False, False, True, True),
    "LightFR": (True, True, True, True),
}
