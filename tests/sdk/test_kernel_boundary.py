"""What stands between Python and C: sizes, statuses and the choice of instruction set."""

import os
import platform
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lightfr import _kernel, errors
from lightfr._kernel import _boundary


def test_a_buffer_of_the_wrong_size_is_refused_with_both_sizes():
    with pytest.raises(errors.BufferSizeError) as caught:
        _kernel.distances(_kernel.CodesPointer(bytes(80), 64), _kernel.CodesPointer(bytes(8), 64), bytearray(19))
    assert (caught.value.actual_bytes, caught.value.expected_bytes) == (19, 20)


@pytest.mark.parametrize("n_bytes", [15, 17, 18, 23, 24])
def test_a_buffer_with_a_part_of_an_element_too_much_is_refused_like_any_other_size(n_bytes):
    with pytest.raises(errors.BufferSizeError, match=f"values has {n_bytes} bytes, expected 16"):
        _kernel.mask(bytearray(n_bytes), 4, 32, bytes(16), subtract=False)
    with pytest.raises(errors.BufferSizeError, match=f"gradients has {2 * n_bytes} bytes, expected 32"):
        _kernel.ternary(bytes(2 * n_bytes), 8, 1, bytes(16))


@pytest.mark.parametrize("code_bits", [-8, 0, 4, 12, 1032])
def test_a_code_length_outside_the_domain_is_refused(code_bits):
    with pytest.raises(errors.CodeLengthError) as caught:
        _kernel.CodesPointer(bytes(8), code_bits)
    assert caught.value.actual_bits == code_bits


def test_codes_that_are_no_whole_rows_are_refused():
    with pytest.raises(errors.BufferSizeError, match="item codes has 81 bytes, expected 80"):
        _kernel.CodesPointer(bytes(81), 64)


@pytest.mark.parametrize("k", [-1, 0, 2**31])
def test_k_outside_its_range_is_refused(k):
    codes, query = _kernel.CodesPointer(bytes(80), 64), _kernel.CodesPointer(bytes(8), 64)
    with pytest.raises(errors.OutOfRangeError, match="k is"):
        _kernel.topk(codes, query, k)
    with pytest.raises(errors.OutOfRangeError, match="k is"):
        _kernel.topk_batch(codes, query, k)


def test_a_query_of_another_length_or_of_two_rows_is_refused():
    codes = _kernel.CodesPointer(bytes(80), 64)
    with pytest.raises(errors.CodeLengthError, match="128 bits, expected 64"):
        _kernel.topk(codes, _kernel.CodesPointer(bytes(16), 128), 1)
    with pytest.raises(errors.BufferSizeError, match="query has 16 bytes, expected 8"):
        _kernel.topk(codes, _kernel.CodesPointer(bytes(16), 64), 1)
    with pytest.raises(errors.CodeLengthError, match="128 bits, expected 64"):
        _kernel.topk_batch(codes, _kernel.CodesPointer(bytes(16), 128), 1)
    with pytest.raises(errors.CodeLengthError, match="128 bits, expected 64"):
        _kernel.distances(codes, _kernel.CodesPointer(bytes(16), 128), bytearray(20))
    with pytest.raises(errors.BufferSizeError, match="query has 16 bytes, expected 8"):
        _kernel.distances(codes, _kernel.CodesPointer(bytes(16), 64), bytearray(20))


def test_a_bitmap_that_is_too_short_is_refused():
    codes, query = _kernel.CodesPointer(bytes(80), 64), _kernel.CodesPointer(bytes(8), 64)
    with pytest.raises(errors.BufferSizeError, match="exclusion bitmap has 1 bytes, expected 2"):
        _kernel.topk(codes, query, 1, bytes(1))


def test_counts_that_are_no_whole_bytes_are_refused():
    with pytest.raises(errors.InvalidInputError, match="12 elements"):
        _kernel.aggregate(np.zeros(12, np.int32), 12, 4, np.zeros(12, np.int32), bytearray(2))


def test_shift_and_scale_outside_their_ranges_are_refused():
    with pytest.raises(errors.OutOfRangeError, match="shift is 32"):
        _kernel.aggregate(np.zeros(8, np.int32), 8, 32, np.zeros(8, np.int32), bytearray(1))
    with pytest.raises(errors.OutOfRangeError, match="scale is 0"):
        _kernel.row_gradients(b"", 0, bytes(1), 8, b"", 0)


def test_a_read_only_output_is_refused():
    with pytest.raises((TypeError, BufferError)):
        _kernel.distances(_kernel.CodesPointer(bytes(80), 64), _kernel.CodesPointer(bytes(8), 64), bytes(20))


def test_an_unknown_instruction_set_is_refused_with_the_known_ones():
    known = ", ".join(_kernel.supported_isas())
    assert "portable" in known
    with pytest.raises(errors.InvalidInputError, match=f"'mmx' is not available here, choose one of: {known}$"):
        _kernel.select_isa("mmx")


@pytest.mark.parametrize("name", _kernel.supported_isas())
def test_the_environment_chooses_the_instruction_set(name):
    script = "from lightfr import _kernel; print(_kernel.isa_name())"
    answer = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "LIGHTFR_ISA": name}, capture_output=True, check=True
    )
    assert answer.stdout.decode().strip() == name


def test_a_processor_that_has_a_faster_variant_runs_it():
    """Else all tests of that variant would be passed over, and nobody would hear of it."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        pytest.skip("this system does not say what its processor can do")
    has_avx2 = {"avx2", "popcnt"} <= set(cpuinfo.read_text().split())
    fastest = "avx2" if has_avx2 else "neon" if platform.machine() == "aarch64" else "portable"
    script = "from lightfr import _kernel; print(_kernel.isa_name())"
    environment = {name: value for name, value in os.environ.items() if name != "LIGHTFR_ISA"}
    chosen = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    assert chosen.stdout.decode().strip() == fastest
    assert fastest in _kernel.supported_isas()


def test_an_unusable_instruction_set_in_the_environment_is_an_error_not_a_surprise():
    answer = subprocess.run(
        [sys.executable, "-c", "import lightfr"], env={**os.environ, "LIGHTFR_ISA": "sse9"}, capture_output=True
    )
    assert answer.returncode != 0
    assert b"'sse9' is not available here" in answer.stderr


def test_a_status_that_no_check_foresaw_becomes_a_kernel_error():
    from lightfr._kernel._boundary import check

    with pytest.raises(errors.KernelError, match="kernel status 12: a count"):
        check(12)
    with pytest.raises(errors.KernelError, match="unknown status"):
        check(99)


def test_an_instruction_set_that_the_environment_names_is_taken_or_refused_at_the_import(monkeypatch):
    monkeypatch.setenv("LIGHTFR_ISA", _kernel.isa_name())
    assert runpy.run_path(_boundary.__file__)["isa_name"]() == _kernel.isa_name()
    monkeypatch.setenv("LIGHTFR_ISA", "abacus")
    with pytest.raises(errors.InvalidInputError, match="'abacus' is not available here"):
        runpy.run_path(_boundary.__file__)


def test_a_prior_whose_steps_rise_is_refused_by_one_query_and_by_many():
    codes, query = _kernel.CodesPointer(bytes(80), 64), _kernel.CodesPointer(bytes(8), 64)
    rising = _kernel.PriorPointer([(0, 1), (5, 2)])
    for search in (_kernel.topk, _kernel.topk_batch):
        with pytest.raises(errors.LightFRError):
            search(codes, query, 3, None, rising)
