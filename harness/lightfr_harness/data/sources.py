"""Where public data sets live, and what their files are known to be.

Checksums are MD5 because that is what the publisher prints. They are absent where the publisher
changes the file from time to time (ml-latest-small) or none is known (filmtrust, ciao): such a
download is checked for completeness and for its ratings file, not for its exact content. Douban
has no public address that could be relied on; bring the file by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InvalidOptionError

MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
LIBREC = "https://guoguibing.github.io/librec/datasets/"
CIAO = "https://www.cse.msu.edu/~tangjili/datasetcode/"


@dataclass(frozen=True)
class Source:
    """One archive, the ratings file inside it and the format that reads that file."""

    name: str
    base_url: str
    archive: str
    ratings_file: str
    format: str
    md5: str | None


SOURCES = {
    source.name: source
    for source in (
        Source("ml-100k", MOVIELENS, "ml-100k.zip", "u.data", "ml-100k",
               "0e33842e24a9c977be4e0107933c0723"),
        Source("ml-1m", MOVIELENS, "ml-1m.zip", "ratings.dat", "ml-1m",
               "c4d9eecfca2ab87c1945afe126590906"),
        Source("ml-25m", MOVIELENS, "ml-25m.zip", "ratings.csv", "ml-csv",
               "6b51fb2759a8657d3bfcbfc42b592ada"),
        Source("ml-latest-small", MOVIELENS, "ml-latest-small.zip", "ratings.csv", "ml-csv", None),
        Source("filmtrust", LIBREC, "filmtrust.zip", "ratings.txt", "filmtrust", None),
        Source("ciao", CIAO, "ciao_with_rating_timestamp.zip", "rating_with_timestamp.mat", "ciao",
               None),
    )
}  # fmt: skip


def find_source(name: str) -> Source:
    if name not in SOURCES:
        raise InvalidOptionError(f"Unknown data set {name!r}. Choose one of: {', '.join(SOURCES)}.")
    return SOURCES[name]
