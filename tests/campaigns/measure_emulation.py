"""What emulated devices promise, measured on this machine: `python -m tests.campaigns.measure_emulation`.

- memory: a device with 4 MiB less than it needs, in every enforcement mode;
- link: bytes and time at the proxy, between a greedy sender and receiver, over 10 s, for every profile, both ways;
- cpu: a busy loop of 5 s against its quota;
- cost: CPU time and peak memory of devices that are sampled and of devices that are not, in turns;
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

from lightfr_harness import emulation
from lightfr_harness.emulation import measuring, runner
from lightfr_harness.emulation.enforcement import CPU_MODES, NONE, RLIMIT, Cage, Enforcement, cpu_modes, memory_modes
from lightfr_harness.emulation.link import Link, Loop
from lightfr_harness.emulation.profiles import MIB, Profile, load_profile, profile_names

SMALL = emulation.Scenario(items=10_000)
UNHURRIED = replace(load_profile("mid-phone"), relative_speed=1.0)
BUSY = """
import time
begin, used = time.monotonic(), time.process_time()
while time.monotonic() - begin < 5: pass
print((time.process_time() - used) / (time.monotonic() - begin))
"""


def memory() -> None:
    """By what the mode itself counts at most in a run that is not limited."""
    for mode in memory_modes():
        plan = emulation.Plan(memory=mode, cpu=NONE, recommendations=10)
        counted = "peak_data_bytes" if mode == RLIMIT else "peak_charged_bytes"
        needs = emulation.run(SMALL, [UNHURRIED], plan=plan)["devices"][0][counted] / MIB
        tried = [replace(UNHURRIED, memory_mib=needs + more) for more in (1, -4)]
        enough, less = emulation.run(SMALL, tried, plan=plan)["devices"]
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
            with Cage(profile, Enforcement(RLIMIT, mode)) as cage:
                done = subprocess.run(
                    cage.command([sys.executable, "-c", BUSY]), check=True, capture_output=True, text=True
                )
            print(f"{mode} {share:.1%} of a core: {float(done.stdout) / share - 1:+.2%}")


def cost(turns: int) -> None:
    """Unsampled: the peak and CPU time that the kernel counts at the ends of phases alone."""
    usual = measuring.SAMPLE_SECONDS
    seen: dict[float, list[tuple[float, float]]] = {usual: [], 1e6: []}
    for _ in range(turns):
        for interval, figures in seen.items():
            runner.Sampler = lambda interval=interval: measuring.Sampler(interval)  # type: ignore[assignment,misc]
            plan = emulation.Plan(recommendations=2000, cpu=NONE)
            phases = emulation.run(emulation.Scenario(items=1_000_000), [UNHURRIED], plan=plan)["devices"][0]["phases"]
            peak = max(phase["peak_rss_bytes"] for phase in phases.values())
            figures.append((sum(phase["cpu_seconds"] for phase in phases.values()), peak / MIB))
    runner.Sampler = measuring.Sampler  # type: ignore[misc]
    for what, at in (("CPU seconds", 0), ("peak MiB", 1)):
        sampled, alone = ([figure[at] for figure in seen[interval]] for interval in seen)
        for name, of in (("median", statistics.median), ("least", min)):
            print(
                f"{what}, {name}: sampled {of(sampled):.3f}, alone {of(alone):.3f}: {of(sampled) / of(alone) - 1:+.2%}"
            )


def many() -> None:
    begin = time.monotonic()
    profiles = [load_profile(name) for name in ("mid-phone", "flagship-phone", "raspberry-pi-zero-2", "watch")]
    record = emulation.run(SMALL, profiles, plan=emulation.Plan(copies=16, at_once=64))
    devices = record["devices"]
    breaches = [breach for device in devices for breach in device["breaches"]]
    finished = sum(device["finished"] for device in devices)
    print(f"{finished} of {len(devices)} finished in {time.monotonic() - begin:.0f} s, breaches: {breaches}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["memory", "cpu", "cost", "many", "link"])
    parser.add_argument("--turns", type=int, default=10)
    asked = parser.parse_args()
    for what in asked.what:
        cost(asked.turns) if what == "cost" else {"memory": memory, "link": link, "cpu": cpu, "many": many}[what]()


if __name__ == "__main__":
    main()
