import subprocess
import sys

import memory_profiler
import pytest

from lightfr_harness.devices import measuring
from lightfr_harness.devices.measuring import Watched, cpu_seconds, peak_rss_bytes, reset_peak

MIB = 2**20
# Holds 50 MB until asked, then gives them back, then works for a while.
PROGRAM = """
import time
kept = bytearray(b"x") * 50_000_000
print(flush=True); input()
del kept
print(flush=True); input()
while time.process_time() < 0.5: pass
print(flush=True); input()
"""


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True) as child:
        child.stdout.readline()
        yield child
        child.kill()


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()


def test_a_sample_is_what_memory_profiler_sees(process):
    watched = Watched(process.pid, "open")
    watched.look()
    [(seconds, size, phase)] = watched.timeline()
    [other] = memory_profiler.memory_usage(process.pid, interval=0.001)
    assert (seconds >= 0, phase) == (True, "open")
    assert size == pytest.approx(other * MIB, abs=MIB)
    assert 50_000_000 < watched.most_anonymous_bytes < size
    assert watched.most_data_bytes > 50_000_000


def test_each_phase_has_a_peak_of_its_own(process):
    assert peak_rss_bytes(process.pid) > 50_000_000
    go_on(process)
    assert peak_rss_bytes(process.pid) > 50_000_000
    reset_peak(process.pid)
    assert peak_rss_bytes(process.pid) < 50_000_000


def test_cpu_time_is_counted_as_the_process_counts_it(process):
    go_on(process)
    go_on(process)
    for counted in (cpu_seconds, measuring._cpu_by_ticks):
        assert counted(process.pid) == pytest.approx(0.5, abs=0.1)


def test_a_process_that_has_ended_is_no_error():
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    watched = Watched(child.pid, "open")
    watched.look()
    reset_peak(child.pid)
    assert (watched.timeline(), peak_rss_bytes(child.pid), cpu_seconds(child.pid)) == ([], 0, 0)


def test_a_long_timeline_keeps_its_peaks_and_its_phases():
    watched = Watched(1, "")
    watched.samples = [(at / 20, 7 if at == 4321 else 5, "sync" if at < 9000 else "fit") for at in range(10_000)]
    points = watched.timeline()
    assert len(points) <= 2 * measuring.MOST_POINTS
    assert max(points, key=lambda point: point[1]) == [216.05, 7, "sync"]
    assert [point[0] for point in points] == sorted(point[0] for point in points)
    assert {point[2] for point in points} == {"sync", "fit"}
