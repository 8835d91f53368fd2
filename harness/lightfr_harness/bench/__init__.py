"""Benchmarks: our kernel against contenders, interleaved in one process. README.md here defines units and seeds."""
