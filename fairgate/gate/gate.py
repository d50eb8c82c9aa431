"""The whole gate, one step a line: from a plan to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.measurements import Slice, slice_of
from fairgate.domain.outcomes import GateResult, IdentityFinding, KeptKillScore, Overlap, Provenance
from fairgate.domain.ports import Executed, Progress, SystemUnderTest
from fairgate.domain.units import Judged
from fairgate.gate.attribution import attribute
from fairgate.gate.baseline import Baseline, Reference, overlap, unit_contents
from fairgate.gate.compare import compare
from fairgate.gate.comparison import Comparison, RowsKey, vanished_slices
from fairgate.gate.decide import allowed_constant_answers, decide, weigh_evidence
from fairgate.gate.identity import compare_identities, identity_measurements
from fairgate.gate.judge import JudgeUnits, ReadingsOf, judge_units, tabulate
from fairgate.gate.labels import label_notices
from fairgate.gate.measure import degradation, instability, measure
from fairgate.gate.rules import Rule, expand_rules
from fairgate.gate.same_texts import same_text_notices
from fairgate.gate.unjudged_documents import unjudged_documents
from fairgate.gate.waves import Answered, Asking, answer_waves
from fairgate.metrics.attribution import COLUMNS
from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.metrics.metric import Metric
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy
from fairgate.suites.suite import Suite


@dataclass(frozen=True, kw_only=True)
class GateInput:
    """Everything that a run starts from; all of it is known before a model is loaded.

    What follows from it alone is had once, however many runs start from it.
    """

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
    verdict_of: frozenset[str] | None = None
    """None: the result says all that reports show. Else only the verdict is wanted: nothing is
    noted about the answers, and only these metrics are measured beside those of the rules."""
    notices: Sequence[str] = ()
    """What the reader of the report must know first; equal inputs, equal notices."""
    judge_units: JudgeUnits = judge_units
    """Decides the units of a suite."""

    @property
    def measured(self) -> Sequence[Metric]:
        """Return the metrics that are measured in every slice that reports show."""
        if self.verdict_of is None:
            return list(METRICS)
        wanted = self.verdict_of | {rule.metric.id for rule in self.rules}
        return [metric for metric in METRICS if metric.id in wanted]

    @property
    def compared_terms(self) -> AbstractSet[Slice] | None:
        """Return the slices whose terms are compared with each other; None: all."""
        if self.verdict_of is None:
            return None
        asked = (rule for rule in self.rules if rule.metric.compares_terms)
        return {slice_of(rule.metric.id, rule.suite, rule.where) for rule in asked}

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """Return the rules of all gates."""
        return expand_rules(self.policy, self.plan)

    @cached_property
    def contents(self) -> Mapping[str, Mapping[str, str]]:
        """Return suite to unit to content hash."""
        return {suite.id: unit_contents(self.plan, suite.id) for suite in self.policy.suites}

    @cached_property
    def known_rows(self) -> dict[RowsKey, Table]:
        """Return a cache of the kept runs' rows that can be compared."""
        return {}

    @cached_property
    def overlaps(self) -> Mapping[Reference, Overlap | None]:
        """Return how the plan's cases relate to the baseline's and the anchor's."""
        return {reference: shared_cases(self, reference) for reference in Reference}


def without_attribution(given: GateInput) -> tuple[GateInput, list[str]]:
    """Return the input without crossed answers, which a changed pair has none of, and its rules."""
    columns = set(COLUMNS.values())
    gates = given.policy.gates
    out = [g.metric for g in gates if g.metric in BY_ID and BY_ID[g.metric].column in columns]
    kept = [gate for gate in gates if gate.metric not in out]
    policy = given.policy.model_copy(update={"gates": kept})
    quiet = {name: suite.without_crossing() for name, suite in given.suites.items()}
    has_intervals = any(gate.evidence == "interval" for gate in kept)
    lean = replace(given, policy=policy, suites=quiet, has_intervals=has_intervals)
    return lean, list(dict.fromkeys(out))


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
    asking = Asking(judge_units=given.judge_units)
    answered = answer_waves(plan, given.suites, policy.seed, sut, progress, asking)
    tables = tabulate(given.suites, answered.judged, given.baseline)
    tables, attribution = attribute(tables, answered, policy.confidence)
    notices: list[str] = []
    if given.verdict_of is None:
        notices = [*notices_of(answered, policy), *unjudged_documents(tables, policy)]
    result = result_of(given, tables, answered.judged, notices)
    if given.verdict_of is None:
        unsteady = instability(plan.units, answered.readings)
        result = replace(result, attribution=attribution, instability=unsteady)
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
    identities = compare_identities(
        tables, confidence=policy.confidence, seed=policy.seed, asked=given.compared_terms
    )
    measurements = measure(
        tables,
        confidence=policy.confidence,
        seed=policy.seed,
        has_intervals=given.has_intervals,
        metrics=given.measured,
    )
    measurements += identity_measurements(identities)
    shared, since = (given.overlaps[reference] for reference in Reference)
    comparison = comparison_with(given, shared, since, identities)
    rules = compare(given.rules, tables, measurements, comparison, policy)
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
        contents=given.contents,
        is_comparable=shared is None or not shared.incompatible,
        identities=identities,
        anchor=given.anchor,
        is_anchor_comparable=since is None or not since.incompatible,
        known_rows=given.known_rows,
    )
