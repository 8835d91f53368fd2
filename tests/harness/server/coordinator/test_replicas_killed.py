"""Replicas behind a load balancer: the small versions of `make kill-replicas` and `make equal-replicas`."""

import os

import pytest

from tests.postgres import WANTED

pytestmark = pytest.mark.skipif(WANTED not in os.environ, reason="PostgreSQL is tried by `make test-postgres`")


def test_killed_six_times_and_postgresql_once_they_lose_nothing_and_count_nothing_twice(tmp_path):
    from tests.campaigns import kill_replicas

    summary = kill_replicas.run(kills=6, postgres_kills=1, seed=1, base=tmp_path, replicas=2, progress=lambda _: None)
    assert summary.is_good(), summary


def test_devices_of_three_cohorts_make_the_version_of_one_coordinator_although_replicas_are_killed(tmp_path):
    from tests.campaigns import equal_replicas

    differ, kills = equal_replicas.run(
        tmp_path, devices=24, cohorts=3, rounds=1, deadline=8, replicas=2, kills=3, postgres_kills=1, pause=1.0
    )
    assert (differ, kills) == (0, 3)
