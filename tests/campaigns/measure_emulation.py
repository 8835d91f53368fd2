"""What emulated devices promise, measured on this machine: `python -m tests.campaigns.measure_emulation`.

- memory: a device with 4 MiB less than it needs, in every enforcement mode;
- link: bytes and time at the proxy, between a greedy sender and receiver, over 10 s, for every profile, both ways;
- cpu: a busy loop of 5 s against its quota;
- cost: CPU time and peak memory of a process while it is sampled and while it is not, in turns;
- many: 64 devices at once.

By the clock and on whatever else the machine is doing, so no test.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

from lightfr_harness import devices
from lightfr_harness.devices import measuring
from lightfr_harness.devices.enforcement import (
    CPU_MODES,
    NONE,
    RLIMIT,
    Enforcement,
    ProcessLimits,
    cpu_modes,
    memory_modes,
)
from lightfr_harness.devices.link import Link, Loop
from lightfr_harness.devices.profiles import MIB, Profile, load_profile, profile_names

# In the clear: no fleet works beside what is measured here.
SMALL = devices.Scenario(items=10_000, privacy="clear")
UNHURRIED = replace(load_profile("mid-phone"), relative_speed=1.0)
BUSY = """
import time
begin, used = time.monotonic(), time.process_time()
while time.monotonic() - begin < 5: pass
print((time.process_time() - used) / (time.monotonic() - begin))
"""
# What a device does most: scans of its codes. One slice is about a fifth of a second.
WORK = """
import os, sys, time, lightfr
codes, user = lightfr.ItemCodes(os.urandom(8_000_000), 64), lightfr.UserCode.random(64)
for _ in sys.stdin:
    used = time.process_time()
    for _ in range(700): lightfr.rank(user, codes, 10)
    print(time.process_time() - used, flush=True)
