"""The whole line, one step a line: from a plan to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.outcomes import GateResult, Overlap, Provenance
from fairgate.engine.attribution import Crossing, attribute
from fairgate.engine.baseline import Baseline, overlap, pair_contents
from fairgate.engine.compare import compare
from fairgate.engine.comparison import Comparison
from fairgate.engine.crossing import cross
from fairgate.engine.decide import decide, weigh_evidence
from fairgate.engine.identity import compare_identities, identity_measurements
from fairgate.engine.instability import instability
from fairgate.engine.judge import JudgeOptions, judge
from fairgate.engine.judge_items import ItemOptions, judge_items
from fairgate.engine.labels import label_notices
from fairgate.engine.measure import degradation, measure, tabulate
from fairgate.engine.ports import Executed, Progress, SystemUnderTest
from fairgate.engine.rules import expand_rules
from fairgate.engine.tabulate_items import tabulate_items
from fairgate.engine.vanished import vanished_slices
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
    item_options: Mapping[str, ItemOptions] = field(default_factory=dict)
    """How the answers of each suite of question items are read."""
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
    executions = dict(sut.execute(plan, progress))
    judged = judge(plan, executions, sut, given.options)
    crossed = cross(plan, judged, executions, policy)
    executions |= second_wave(crossed, sut, progress, executions)
    crossing = Crossing(plan=crossed, executions=executions, options=given.options, policy=policy)
    tables, attribution = attribute(tabulate(plan, judged, bands_of(given)), judged, crossing)
    judged_items = judge_items(plan, executions, given.item_options)
    tables |= tabulate_items(judged_items, given.item_options)
    identities = compare_identities(tables, confidence=policy.confidence, seed=policy.seed)
    measurements = [
        *measure(tables, confidence=policy.confidence, seed=policy.seed),
        *identity_measurements(identities),
    ]
    shared = shared_cases(given)
    comparison = Comparison(
        baseline=given.baseline,
        contents={suite: pair_contents(plan, suite) for suite in tables},
        is_comparable=shared is None or not shared.incompatible,
        identities=identities,
    )
    rules = compare(expand_rules(policy, plan), tables, measurements, comparison, policy)
    evidence = weigh_evidence(plan, [*judged, *judged_items], rules, policy)
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
        notices=[*given.notices, *label_notices(executions)],
        provenance=given.provenance,
        identities=identities,
        attribution=attribution,
        instability=instability(plan, executions),
        judged_items=judged_items,
    )
    return GateRun(result=result, executions=executions, tables=tables)


def second_wave(
    crossed: TestPlan, sut: SystemUnderTest, progress: Progress, first: Executed
) -> dict[tuple[str, str], Execution]:
    """Return the executions of the cases that only the first wave's verdicts could name."""
    return dict(sut.execute(crossed, progress, first)) if crossed.cases else {}


def shared_cases(given: GateInput) -> Overlap | None:
    """Return how the plan's cases relate to the baseline's; None without a baseline."""
    if given.baseline is None:
        return None
    shared = overlap(
        given.plan, given.must_match, given.baseline, min_overlap=given.policy.min_overlap
    )
    gone = vanished_slices(given.policy, given.plan, given.baseline)
    return replace(shared, incompatible=[*shared.incompatible, *gone])


def bands_of(given: GateInput) -> dict[str, tuple[float, float]]:
    """Return for each suite the upper limits of the RRS bands high and moderate.

    `from-baseline` takes the baseline's quartiles, and P1's limits until there is a baseline.
    """
    bands: dict[str, tuple[float, float]] = {}
    for suite in given.policy.metamorphic:
        chosen: tuple[float, float] = PAPER_BANDS
        if isinstance(suite.bands, list):
            chosen = (suite.bands[0], suite.bands[1])
        elif suite.bands == "from-baseline" and given.baseline is not None:
            known = given.baseline.suites.get(suite.id)
            chosen = (known.quartiles if known else None) or PAPER_BANDS
        bands[suite.id] = chosen
    return bands
