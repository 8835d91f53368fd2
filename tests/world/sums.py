"""Recomputes every version from what devices really sent: the sum of each cohort, and what the rule makes of it.

The rule is the shipped one, fed by this module in its own order; tests/harness/server/rules compares the rule with the
equations of docs/protocol.md.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator.options import ItemList, make_rule
from lightfr_harness.server.coordinator.plan import GATE_REFRESH, TRAINING
from lightfr_harness.server.rules.cohorts import CohortSum
from lightfr_harness.server.rules.plausible import ImplausibleSumError

if TYPE_CHECKING:
    from tests.world.world import World


class Sums:
    """What devices masked, and the states that versions were made with."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[str, Any] = {}
        # Digest of a masked vector to the numbers under the masks; None: those of a liar.
        self._vectors: dict[bytes, dict[str, Any] | None] = {}
        # Device and round to the digest of the masked vector that arrived.
        self._states: dict[int, dict[str, Any]] = {}
        # Sums that a liar has spoilt when it revealed.
        self._spoilt: list[CohortSum] = []

    def masks(self, vector: Any) -> None:
        self._open = {
            block.name: np.frombuffer(vector[block.name], f"<i{vector[block.name].itemsize}").astype(np.int64)
            for block in vector.blocks
        }

    def masked(self, packed: bytes, *, is_lie: bool) -> None:
        self._vectors[hashlib.sha256(packed).digest()] = None if is_lie else self._open
        # An upload that equals what is under its masks would be no secret.

    def check_cohort(self, one: Any, cohort: CohortSum) -> None:
        """The sum of a cohort is that of its survivors' vectors."""
        if cohort.survivors != len(one.receipts):
            self._world.fail("a cohort has other survivors than receipts")
        bodies = self._world.uploads_of(one)
        vectors = [
            self._vectors.get(hashlib.sha256(pb.UploadRequest.FromString(body).masked_vector).digest())
            for body in bodies
        ]
        if len(bodies) != len(one.receipts):
            self._world.fail("an upload that is counted never arrived")
        if any(vector is None for vector in vectors):
            if not self._world.forecast.n_hostile:
                self._world.fail("an upload is none that its device made")
            return
        for name, numbers in cohort.sums.items():
            expected = sum(vector[name] for vector in vectors if vector is not None)
            if not np.array_equal(expected, numbers):
                self._differs(cohort)

    def _differs(self, cohort: CohortSum) -> None:
        """Where just enough shares are revealed, a false one cannot be told from the others: the mask is another."""
        if any("reveal" in steps for steps in self._world.lies.values()):
            self._spoilt.append(cohort)
        else:
            self._world.fail("a sum is not that of the uploads that were acknowledged")

    def check_clear(self, coordinator: Any, current: Any, bodies: list[bytes], before: dict[str, Any]) -> None:
        """A round in the clear: each receipt's upload, once."""
        digests = [hashlib.sha256(body).digest() for body in bodies]
        if sorted(digests) != sorted(receipt.request_sha256 for receipt in current.receipts.values()):
            self._world.fail("a version is made of other uploads than those that were taken")
        rule = self._rule(before)
        for body in sorted(bodies):
            rule.add(pb.UploadRequest.FromString(body).row_update.SerializeToString())
        rule.finish_round()
        self._compare(coordinator, rule, before)

    def check_secret(self, coordinator: Any, first: Any, cohorts: list[CohortSum], before: dict[str, Any]) -> None:
        """A masked round: the cohorts' sums, which were checked before."""
        for cohort in cohorts:
            if any(cohort is spoilt for spoilt in self._spoilt) and self._is_plausible(first.kind, cohort, before):
                self._world.fail("a version was made with a sum that a liar had spoilt")
        rule = self._rule(before)
        if first.kind == GATE_REFRESH:
            seed = int.from_bytes(first.round_id, "little")
            rule.set_gate(**cohorts[0].sums, seed=seed, devices=cohorts[0].survivors)
        elif first.kind == TRAINING:
            try:
                rule.add_cohorts(cohorts)
            except ImplausibleSumError:
                return
            rule.finish_round()
        self._compare(coordinator, rule, before)

    def _is_plausible(self, kind: int, cohort: CohortSum, before: dict[str, Any]) -> bool:
        """Whether a round of this cohort alone would be taken; one of another kind has been."""
        try:
            if kind == TRAINING:
                self._rule(before).add_cohorts([cohort])
        except ImplausibleSumError:
            return False
        return True

    def _rule(self, before: dict[str, Any]) -> Any:
        forecast = self._world.forecast
        stand_in = ItemList.unnamed(len(forecast.items.ids), has_counts=forecast.has_counts)
        rule = make_rule(forecast.settings, stand_in)
        rule.restore({name: value.copy() for name, value in before.items()})
        return rule

    def _compare(self, coordinator: Any, rule: Any, before: dict[str, Any]) -> None:
        """The state is what the oracle has, and began where the version before ended."""
        version = coordinator.version.manifest.model_version
        after = {name: value.copy() for name, value in coordinator._rule.state().items()}
        if not _is_same(after, rule.state()):
            self._world.fail("a version is not what its uploads make of the one before")
        known = self._states.get(version)
        if known is not None and not _is_same(known, before):
            self._world.fail("a version was made from another state than the last one left")
        self._states = {version: before, version + 1: after}


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
