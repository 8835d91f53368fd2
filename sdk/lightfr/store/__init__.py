"""The encrypted store of a device: ratings and a few named values, in one append-only file.

Every change is on the medium, wholly, when its call returns. Whoever has the file but not the key ring learns its size
and when it grew, and can put back no older version unless the anchor that is kept with the key is put back too.
"""

from lightfr.store._store import Store, discard

__all__ = ["Store", "discard"]
