"""Measuring devices from outside: bytes at the socket, memory and CPU time of their processes."""

from lightfr_harness.measure.processes import cpu_seconds
from lightfr_harness.measure.proxy import CountingProxy

__all__ = ["CountingProxy", "cpu_seconds"]
