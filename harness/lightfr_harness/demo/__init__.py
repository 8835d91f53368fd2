"""make demo: a coordinator, real device processes and a fleet train over mutual TLS."""

from lightfr_harness.demo.demo import Scene, main, run

__all__ = ["Scene", "main", "run"]
