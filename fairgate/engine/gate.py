"""The whole gate, one step a line: from a plan to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.findings import IdentityFinding, KeptKillScore
from fairgate.domain.outcomes import GateResult, Overlap, Provenance
from fairgate.domain.units import Judged
from fairgate.engine.attribution import attribute
from fairgate.engine.baseline import Baseline, overlap, unit_contents
from fairgate.engine.compare import compare
from fairgate.engine.comparison import Comparison
from fairgate.engine.constant_answers import allowed_constant_answers
from fairgate.engine.decide import decide, weigh_evidence
from fairgate.engine.identity import compare_identities, identity_measurements
from fairgate.engine.instability import instability
from fairgate.engine.judge import ReadingsOf
from fairgate.engine.labels import label_notices
from fairgate.engine.measure import degradation, measure
from fairgate.engine.ports import Executed, Progress, SystemUnderTest
from fairgate.engine.references import Reference
from fairgate.engine.rules import expand_rules
from fairgate.engine.same_texts import same_text_notices
from fairgate.engine.tabulate import tabulate
from fairgate.engine.vanished import vanished_slices
from fairgate.engine.wave import Answered
from fairgate.engine.waves import answer_waves
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy
from fairgate.suites.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInput:
    """Everything that a run starts from; all of it is known before a model is loaded."""

    policy: Policy
    suites: Mapping[str, Suite]
    """By id, in the order of the policy."""
    plan: TestPlan
    must_match: Mapping[str, Mapping[str, str]]
    baseline: Baseline | None
    baseline_path: str
    provenance: Provenance
    anchor: Baseline | None = None
    """The run since which budgets count; None where there is none, or no rule has a budget."""
    anchor_path: str = ""
    """Empty where no rule has a budget."""
    kill_score: KeptKillScore | None = None
    has_intervals: bool = True
    """Whether values get intervals; a verdict needs them for `evidence: interval` alone."""
    notices: Sequence[str] = ()
    """What the reader of the report must know first; equal inputs, equal notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """A verdict and what it rests on, for reports, records and the next baseline."""

    result: GateResult
    executions: Executed
    tables: Mapping[str, Table]
    readings: ReadingsOf
    added: Sequence[Case]
    """The cases of the waves after the first, also where a recording lacks them."""


def run_gate(given: GateInput, sut: SystemUnderTest, progress: Progress) -> GateRun:
    """Run a plan against the system under test, compare with the baseline, and decide."""
    policy, plan = given.policy, given.plan
    answered = answer_waves(plan, given.suites, policy.seed, sut, progress)
    tables = tabulate(given.suites, answered.judged, given.baseline)
    tables, attribution = attribute(tables, answered, policy.confidence)
    result = result_of(given, tables, answered.judged, notices_of(answered, policy))
    result = replace(
        result,
        attribution=attribution,
        instability=instability(plan.units, answered.readings),
    )
    return GateRun(
        result=result,
        executions=answered.executions,
        tables=tables,
        readings=answered.readings,
        added=answered.added,
    )


def result_of(
    given: GateInput, tables: Mapping[str, Table], judged: Sequence[Judged], notices: Sequence[str]
) -> GateResult:
    """Return the verdict that follows from tables and judged units alone: measure, compare, decide.

    A bundle is verified by this, too; it has tables and units, and neither suites nor a system.
    """
    policy, plan = given.policy, given.plan
    identities = compare_identities(tables, confidence=policy.confidence, seed=policy.seed)
    measurements = measure(
        tables,
        confidence=policy.confidence,
        seed=policy.seed,
        has_intervals=given.has_intervals,
    )
    measurements += identity_measurements(identities)
    shared, since = shared_cases(given), shared_cases(given, Reference.ANCHOR)
    comparison = comparison_with(given, shared, since, identities)
    rules = compare(expand_rules(policy, plan), tables, measurements, comparison, policy)
    evidence = weigh_evidence(plan, judged, rules, policy)
    outcome, exit_code = decide(rules, evidence, shared, since)
    return GateResult(
        policy=policy.name,
        outcome=outcome,
        exit_code=exit_code,
        rules=rules,
        measurements=measurements,
        plan=plan,
        judged=judged,
        evidence=evidence,
        degradation=degradation(tables),
        overlap=shared,
        baseline_path=given.baseline_path,
        notices=[*given.notices, *notices],
        provenance=given.provenance,
        identities=identities,
        kinds={suite.id: suite.kind for suite in policy.suites},
        anchor_path=given.anchor_path,
        anchor_overlap=since,
        kill_score=given.kill_score,
    )


def notices_of(answered: Answered, policy: Policy) -> list[str]:
    """Return what a reader must know of the answers; no verdict depends on it."""
    return [
        *label_notices(answered.executions),
        *same_text_notices(answered.executions),
        *allowed_constant_answers(answered.judged, policy),
    ]


def shared_cases(given: GateInput, reference: Reference = Reference.BASELINE) -> Overlap | None:
    """Return how the plan's cases relate to the baseline's (the anchor's); None without one."""
    run = given.baseline if reference is Reference.BASELINE else given.anchor
    if run is None:
        return None
    policy, plan = given.policy, given.plan
    shared = overlap(
        plan, given.must_match, run, min_overlap=policy.min_overlap, called=reference.value
    )
    gone = vanished_slices(policy, plan, run, reference)
    return replace(shared, incompatible=[*shared.incompatible, *gone])


def comparison_with(
    given: GateInput,
    shared: Overlap | None,
    since: Overlap | None,
    identities: Sequence[IdentityFinding],
) -> Comparison:
    """Return what rules are compared with: baseline and anchor, unless made otherwise."""
    return Comparison(
        baseline=given.baseline,
        contents={suite.id: unit_contents(given.plan, suite.id) for suite in given.policy.suites},
        is_comparable=shared is None or not shared.incompatible,
        identities=identities,
        anchor=given.anchor,
        is_anchor_comparable=since is None or not since.incompatible,
    )