"""


def memory() -> None:
    """By what the mode itself counts at most in a run that is not limited."""
    for mode in memory_modes():
        plan = devices.Plan(memory=mode, cpu=NONE, recommendations=10)
        counted = "peak_data_bytes" if mode == RLIMIT else "peak_charged_bytes"
        needs = devices.run(SMALL, [UNHURRIED], plan=plan)["devices"][0][counted] / MIB
        tried = [replace(UNHURRIED, memory_mib=needs + more) for more in (1, -4)]
        enough, less = devices.run(SMALL, tried, plan=plan)["devices"]
        named = [(breach["kind"], breach["phase"]) for breach in less["breaches"]]
        print(f"{mode}: needs {needs:.1f} MiB; 1 more: finished {enough['finished']}; 4 less: {named}")


def link() -> None:
    """A sender as fast as it can be, one direction at a time."""
    with Loop() as loop:
        for name in profile_names():
            profile = load_profile(name)
            for way, rate in (("up", profile.up_bits_per_second), ("down", profile.down_bits_per_second)):
                for lossless in (True, False):
                    used = replace(profile, loss=0.0) if lossless else profile
                    measured = _rate(loop, used, way)
                    print(f"{name} {way}, loss {used.loss:.1%}: {measured / rate - 1:+.2%} of {rate / 1e6:g} Mbit/s")


def _rate(loop: Loop, profile: Profile, way: str, seconds: float = 10.0) -> float:
    """Bits a second that pass the bottleneck, once the first have arrived."""
    server = socket.create_server(("127.0.0.1", 0))
    with server, Link(loop, server.getsockname(), profile) as proxy:
        device = socket.create_connection(("127.0.0.1", proxy.port))
        far, _ = server.accept()
        source, sink = (device, far) if way == "up" else (far, device)
        threading.Thread(target=_send, args=[source], daemon=True).start()
        sink.recv(65_536)
        begin, before = time.monotonic(), sum(proxy.counts())
        while (now := time.monotonic()) - begin < seconds:
            sink.recv(65_536)
        passed = sum(proxy.counts()) - before
        for end in (device, far):
            end.close()
    return 8 * passed / (now - begin)


def _send(source: socket.socket) -> None:
    with suppress(OSError):
        while True:
            source.sendall(bytes(65_536))


def cpu() -> None:
    for mode in cpu_modes():
        if mode == NONE:
            print(f"cpu: of {', '.join(CPU_MODES[:2])} this machine has {', '.join(cpu_modes()[:-1]) or 'neither'}")
            continue
        for share in (0.015, 0.05, 0.1, 0.25, 0.5):
            profile = replace(UNHURRIED, cpu_quota=share)
            with ProcessLimits(profile, Enforcement(RLIMIT, mode)) as limits:
                done = subprocess.run(
                    limits.command([sys.executable, "-c", BUSY]), check=True, capture_output=True, text=True
                )
            print(f"{mode} {share:.1%} of a core: {float(done.stdout) / share - 1:+.2%}")


def cost(turns: int) -> None:
    """The same work in one process again and again, in turns sampled and not, so that the machine's drift cancels.

    Sampled 25 times as often as usual, since the effect of the usual rate is lost in the noise; then scaled down.
    """
    usual = measuring.SAMPLE_SECONDS
    with subprocess.Popen([sys.executable, "-c", WORK], stdin=-1, stdout=-1, text=True) as child:
        watched = measuring.Watched(child.pid, "work")
        with measuring.Sampler(usual / 25) as sampler:
            _slice(child), _slice(child)
            figures = [_pair(child, sampler, watched, sampled_first=turn % 2 == 0) for turn in range(turns)]
        child.kill()
    (used, peak), (used_alone, peak_alone) = (
        [statistics.mean(values) for values in zip(*which, strict=True)] for which in zip(*figures, strict=True)
    )
    differences = [1e6 * turns * (one[0] - other[0]) / len(watched.samples) for one, other in figures]
    each, error = statistics.mean(differences), statistics.stdev(differences) / turns**0.5
    print(f"{len(watched.samples) / turns / used:.0f} samples per CPU second: CPU {used / used_alone - 1:+.2%}")
    print(f"a sample costs the device {each:.0f} us of CPU time (standard error {error:.0f}),")
    print(f"{each / usual / 1e6:+.2%} of a whole core at the usual rate (standard error {error / usual / 1e6:.2%})")
    print(f"peak: {peak:.3f} MiB sampled, {peak_alone:.3f} alone")


def _pair(child: subprocess.Popen[str], sampler: measuring.Sampler, watched: measuring.Watched, *, sampled_first: bool):
    """CPU seconds and peak MiB of two slices of work: sampled, and not."""
    found = {}
    for is_sampled in (sampled_first, not sampled_first):
        measuring.reset_peak(child.pid)
        if is_sampled:
            sampler.add(watched)
        found[is_sampled] = (_slice(child), measuring.peak_rss_bytes(child.pid) / MIB)
        sampler.remove(watched)
    return found[True], found[False]


def _slice(child: subprocess.Popen[str]) -> float:
    child.stdin.write("\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def many() -> None:
    begin = time.monotonic()
    profiles = [load_profile(name) for name in ("mid-phone", "flagship-phone", "raspberry-pi-zero-2", "watch")]
    record = devices.run(SMALL, profiles, plan=devices.Plan(copies=16, at_once=64))
    ended = record["devices"]
    breaches = [breach for device in ended for breach in device["breaches"]]
    finished = sum(device["finished"] for device in ended)
    print(f"{finished} of {len(ended)} finished in {time.monotonic() - begin:.0f} s, breaches: {breaches}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["memory", "cpu", "cost", "many", "link"])
    parser.add_argument("--turns", type=int, default=60)
    asked = parser.parse_args()
    for what in asked.what:
        cost(asked.turns) if what == "cost" else {"memory": memory, "link": link, "cpu": cpu, "many": many}[what]()


if __name__ == "__main__":
    main()
