"""The whole line, one step a line: from a plan to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import GateResult, Overlap, Provenance
from fairgate.engine.baseline import Baseline, overlap, pair_contents
from fairgate.engine.compare import Comparison, compare
from fairgate.engine.decide import decide, weigh_evidence
from fairgate.engine.judge import JudgeOptions, judge
from fairgate.engine.measure import degradation, measure, tabulate
from fairgate.engine.ports import Executed, Progress, SystemUnderTest
from fairgate.engine.rules import expand_rules
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInput:
    """Everything that a run starts from; all of it is known before a model is loaded."""

    policy: Policy
    plan: TestPlan
    options: Mapping[str, JudgeOptions]
    must_match: Mapping[str, Mapping[str, str]]
    baseline: Baseline | None
    baseline_path: str
    provenance: Provenance
    notices: Sequence[str] = ()
    """What the reader of the report must know beforehand; equal inputs, equal notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """A verdict and what it rests on, for reports, records and the next baseline."""

    result: GateResult
    executions: Executed
    tables: Mapping[str, Table]


def run_gate(given: GateInput, sut: SystemUnderTest, progress: Progress) -> GateRun:
    """Run a plan against the system under test, compare with the baseline, and decide."""
    policy, plan = given.policy, given.plan
    executions = sut.execute(plan, progress)
    judged = judge(plan, executions, sut, given.options)
    tables = tabulate(plan, judged, bands_of(given))
    measurements = measure(tables, confidence=policy.confidence, seed=policy.seed)
    shared = shared_cases(given)
    comparison = Comparison(
        baseline=given.baseline,
        contents={suite: pair_contents(plan, suite) for suite in plan.tasks},
        is_comparable=shared is None or not shared.incompatible,
    )
    rules = compare(expand_rules(policy, plan), tables, measurements, comparison, policy)
    evidence = weigh_evidence(plan, judged, rules, policy)
    outcome, exit_code = decide(rules, evidence, shared)
    result = GateResult(
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
        notices=given.notices,
        provenance=given.provenance,
    )
    return GateRun(result=result, executions=executions, tables=tables)


def shared_cases(given: GateInput) -> Overlap | None:
    """Return how the plan's cases relate to the baseline's; None without a baseline."""
    if given.baseline is None:
        return None
    return overlap(
        given.plan, given.must_match, given.baseline, min_overlap=given.policy.min_overlap
    )


def bands_of(given: GateInput) -> dict[str, tuple[float, float]]:
    """Return for each suite the upper limits of the RRS bands high and moderate.

    `from-baseline` takes the baseline's quartiles, and P1's limits until there is a baseline.
    """
    bands: dict[str, tuple[float, float]] = {}
    for suite in given.policy.suites:
        chosen: tuple[float, float] = PAPER_BANDS
        if isinstance(suite.bands, list):
            chosen = (suite.bands[0], suite.bands[1])
        elif suite.bands == "from-baseline" and given.baseline is not None:
            known = given.baseline.suites.get(suite.id)
            chosen = (known.quartiles if known else None) or PAPER_BANDS
        bands[suite.id] = chosen
    return bands
