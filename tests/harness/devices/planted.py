"""A device with a fault, run in place of the stock one: from the end of `round` on it keeps 12 MiB for good."""

import importlib.util
import json
import sys
from pathlib import Path

import lightfr_harness

STOCK = Path(lightfr_harness.__file__).parent / "devices" / "device.py"
MIB = 2**20


def stock_device():
    """Load the class of the stock device without the rest of the harness, which would take memory of its own."""
    spec = importlib.util.spec_from_file_location("device", STOCK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Device


class Hoarder(stock_device()):
    def round(self):
        latencies_ms = super().round()
        self.kept = bytearray(b"x") * (12 * MIB)
        return latencies_ms


if __name__ == "__main__":
    Hoarder(json.loads(sys.argv[1])).live()
