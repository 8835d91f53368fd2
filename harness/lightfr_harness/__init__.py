"""The harness of lightfr: coordinator, data sets, simulated devices, audits, benchmarks and reports."""

import os

# Matrices here are small: threads of BLAS cost more than they save, and timings are of one thread. BLAS reads these
# when numpy is first imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
