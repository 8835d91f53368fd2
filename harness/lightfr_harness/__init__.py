"""The harness of lightfr: coordinator, data sets, simulated devices, audits, benchmarks and reports."""
