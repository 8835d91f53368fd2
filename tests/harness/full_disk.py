"""A disk without room, for what this process writes."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(room_bytes=0):
    """Let no file of this process grow beyond so many bytes: the system then refuses to write, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
