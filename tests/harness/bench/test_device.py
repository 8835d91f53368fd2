from lightfr_harness.bench import device


def test_a_real_device_is_measured_from_outside_phase_by_phase():
    phases = []
    record = device.run_all(items=20_000, bits=64, ratings=50, progress=phases.append)
    assert phases[-1] == "recommend"
    assert record["most_threads"] == 1
    assert record["loaded"] == []
    assert 10 * 2**20 < record["bare_rss_bytes"] < record["peak_rss_bytes"] < 48 * 2**20
    assert 0 < record["first_sync_over_codes_bytes"] <= record["first_sync_limit_bytes"]
    assert 0 < record["upload_overhead_bytes"] <= 600
    # Of so few rows the manifest is a large part; for a million the ratio is below 1.2.
    assert 1 < record["delta_ratio"] < 4
    assert record["import_cpu_ms_min"] > 0
