"""From options to a record: train and capture every scenario, attack it, and write down what was found."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from lightfr import __version__, _kernel
from lightfr_harness.audits.capture import Capture, CapturingRun, Ints, Truth, split_capture
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy import (
    intersection,
    item_set_recovery,
    published_codes,
    rating_membership,
    rating_recovery,
    small_cohort,
    user_code_recovery,
)
from lightfr_harness.audits.privacy.clear_uploads import decode_capture
from lightfr_harness.audits.privacy.plan import SECURE_MODES, SMALL_COHORTS, AuditOptions, Scenario, scenarios
from lightfr_harness.records import PrivacyRecord, PrivacyRun
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.train import accuracy_of, judge, load_split, make_server, privacy_loss
from lightfr_harness.simulation.training import RunOptions

# Called with what is being done and the share of all work that is done.
Progress = Callable[[str, float], None]
# Devices in the small-cohort trials of one size, about, and trials at most.
TRIAL_DEVICES, MOST_TRIALS = 48, 8
MASKED_UPLOADS = "the SDK's own in the first round of each run; of the other rounds the sum alone, made without masks"
DIFFERENCES = 20


@dataclass(frozen=True)
class Audited:
    """Findings, and figures of the runs for the plots."""

    findings: list[Finding]
    record: PrivacyRecord


def run(options: AuditOptions, progress: Progress = lambda what, share: None) -> Audited:
    """Audit every mode that the options name."""
    n_users = load_split(options.training(options.modes[0], None)).train.n_users
    plan = scenarios(options, n_users)
    findings: list[Finding] = []
    runs: list[PrivacyRun] = []
    for index, scenario in enumerate(plan):
        progress(scenario.name, index / len(plan))
        found, figures = _audit(options, scenario)
        findings += found
        runs.append(figures)
    progress("done", 1.0)
    return Audited(findings, _record(options, findings, runs))


def _audit(options: AuditOptions, scenario: Scenario) -> tuple[list[Finding], PrivacyRun]:
    training = options.training(scenario.mode, scenario.gate)
    split = load_split(training)
    plan = RunOptions(options.rounds, min(1.0, scenario.cohort / split.train.n_users), 0.0, options.seed)
    server, fleet = make_server(training, split.train), Fleet.of(split.train, options.bits, options.seed)
    captured = CapturingRun(server, fleet, plan)
    for _ in captured:
        pass
    capture, truth = split_capture(captured, split.train, scenario.name, options.seed)
    figures: PrivacyRun = {
        "mode": capture.mode,
        "cohort": scenario.cohort,
        "gate": training.gate,
        "gate_only": scenario.gate_only,
        "upload_bytes": capture.upload_bytes,
        "open_rows": int(np.count_nonzero(capture.rounds[-1].open_rows)),
        "accuracy": accuracy_of(judge(training, captured, split)),
        "privacy_loss": privacy_loss(captured, len(capture.knowledge.colluders)),
    }
    promised = bool(training.gate) and scenario.cohort >= options.minimum_cohort
    findings = [published_codes.audit(capture, truth, promised=promised)]
    if not scenario.gate_only:
        findings = _uploads(capture, truth, scenario, options) + findings
        if not capture.is_clear:
            findings += _cohorts(captured, capture, truth, scenario, options)
    return findings, figures


def _uploads(capture: Capture, truth: Truth, scenario: Scenario, options: AuditOptions) -> list[Finding]:
    private = _is_private(scenario.mode, scenario.cohort, options)
    decoded = decode_capture(capture) if capture.is_clear else None
    return [
        *user_code_recovery.audit(capture, truth, decoded, private=private),
        *rating_recovery.audit(capture, truth, decoded, private=private),
        *item_set_recovery.audit(capture, truth, decoded, private=private),
        *rating_membership.audit(capture, truth, decoded, options.seed),
    ]


def _is_private(mode: str, cohort: int, options: AuditOptions) -> bool:
    """Only secagg, with or without noise, promises anything, and only to cohorts that a device accepts."""
    return mode in SECURE_MODES and cohort >= options.minimum_cohort


def _cohorts(
    captured: CapturingRun, capture: Capture, truth: Truth, scenario: Scenario, options: AuditOptions
) -> list[Finding]:
    """Intersections within the campaign; small cohorts and differences once, after the largest campaign."""
    private = _is_private(scenario.mode, scenario.cohort, options)
    findings = intersection.audit_campaign(capture, truth, private=private)
    largest = min(max(options.cohorts, default=scenario.cohort), capture.n_users)
    if scenario.cohort != largest:
        return findings
    for size in SMALL_COHORTS:
        if size <= capture.n_users:
            trials = _trials(captured, capture, size, options.seed)
            private = _is_private(scenario.mode, size, options)
            name = f"{scenario.mode}, cohort {size}"
            findings += small_cohort.audit(trials, capture.item_counts, name, private=private)
    for setting, next_matrix in (("same matrix", False), ("next matrix", True)):
        apart = _differences(captured, capture, scenario.cohort, options.seed, next_matrix=next_matrix)
        findings += intersection.audit_differences(apart, setting, capture.item_counts, scenario.name)
    return findings


def _trials(captured: CapturingRun, capture: Capture, size: int, seed: int) -> list[small_cohort.CohortTrial]:
    """Sums over random cohorts of one size for the final matrix; the devices' codes are put back after each."""
    trials, before = [], captured.fleet.codes().copy()
    for index in range(max(1, min(MOST_TRIALS, TRIAL_DEVICES // size))):
        rng = np.random.default_rng([seed, 23, size, index])
        cohort = _draw(rng, capture.n_users, size)
        guesses, bystanders = user_code_recovery.guessed_codes(capture, -1), captured.bystanders(cohort)
        view, codes, rows = captured.observe(cohort, rng)
        trials.append(small_cohort.CohortTrial(view, guesses, bystanders, codes, rows))
        captured.fleet.restore(before)
    return trials


def _differences(
    captured: CapturingRun, capture: Capture, size: int, seed: int, *, next_matrix: bool
) -> list[intersection.DifferenceTrial]:
    """Cohorts of `size` devices, and the same with one device less: before it on this matrix, or on the one before."""
    trials, before = [], captured.fleet.codes().copy()
    state = {name: value.copy() for name, value in captured.server.state().items()}
    for index in range(DIFFERENCES):
        rng = np.random.default_rng([seed, 29, index])
        cohort = _draw(rng, capture.n_users, size)
        target = int(rng.choice(cohort))
        without, *_ = captured.observe(cohort[cohort != target], rng)
        if next_matrix:
            captured.move(without)
        with_one, codes, rows = captured.observe(cohort, rng)
        trials.append(intersection.DifferenceTrial(without, with_one, codes[target], rows[target]))
        captured.fleet.restore(before)
        captured.server.restore({name: value.copy() for name, value in state.items()})
    return trials


def _draw(rng: np.random.Generator, n_users: int, size: int) -> Ints:
    return np.sort(rng.choice(n_users, size, replace=False))


def _record(options: AuditOptions, findings: list[Finding], runs: list[PrivacyRun]) -> PrivacyRecord:
    asked = {key: str(value) if key == "data" and value else value for key, value in asdict(options).items()}
    return PrivacyRecord(
        options=asked,
        findings=[finding.record() for finding in findings],
        runs=runs,
        masked_uploads=MASKED_UPLOADS,
        isa=_kernel.isa_name(),
        machine=platform.machine(),
        lightfr=__version__,
    )
