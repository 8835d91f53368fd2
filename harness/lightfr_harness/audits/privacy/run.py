"""From options to a record: train and capture every scenario, attack it, and write down what was found."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from lightfr import __version__, _kernel
from lightfr_harness.audits.capture import LAST_ROUNDS, Capture, CapturingRun, Ints, Truth, draw_cohorts, split_capture
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy import (
    blind_separation,
    chosen_cohorts,
    differences,
    evaluations,
    item_set_recovery,
    known_items,
    participation,
    published_codes,
    rating_membership,
    rating_recovery,
    small_cohort,
    user_code_recovery,
)
from lightfr_harness.audits.privacy.clear_uploads import decode_capture
from lightfr_harness.audits.privacy.evaluation_sums import Evaluated, observe_evaluation
from lightfr_harness.audits.privacy.plan import (
    EVALUATE_EVERY,
    SECURE_MODES,
    SMALL_COHORTS,
    AuditOptions,
    Scenario,
    scenarios,
)
from lightfr_harness.records import PrivacyRecord, PrivacyRun
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.judging import accuracy_of, judge
from lightfr_harness.simulation.train import load_split, make_server, privacy_loss
from lightfr_harness.simulation.training import RunOptions

# Called with what is being done and the share of all work that is done.
Progress = Callable[[str, float], None]
MASKED_UPLOADS = "the SDK's own in the first round of each run; of the other rounds the sum alone, made without masks"


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
    n_users = split.train.n_users
    drawn = draw_cohorts(n_users, scenario.cohort, training.rounds, options.rounds_per_device, options.seed)
    cohorts, evaluating = _training_and_evaluations(drawn) if scenario.mode in SECURE_MODES else (drawn, ())
    plan = RunOptions(len(cohorts), min(1.0, scenario.cohort / n_users), 0.0, options.seed)
    server, fleet = make_server(training, split.train), Fleet.of(split.train, options.bits, options.seed)
    captured = CapturingRun(server, fleet, plan, cohorts=cohorts)
    evaluated = list(_evaluations(captured, evaluating))
    capture, truth = split_capture(captured, split.train, scenario.name, options.seed)
    figures: PrivacyRun = {
        "mode": capture.mode,
        "cohort": scenario.cohort,
        "gate": training.gate,
        "gate_only": scenario.gate_only,
        "upload_bytes": capture.upload_bytes,
        "open_rows": int(np.count_nonzero(capture.rounds[-1].open_rows)),
        "accuracy": accuracy_of(judge(training, captured, split)),
        "privacy_loss": privacy_loss(captured, len(capture.knowledge.colluders), len(evaluated)),
    }
    promised = bool(training.gate) and scenario.cohort >= options.minimum_cohort
    findings = [published_codes.audit(capture, truth, promised=promised)]
    if not scenario.gate_only:
        findings = _uploads(capture, truth, scenario, options) + findings
        if not capture.is_clear:
            findings += _sums(captured, capture, truth, scenario, options)
            private = _is_private(scenario.mode, scenario.cohort, options)
            findings += evaluations.audit(captured, evaluated, capture, scenario.cohort, options.seed, private=private)
    return findings, figures


def _training_and_evaluations(cohorts: tuple[Ints, ...]) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    """After every ten cohorts that train, one evaluates, as at a coordinator; both count as rounds of a device."""
    period = EVALUATE_EVERY + 1
    training = tuple(cohort for index, cohort in enumerate(cohorts) if index % period != EVALUATE_EVERY)
    return training, cohorts[EVALUATE_EVERY::period]


def _evaluations(captured: CapturingRun, cohorts: tuple[Ints, ...]) -> Iterator[Evaluated]:
    """Train to the end; yields the evaluations in between."""
    left = iter(cohorts)
    for finished in captured:
        if finished % EVALUATE_EVERY == 0 and (cohort := next(left, None)) is not None:
            yield observe_evaluation(captured, cohort, captured.random(finished, 9))


def _uploads(capture: Capture, truth: Truth, scenario: Scenario, options: AuditOptions) -> list[Finding]:
    private = _is_private(scenario.mode, scenario.cohort, options)
    decoded = decode_capture(capture) if capture.is_clear else None
    return [
        *user_code_recovery.audit(capture, truth, decoded, private=private),
        *rating_recovery.audit(capture, truth, decoded, private=private),
        *item_set_recovery.audit(capture, truth, decoded, private=private),
        *rating_membership.audit(capture.last(LAST_ROUNDS), truth.last(LAST_ROUNDS), decoded, options.seed),
    ]


def _is_private(mode: str, cohort: int, options: AuditOptions) -> bool:
    """Only secagg, with or without noise, promises anything, and only to cohorts that a device accepts."""
    return mode in SECURE_MODES and cohort >= options.minimum_cohort


def _sums(
    captured: CapturingRun, capture: Capture, truth: Truth, scenario: Scenario, options: AuditOptions
) -> list[Finding]:
    """Attacks on the campaign's sums and on chosen cohorts; small cohorts once, after the largest campaign."""
    private = _is_private(scenario.mode, scenario.cohort, options)
    findings = [
        blind_separation.audit(capture, truth, private=private),
        *known_items.audit(capture, truth, options.seed, private=private),
        participation.audit(capture, truth, private=private),
    ]
    trials = chosen_cohorts.gate_pairs(captured, scenario.cohort, options.seed)
    findings.append(differences.audit_gate(trials, capture, private=private))
    for setting, next_matrix in (("same matrix", False), ("next matrix", True)):
        apart = chosen_cohorts.round_pairs(captured, scenario.cohort, options.seed, next_matrix=next_matrix)
        findings += differences.audit_rounds(apart, capture, setting, private=private)
    if scenario.cohort < min(max(options.cohorts, default=scenario.cohort), capture.n_users):
        return findings
    for size in SMALL_COHORTS:
        if size < capture.n_users:
            sums = chosen_cohorts.small_cohorts(captured, size, options.seed)
            private = _is_private(scenario.mode, size, options)
            name = f"{scenario.mode}, cohort {size}"
            findings += small_cohort.audit(sums, capture, name, private=private)
    return findings


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
