"""The whole gate, one step a line: from a plan to a verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import (
    Attribution,
    Degradation,
    Evidence,
    Measurement,
    Origin,
    Outcome,
    Overlap,
    Provenance,
    RuleResult,
)
from fairgate.domain.parity import ParityResult, SelectionRate
from fairgate.domain.ports import Executed, Progress, Staged, SystemUnderTest
from fairgate.domain.units import Assessed
from fairgate.gate.attribution import attribute, crossed_cases, crossing_price, documents_of_pairs
from fairgate.gate.baseline import (
    NO_ACCEPTED_RUNS,
    AcceptedRun,
    AcceptedRuns,
    overlap,
    unit_contents,
)
from fairgate.gate.changes import Comparison, vanished_identities
from fairgate.gate.compare import rule_results
from fairgate.gate.decide import decide, weigh_evidence
from fairgate.gate.labels import Precision, precisions
from fairgate.gate.measure import (
    degradation,
    measure,
    tabulate,
)
from fairgate.gate.notices import notices_of
from fairgate.gate.parity import judge_parity
from fairgate.gate.rules import ParityRule, Rule, expand_rules, parity_rules
from fairgate.gate.selection import selection_of
from fairgate.gate.served import served_notices, served_problems, served_warnings
from fairgate.gate.waivers import waiver_notices, with_waiver
from fairgate.gate.waves import ReadingsOf, ask, assess
from fairgate.metrics.attribution import COLUMNS
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Table
from fairgate.policy.schema import Policy
from fairgate.suites.suite import Suite


@dataclass(frozen=True, kw_only=True)
class GateInput:
    """Everything that a run starts from; all of it is known before a model is loaded.

    What follows from it alone is computed once, however many runs start from it.
    """

    policy: Policy
    suites: Mapping[str, Suite]
    """By id, in the order of the policy."""
    plan: TestPlan
    must_match: Mapping[str, Mapping[str, str]]
    provenance: Provenance
    accepted_runs: AcceptedRuns = NO_ACCEPTED_RUNS
    notices: Sequence[str] = ()
    """What the reader of the report must know first; equal inputs, equal notices."""
    footnotes: Sequence[str] = ()
    """The same, told last: what of the answers' origin is not known."""
    day: str = ""
    """YYYY-MM-DD, the day that waivers are compared with; without one none counts."""

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """Return the rules about metrics."""
        return expand_rules(self.policy, self.plan)

    @cached_property
    def parity_rules(self) -> Sequence[ParityRule]:
        """Return the questions about outcomes."""
        return parity_rules(self.policy, self.suites)

    @cached_property
    def overlaps(self) -> Mapping[AcceptedRun, Overlap]:
        """Return how the plan's cases relate to those of each run that is compared with."""
        overlaps = {}
        for accepted, run in self.accepted_runs.runs.items():
            least, noun = self.policy.min_overlap, accepted.value
            shared = overlap(self.plan, self.must_match, run, min_overlap=least, noun=noun)
            gone = vanished_identities(self.parity_rules, self.plan, run, accepted)
            overlaps[accepted] = replace(shared, incompatible=[*shared.incompatible, *gone])
        return overlaps

    @cached_property
    def precisions(self) -> Mapping[str, Precision]:
        """Return by suite how often people call right what is reported, of suites with labels."""
        measured = precisions(self.accepted_runs.labels)
        return {suite: measured[suite] for suite in self.suites if suite in measured}

    @cached_property
    def comparison(self) -> Comparison:
        """Return the runs that the rules compare with."""
        return Comparison(
            runs=self.accepted_runs.runs,
            contents={suite.id: unit_contents(self.plan, suite.id) for suite in self.policy.suites},
            unfit={accepted for accepted, shared in self.overlaps.items() if shared.incompatible},
            other_space=self.other_space,
        )

    @cached_property
    def other_space(self) -> frozenset[AcceptedRun]:
        """The runs that are compared with and whose documents another embedder measured."""
        own = self.provenance.embedding_space
        runs = self.accepted_runs.runs.items()
        return frozenset(
            accepted for accepted, run in runs if run.provenance.embedding_space != own
        )

    def without_attribution(self) -> tuple[GateInput, list[str]]:
        """Return the input without attribution, and the metrics whose rules are left out with it.

        Mutants and mixed versions of a run use it: changed pairs have no crossed answers.
        """
        columns, gates = set(COLUMNS.values()), self.policy.gates
        out = [
            gate.metric
            for _, gate in self.policy.bounds
            if gate.metric in METRICS and METRICS[gate.metric].column in columns
        ]
        gates_left = [gate for gate in gates if getattr(gate, "metric", "") not in out]
        policy = self.policy.model_copy(update={"gates": gates_left})
        quiet = {name: suite.without_crossing() for name, suite in self.suites.items()}
        return replace(self, policy=policy, suites=quiet), list(dict.fromkeys(out))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Everything a report needs; decided here, once."""

    gate_input: GateInput
    outcome: Outcome
    exit_code: ExitCode
    rules: Sequence[RuleResult]
    measurements: Sequence[Measurement]
    assessed: Sequence[Assessed]
    """Every unit of the plan, of all suites."""
    evidence: Evidence
    degradation: Sequence[Degradation]
    overlap: Overlap | None
    """How the run's cases relate to the baseline's; None without one."""
    anchor_overlap: Overlap | None = None
    """How they relate to the anchor's."""
    attribution: Sequence[Attribution] = ()
    selection: Sequence[SelectionRate] = ()
    answer_notices: Sequence[str] = ()
    """What a reader must know of the answers."""
    origin: Origin | None = None
    """None where the system is not asked from outside."""

    @property
    def notices(self) -> list[str]:
        """Return all that a reader must know beside the verdict, in the order of reports."""
        origin = [] if self.origin is None else [self.origin.sentence]
        notices = [*self.gate_input.notices, *self.answer_notices]
        return [*notices, *self.gate_input.footnotes, *origin]

    @property
    def parity_results(self) -> list[ParityResult]:
        """Return the results of the scans, in the order of the rules."""
        return [rule.parity for rule in self.rules if rule.parity is not None]

    @property
    def incompatible(self) -> list[str]:
        """Return the differences that forbid a comparison with the baseline, then the anchor."""
        overlaps = (self.overlap, self.anchor_overlap)
        return [line for overlap in overlaps if overlap for line in overlap.incompatible]

    def suites_of(self, kind: str) -> list[str]:
        """Return the suites of a kind, in the order of the policy."""
        return [suite.id for suite in self.gate_input.policy.suites if suite.kind == kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """A verdict and what it rests on, for reports, records and the next baseline."""

    result: GateResult
    executions: Executed
    tables: Mapping[str, Table]
    readings: ReadingsOf
    added: Sequence[Case]
    """The cases of the waves after the first, also where a recording lacks them."""

    @property
    def gate_input(self) -> GateInput:
        """What the run started from."""
        return self.result.gate_input


def run_gate(
    gate_input: GateInput,
    sut: SystemUnderTest,
    progress: Progress,
    *,
    verdict_with: Collection[str] | None = None,
) -> GateRun:
    """Run a plan against the system under test, compare with the baseline, and decide.

    With `verdict_with`, only the verdict is found, and these metrics beside those of the rules.
    """
    policy, plan = gate_input.policy, gate_input.plan
    answers = ask(plan, gate_input.suites, sut, progress)
    assessed = assess(answers, sut)
    documents = list(documents_of_pairs(assessed, answers))
    crossed = crossed_cases(answers, assessed, documents, policy.seed)
    answers.ask(crossed, sut, Staged(progress, "attribution", crossing_price(crossed)))
    has_bands = AcceptedRun.BASELINE not in gate_input.other_space
    tables = tabulate(
        gate_input.suites, assessed, gate_input.accepted_runs.baseline if has_bands else None
    )
    tables, attribution = attribute(tables, answers, assessed, documents)
    result = result_of(
        gate_input,
        tables,
        assessed,
        verdict_with=verdict_with,
        problems=served_problems(answers.executions, policy),
    )
    if verdict_with is None:
        if first := [*served_warnings(answers.executions, policy)]:
            with_warnings = replace(gate_input, notices=[*first, *gate_input.notices])
            result = replace(result, gate_input=with_warnings)
        result = replace(
            result,
            attribution=attribution,
            selection=[
                rate
                for name, suite in gate_input.suites.items()
                if suite.selected_from is not None
                for rate in selection_of(tables[name], suite.selected_from)
            ],
            answer_notices=[
                *notices_of(policy, answers.executions, assessed, tables),
                *served_notices(answers.executions),
                *waiver_notices(result.rules, policy),
            ],
        )
    return GateRun(
        result=result,
        executions=answers.executions,
        tables=tables,
        readings=answers.readings,
        added=answers.added,
    )


def result_of(
    gate_input: GateInput,
    tables: Mapping[str, Table],
    assessed: Sequence[Assessed],
    *,
    verdict_with: Collection[str] | None = None,
    problems: Sequence[str] = (),
) -> GateResult:
    """Return the verdict that follows from tables and assessed units alone.

    `problems` tell why the answers themselves are no ground for one.
    """
    policy, rules = gate_input.policy, gate_input.rules
    metrics = [*METRICS]
    if verdict_with is not None:
        wanted = {*verdict_with, *(rule.metric.id for rule in rules)}
        metrics = [metric for metric in METRICS if metric.id in wanted]
    measurements = measure(tables, metrics)
    comparison = gate_input.comparison
    results = [
        *judge_parity(policy, gate_input.suites, gate_input.parity_rules, tables, comparison),
        *rule_results(rules, tables, measurements, comparison, policy),
    ]
    results = [with_waiver(result, policy, gate_input.day) for result in results]
    evidence = weigh_evidence(gate_input.plan, assessed, results, policy)
    evidence = replace(evidence, problems=[*problems, *evidence.problems])
    outcome, exit_code = decide(results, evidence, gate_input.overlaps.values())
    return GateResult(
        gate_input=gate_input,
        outcome=outcome,
        exit_code=exit_code,
        rules=results,
        measurements=measurements,
        assessed=assessed,
        evidence=evidence,
        degradation=degradation(tables),
        overlap=gate_input.overlaps.get(AcceptedRun.BASELINE),
        anchor_overlap=gate_input.overlaps.get(AcceptedRun.ANCHOR),
    )
