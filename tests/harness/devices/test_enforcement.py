import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.devices import enforcement
from lightfr_harness.devices.enforcement import (
    NONE,
    RLIMIT,
    V1,
    V2,
    Enforcement,
    EnforcementError,
    Group,
    ProcessLimits,
    cpu_modes,
    memory_modes,
    quota_us,
)
from lightfr_harness.devices.profiles import load_profile

PHONE = replace(load_profile("mid-phone"), memory_mib=64, cpu_quota=0.5, relative_speed=0.5)
HOARD = "import sys; kept = bytearray(int(sys.argv[1]) * 2**20); kept[::4096] = bytes(len(kept[::4096])); print('kept')"


def hoard(limits, mib):
    return subprocess.run(limits.command([sys.executable, "-c", HOARD, str(mib)]), capture_output=True, text=True)


@pytest.mark.parametrize("mode", memory_modes())
def test_a_process_within_its_memory_runs_and_one_beyond_it_is_caught(mode):
    with ProcessLimits(PHONE, Enforcement(mode, NONE)) as limits:
        assert hoard(limits, 16).stdout == "kept\n"
        assert not limits.was_killed()
        ended = hoard(limits, 128)
        assert ended.stdout == ""
        assert limits.was_killed() or "MemoryError" in ended.stderr


@pytest.mark.parametrize("mode", [mode for mode in memory_modes() if mode != RLIMIT])
def test_pages_of_files_are_given_back_before_anything_is_killed(mode, tmp_path):
    large = tmp_path / "large"
    large.write_bytes(bytes(128 * 2**20))
    scan = "import mmap, sys; file = open(sys.argv[1], 'rb'); m = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)"
    with ProcessLimits(PHONE, Enforcement(mode, NONE)) as limits:
        command = limits.command([sys.executable, "-c", f"{scan}; print(sum(m[::4096]))", str(large)])
        assert subprocess.run(command, capture_output=True, text=True).stdout == "0\n"
        assert limits.most_charged_bytes() <= PHONE.memory_bytes


@pytest.mark.parametrize("mode", [mode for mode in cpu_modes() if mode != NONE])
def test_a_busy_process_is_throttled(mode):
    with ProcessLimits(PHONE, Enforcement(RLIMIT, mode)) as limits:
        assert limits.throttled_seconds() == 0
        busy = "import time\nwhile time.process_time() < 0.1: pass"
        subprocess.run(limits.command([sys.executable, "-c", busy]), check=True)
        assert limits.throttled_seconds() > 0


def test_no_group_is_left_behind():
    with ProcessLimits(PHONE, Enforcement.choose()) as limits:
        groups = [group for group in (limits.memory_group, limits.cpu_group) if group]
        assert all(group.path.is_dir() for group in groups)
        hoard(limits, 1)
    assert not any(group.path.exists() for group in groups)


def test_a_program_does_not_run_when_its_limits_cannot_be_taken_on(tmp_path):
    limits = ProcessLimits(PHONE, Enforcement(RLIMIT, NONE))
    limits.memory_group = Group(tmp_path / "absent", V1)
    assert hoard(limits, 1).stdout == ""


def test_what_the_machine_lacks_is_refused_by_name():
    with pytest.raises(EnforcementError, match="rlimit"):
        Enforcement.choose(memory="hypnosis")


def test_without_the_right_to_make_groups_rlimits_are_left_and_the_record_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(enforcement, "_own_groups", lambda mode, controller: [tmp_path / "absent"])
    enforcement._parent.cache_clear()
    try:
        chosen = Enforcement.choose()
    finally:
        enforcement._parent.cache_clear()
    assert (chosen.memory, chosen.cpu) == (RLIMIT, NONE)
    assert "RLIMIT_DATA" in chosen.record()["memory_meaning"]
    assert "no CPU quota" in chosen.record()["cpu_meaning"]


def test_a_folder_that_is_no_cgroup_offers_nothing(monkeypatch, tmp_path):
    (tmp_path / "cgroup.subtree_control").write_text("memory")
    monkeypatch.setattr(enforcement, "_own_groups", lambda mode, controller: [tmp_path])
    assert enforcement._parent.__wrapped__(V2, "memory") is None
    assert [path.name for path in tmp_path.iterdir()] == ["cgroup.subtree_control"]


@pytest.mark.parametrize(
    ("mode", "memory_files", "cpu_files"),
    [
        (V2, {"memory.max": "67108864"}, {"cpu.max": "2500 10000"}),
        (V1, {"memory.limit_in_bytes": "67108864"}, {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "2500"}),
    ],
)
def test_each_version_writes_its_own_files(monkeypatch, tmp_path, mode, memory_files, cpu_files):
    for controller in ("memory", "cpu"):
        (tmp_path / controller).mkdir()
    monkeypatch.setattr(enforcement, "_parent", lambda mode, controller: tmp_path / controller)
    monkeypatch.setattr(Group, "remove", lambda group: shutil.rmtree(group.path))
    with ProcessLimits(PHONE, Enforcement(mode, mode)) as limits:
        for group, files in ((limits.memory_group, memory_files), (limits.cpu_group, cpu_files)):
            assert {path.name: path.read_text() for path in group.path.iterdir()} == files


@pytest.mark.parametrize(
    ("mode", "events", "peak", "stat"),
    [(V2, "memory.events", "memory.peak", "throttled_usec 1500000"),
     (V1, "memory.oom_control", "memory.max_usage_in_bytes", "throttled_time 1500000000")],
)  # fmt: skip
def test_each_version_reads_its_own_files(tmp_path, mode, events, peak, stat):
    (tmp_path / events).write_text("low 0\noom_kill_disable 0\noom_kill 1\n")
    (tmp_path / peak).write_text("4096\n")
    (tmp_path / "cpu.stat").write_text(f"nr_periods 9\n{stat}\n")
    limits = ProcessLimits(PHONE, Enforcement(mode, mode))
    limits.memory_group = limits.cpu_group = Group(tmp_path, mode)
    assert (limits.was_killed(), limits.most_charged_bytes(), limits.throttled_seconds()) == (True, 4096, 1.5)


@given(st.floats(0.0011, 4.0))
def test_a_quota_is_its_share_within_what_the_kernel_takes(share):
    quota, period = quota_us(share)
    assert quota >= 1000
    assert 1000 <= period <= 1_000_000
    assert quota / period == pytest.approx(share, rel=0.01)
