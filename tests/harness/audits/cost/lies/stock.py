"""The stock device as a module. It is loaded by its path: its package would bring the whole harness into the device."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[5] / "harness" / "lightfr_harness" / "emulation" / "device.py"


def load():
    spec = importlib.util.spec_from_file_location("stock_device", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
