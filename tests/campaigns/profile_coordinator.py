"""Where the main thread of a coordinator spends its CPU time in masked rounds: `bench load --privacy secagg`, sampled.

    python -m tests.campaigns.profile_coordinator --cohort 512 --rounds 3

A timer of the main thread's own CPU time interrupts it every 4 ms, and each sample counts for every function on the
stack. What a C function takes counts for the line that called it. Other threads are not in it: use `perf record -g`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from lightfr_harness.bench import load_secure
from lightfr_harness.bench.load_options import SecureLoad
from lightfr_harness.bench.load_server import Servers

_EVERY_MS = 4
_SAMPLES_FILE = "LIGHTFR_SAMPLES"
_SHOWN = 60
# Of Linux: time.h and signal.h.
_THREAD_CPU_CLOCK, _TO_THREAD = 3, 4


def profile(load: SecureLoad) -> None:
    """Run rounds, of which the first warms up, and print milliseconds a device by function."""
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        samples = os.environ[_SAMPLES_FILE] = str(Path(made) / "samples.json")
        place = load_secure._Place(load, Path(made))
        pipes = [stack.enter_context(load_secure._worker(orders)) for orders in place.orders()]
        with place.server("sqlite", authority=place.authority, module=__spec__.name) as server:
            servers = Servers("SQLite", [server])
            load_secure._round(servers, pipes)
            os.kill(server.process.pid, signal.SIGUSR2)
            rounds = [load_secure._round(servers, pipes) for _ in range(load.rounds)]
        counts = Counter(json.loads(Path(samples).read_text()))
    devices = sum(one["devices"] for one in rounds)
    for name, count in counts.most_common(_SHOWN):
        print(f"{count * _EVERY_MS / devices:7.3f} ms  {name}")


def serve() -> None:
    """Be the coordinator, and write samples when it ends; SIGUSR2 drops those so far."""
    counts: Counter[str] = Counter()

    def sample(_: int, frame: FrameType | None) -> None:
        names = set()
        while frame is not None:
            names.add(f"{frame.f_code.co_qualname} ({Path(frame.f_code.co_filename).name})")
            frame = frame.f_back
        counts.update(names)

    signal.signal(signal.SIGPROF, sample)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.signal(signal.SIGUSR2, lambda *_: counts.clear())
    _interrupt_this_thread()
    try:
        runpy.run_module("lightfr_harness", run_name="__main__", alter_sys=True)
    finally:
        Path(os.environ[_SAMPLES_FILE]).write_text(json.dumps(counts))


def _interrupt_this_thread() -> None:
    """Have SIGPROF come by this thread's CPU time: Python itself only has timers of all threads together."""
    system, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
    # struct sigevent: a value, the signal, how to notify, which thread.
    event = (ctypes.c_int * 16)(0, 0, signal.SIGPROF, _TO_THREAD, threading.get_native_id())
    # struct itimerspec: the interval and the first time, seconds and nanoseconds each.
    times = (ctypes.c_long * 4)(0, _EVERY_MS * 10**6, 0, _EVERY_MS * 10**6)
    has_failed = system.timer_create(_THREAD_CPU_CLOCK, event, ctypes.byref(timer))
    if has_failed or system.timer_settime(timer, 0, times, None):
        raise OSError(ctypes.get_errno(), "there is no timer of a thread's CPU time here")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--cohort", type=int, default=512)
        parser.add_argument("--rounds", type=int, default=3)
        asked = parser.parse_args()
        profile(SecureLoad(cohort=asked.cohort, rounds=asked.rounds))
