"""Replicas behind a load balancer, killed while devices take part: the small version of `make kill-replicas`."""

import os

import pytest

from tests.postgres import WANTED


@pytest.mark.skipif(WANTED not in os.environ, reason="PostgreSQL is tried by `make test-postgres`")
def test_killed_six_times_and_postgresql_once_they_lose_nothing_and_count_nothing_twice(tmp_path):
    from tests.campaigns import kill_replicas

    summary = kill_replicas.run(kills=6, postgres_kills=1, seed=1, base=tmp_path, replicas=2, progress=lambda _: None)
    assert summary.is_good(), summary
