"""Puts mutants of a recorded run through the whole gate, and finds how strong they must be.

For each mutant the smallest strength of a grid that the gate catches with the wanted probability
over seeds, by bisection: a stronger mutant of a seed changes all that a weaker one does, so what
is caught once is taken to be caught at every larger strength. Every seed is run at the stated
strength and at the smallest that is caught; elsewhere a strength is left as soon as it is settled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import ALL_DOCUMENTS, Case
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import Measurements, Outcome, RuleResult
from fairgate.domain.ports import NOTHING, SILENT, Executed, Progress, Vectors
from fairgate.features.mutation.mutants import (
    SEPARATING_METRICS,
    CaseId,
    Mutant,
    MutationKind,
    MutationReach,
    NotMutated,
    RecordedRun,
    Separating,
    separating,
)
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.columns import VectorsOf
from fairgate.policy.schema import GatePolicy

GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
STATED = 0.3
WANTED = 0.9
_SUGGESTED = 4
"""Kinds of gate lines that are tried, in a policy with one suite."""
NO_VERDICT = "no verdict"
"""Stands for a rule where the gate found too little evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantSearch:
    """What is looked for, and with how many runs."""

    kinds: Sequence[MutationKind] = tuple(MutationKind)
    grid: Sequence[float] = GRID
    """Ascending, in (0, 1]."""
    stated: float = STATED
    """Of the grid; the kill score is the share of mutants that are caught at it."""
    wanted: float = WANTED
    seeds: int = 10

    @property
    def needed(self) -> int:
        """Return how many of the seeds must be caught."""
        return math.ceil(self.wanted * self.seeds - 1e-9)

    def most_runs(self, mutants: int) -> int:
        """Return how many gate runs these mutants take at most."""
        levels = 1 + math.ceil(math.log2(len(self.grid) + 1))
        return mutants * self.seeds * levels + _SUGGESTED * (self.seeds + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchingRule:
    """A rule that stops the build, or `no verdict`."""

    metric: str
    where: Mapping[str, str]
    checks: Sequence[str]
    """`bound`, `regression`, `budget`, `identity`, `unreadable`, `inconclusive`."""
    position: int
    """Index in the policy's gates; -1 where it stands in none."""
    runs: int = 0
    """In how many runs it failed."""

    @property
    def tells_apart(self) -> bool:
        """Return whether the failure singles somebody out, and is not one of everybody."""
        metric = BY_ID.get(self.metric)
        about_all = set(self.checks) <= {"unreadable", "inconclusive"}
        return metric is not None and metric.tells_apart and not about_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A mutant at one strength, over some seeds."""

    strength: float
    runs: int
    caught: int
    """Runs in which the gate did not pass."""
    failed: int
    """Runs in which a rule failed; the others had no verdict."""
    by_identity: int
    """Runs in which a rule failed that tells identities apart."""
    rules: Sequence[CatchingRule]
    """Those that stopped a run, the most frequent first, then in the policy's order."""
    interval: tuple[float, float]
    """Clopper-Pearson, of the share that is caught."""
    values: Sequence[float] = ()
    """By seed, of the metric that tells such mutants from the run, in the mutant's slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantResult:
    """What the policy sees of one mutant."""

    mutant: Mutant
    cases: int
    """Cases that its strongest variant changes."""
    tried: Sequence[Tried]
    """By strength."""
    stated: Tried
    smallest: Tried | None
    """Smallest strength that is caught often enough; None: not even the largest is."""
    missed: float
    """Largest strength below it that was tried and is not; 0 where none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A gate line with which the policy would catch what it misses at the stated strength.

    With it the recorded run still passes, and no control mutant of the stated strength fails.
    """

    kind: MutationKind
    reach: MutationReach
    line: str
    """YAML, an entry of `gates`."""
    targets: Sequence[str]
    """What the policy misses without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillScore:
    """How much bias the policy would have caught in this run."""

    policy: str
    search: MutantSearch
    sources: int
    found: Sequence[MutantResult]
    """Of biased and worse systems; the score counts them."""
    controls: Sequence[MutantResult]
    """Of changes that are about no identity: a rule that tells identities apart and fails on them
    is a false kill; any other one is right, for everybody fares worse."""
    not_mutated: Sequence[NotMutated]
    suggestions: Sequence[Suggestion]
    left_out: Sequence[str]
    """Metrics of rules that were not put to the mutants."""

    @property
    def mutants(self) -> int:
        """Return how many mutants the score counts."""
        return sum(item.stated.runs for item in self.found)

    @property
    def caught(self) -> int:
        """Return how many of them are caught."""
        return sum(item.stated.caught for item in self.found)

    @property
    def score(self) -> float:
        """Return the share of mutants of the stated strength that are caught."""
        return self.caught / self.mutants

    @property
    def false_kills(self) -> int:
        """Return how many control mutants of the stated strength a false kill is among."""
        return sum(item.stated.by_identity for item in self.controls)


def propose(
    by: Separating,
    slices: Mapping[str, object],
    own: Sequence[float],
    targets: Sequence[Sequence[float]],
    needed: int,
) -> tuple[GatePolicy, str] | None:
    """Return a gate that the run keeps and its variants break, and the line of YAML that is it.

    Its bound is the most tolerant one, in hundredths. `own` are the metric's values in the run's
    slices; `targets` holds for each missed mutant the values over seeds, of which `needed` must
    break the bound. `slices` is what the gate says beside metric, dimension and bound: `suite` (one
    suite need not be named), `where`. None where no bound separates them.
    """
    if not own or not targets or any(len(values) < needed for values in targets):
        return None
    worst = max(map(by.size, own))
    reached = min(sorted(map(by.size, values), reverse=True)[needed - 1] for values in targets)
    size = (math.ceil(100 * reached - 1e-9) - 1) / 100
    if size < worst:
        return None
    bound = round(-size if by.bound == "min" else size, 2) + 0.0
    gate = GatePolicy.model_validate(
        {"metric": by.metric, **slices, "for_each": by.dimension, by.bound: bound}
    )
    inside = "".join(f" {name}: {_flow(value)}," for name, value in slices.items())
    line = f"- {{metric: {by.metric},{inside} for_each: {by.dimension}, {by.bound}: {bound:g}}}"
    return gate, line


def _flow(value: object) -> str:
    """Return a value as YAML within a line."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name}: {json.dumps(entry)}" for name, entry in value.items())
        return f"{{{inside}}}"
    return json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    code: ExitCode
    rules: Sequence[CatchingRule]
    """Those that stopped the run."""
    value: float | None
    """Of the metric that could tell the mutant from the run, in the mutant's slice."""

    @property
    def is_caught(self) -> bool:
        return self.code is not ExitCode.PASS


@dataclass(frozen=True, slots=True)
class MutatedSystem:
    """A recorded system some of whose executions are replaced. Implements `SystemUnderTest`."""

    executions: Executed
    replaced: Mapping[CaseId, Execution]
    embed: VectorsOf
    """Embeds documents."""
    rows: dict[str | None, Vectors]
    """Text of a document to its vector: each is embedded once for all mutants."""

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return the executions of the cases; missing ones are left out."""
        del progress, earlier
        keys = [(case.suite, case.key) for case in cases]
        pairs = ((key, self.replaced.get(key) or self.executions.get(key)) for key in keys)
        return {key: execution for key, execution in pairs if execution is not None}

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return float32 `[n, d]`; None where a text is not known or nothing embeds it."""
        fresh = {
            document.text: document for document in documents if document.text not in self.rows
        }
        if None in fresh or not documents:
            return self.embed(documents)
        if fresh:
            embedded = self.embed(list(fresh.values()))
            if embedded is None:
                return None
            self.rows.update(zip(fresh, embedded, strict=True))
        return np.stack([self.rows[document.text] for document in documents])


class MutationTest:
    """Puts mutants of one run through the gate."""

    def __init__(self, gate_input: GateInput, executions: Executed, embed: VectorsOf) -> None:
        """Take what the gate starts from, what the run recorded, and what embeds its documents."""
        self._gate_input, self.left_out = gate_input.without_attribution()
        self._executions = executions
        self._embed = embed
        self._rows: dict[str | None, Vectors] = {}
        self._run = RecordedRun(
            gate_input.plan, gate_input.suites, executions, gate_input.policy.seed
        )

    def check(self) -> None:
        """Put the run as recorded through the gate.

        Raises UsageError where it does not pass: every mutant would be caught then.
        """
        own = self.gated({}).result
        if own.exit_code is not ExitCode.PASS:
            why = [
                f"{rule.metric} in suite {rule.suite}: {'; '.join(rule.reasons)}"
                for rule in own.rules
                if rule.fails_gate
            ]
            why = [*why, *own.evidence.problems][:3] or ["it does not fit the baseline"]
            raise UsageError(
                f"the run as recorded does not pass this policy ({own.outcome.value}: "
                f"{' | '.join(why)}), so every mutant would be caught; mutate a run that passes, "
                "or adjust the policy to it first"
            )

    def mutants(self, search: MutantSearch) -> list[Mutant | NotMutated]:
        """Return the mutants of the run. Raises UsageError where there are none."""
        mutants = self._run.mutants(search.kinds)
        if not any(isinstance(item, Mutant) and not item.is_control for item in mutants):
            why = "; ".join(
                f"suite {item.suite}, {item.what}: {item.reason}"
                for item in mutants
                if isinstance(item, NotMutated)
            )
            raise UsageError(f"nothing of this run can be mutated: {why or 'it has no suites'}")
        return mutants

    def score(
        self, mutants: Sequence[Mutant | NotMutated], search: MutantSearch, progress: Progress
    ) -> KillScore:
        """Count the killed mutants; deterministic. Raises UsageError like `check`."""
        self.check()
        wanted = [item for item in mutants if isinstance(item, Mutant)]
        progress.start("mutate", len(wanted), 0)
        searched = []
        for mutant in wanted:
            searched.append(self._searched(mutant, search))
            progress.advance(1)
        progress.finish()
        biased = [item for item in searched if not item.mutant.is_control]
        controls = [mutant for mutant in wanted if mutant.is_control]
        return KillScore(
            policy=self._gate_input.policy.name,
            search=search,
            sources=len({unit.cluster for unit in self._gate_input.plan.units}),
            found=biased,
            controls=[item for item in searched if item.mutant.is_control],
            suggestions=list(self._suggestions(biased, controls, search)),
            not_mutated=[item for item in mutants if isinstance(item, NotMutated)],
            left_out=self.left_out,
        )

    def _searched(self, mutant: Mutant, search: MutantSearch) -> MutantResult:
        verdicts: dict[float, list[_Verdict]] = {}
        grid = list(search.grid)
        low, high = 0, len(grid)
        index = grid.index(search.stated)
        complete = True
        while low < high:
            if self._is_caught(mutant, grid[index], search, verdicts, complete=complete):
                high = index
            else:
                low = index + 1
            index, complete = (low + high) // 2, False
        if low < len(grid):
            self._is_caught(mutant, grid[low], search, verdicts, complete=True)
        tried = {e: _tried(e, verdicts[e]) for e in sorted(verdicts)}
        return MutantResult(
            mutant=mutant,
            cases=len(self._run.mutated(mutant, strength=1.0, seed=0)),
            tried=list(tried.values()),
            stated=tried[search.stated],
            smallest=tried[grid[low]] if low < len(grid) else None,
            missed=grid[low - 1] if low else 0.0,
        )

    def _is_caught(
        self,
        mutant: Mutant,
        strength: float,
        search: MutantSearch,
        verdicts: dict[float, list[_Verdict]],
        *,
        complete: bool,
    ) -> bool:
        """Return whether enough seeds are caught; without `complete` only until that is settled."""
        results = verdicts.setdefault(strength, [])
        for seed in range(len(results), search.seeds):
            caught = sum(verdict.is_caught for verdict in results)
            missed = len(results) - caught
            if not complete and (caught >= search.needed or missed > search.seeds - search.needed):
                break
            results.append(self._verdict(mutant, strength, seed))
        return sum(verdict.is_caught for verdict in results) >= search.needed

    def _verdict(self, mutant: Mutant, strength: float, seed: int) -> _Verdict:
        run = self.gated(self._run.mutated(mutant, strength, seed))
        code = run.result.exit_code
        no_verdict = CatchingRule(metric=NO_VERDICT, where={}, checks=(), position=-1)
        stopping = [] if code is ExitCode.PASS else _stopping(run.result.rules) or [no_verdict]
        value, by = None, separating(mutant)
        if by is not None:
            where = {by.dimension: mutant.where[by.dimension], **self._fixed(mutant.suite, by)}
            value = Measurements(run.result.measurements).value(by.metric, mutant.suite, where)
        return _Verdict(code=code, rules=stopping, value=value)

    def gated(self, replaced: Executed, gate_input: GateInput | None = None) -> GateRun:
        """Run the gate with other executions in the place of some; None: by the run's own input."""
        gate_input = gate_input or self._gate_input
        system = MutatedSystem(self._executions, replaced, self._embed, self._rows)
        return run_gate(gate_input, system, SILENT, verdict_with=SEPARATING_METRICS)

    def _suggestions(
        self, searched: Sequence[MutantResult], controls: Sequence[Mutant], search: MutantSearch
    ) -> Iterator[Suggestion]:
        """Yield the lines that separate missed mutants from the run, tried on the run itself."""
        groups: dict[tuple[str, Separating], list[MutantResult]] = {}
        for item in searched:
            by = separating(item.mutant)
            if item.stated.caught < search.needed and by is not None:
                groups.setdefault((item.mutant.suite, by), []).append(item)
        own = Measurements(self.gated({}).result.measurements)
        for (suite, by), missed in groups.items():
            fixed = self._fixed(suite, by)
            of_suite = {"suite": suite} if len(self._gate_input.suites) > 1 else {}
            slices = {**of_suite, **({"where": fixed} if fixed else {})}
            values = [
                m.value
                for m in own.by(by.metric, suite, by.dimension, *fixed)
                if m.value is not None and fixed.items() <= m.where.items()
            ]
            proposal = propose(by, slices, values, [i.stated.values for i in missed], search.needed)
            kind, reach = missed[0].mutant.kind, missed[0].mutant.reach
            alike = [mutant for mutant in controls if (mutant.kind, mutant.suite) == (kind, suite)]
            if proposal is not None and self._is_kept(proposal[0], alike, search):
                targets = [item.mutant.target for item in missed]
                yield Suggestion(kind=kind, reach=reach, line=proposal[1], targets=targets)

    def _fixed(self, suite: str, by: Separating) -> dict[str, str]:
        """Return the setting whose slice a metric is taken in: the one with all documents."""
        if not by.in_setting:
            return {}
        settings = [unit.dimensions["setting"] for unit in self._gate_input.plan.units_of(suite)]
        return {"setting": ALL_DOCUMENTS if ALL_DOCUMENTS in settings else settings[0]}

    def _is_kept(self, gate: GatePolicy, controls: Sequence[Mutant], search: MutantSearch) -> bool:
        """Return whether run and control mutants fail no rule with the line added."""
        policy = self._gate_input.policy
        more = policy.model_copy(update={"gates": [*policy.gates, gate]})
        gate_input = replace(self._gate_input, policy=more)
        if self.gated({}, gate_input).result.exit_code is not ExitCode.PASS:
            return False
        return not any(
            rule.outcome is Outcome.FAIL
            for mutant in controls
            for n in range(search.seeds)
            for rule in self.gated(
                self._run.mutated(mutant, search.stated, n), gate_input
            ).result.rules
            if rule.position == len(policy.gates)
        )


def _stopping(rules: Sequence[RuleResult]) -> list[CatchingRule]:
    return [
        CatchingRule(
            metric=rule.metric,
            where=dict(rule.where),
            checks=tuple(rule.failed) or ("inconclusive",),
            position=-1 if rule.by_default else rule.position,
        )
        for rule in rules
        if not rule.advisory and not rule.is_reported
        if rule.fails_gate or (rule.outcome is Outcome.INCONCLUSIVE and not rule.warns)
    ]


def _tried(strength: float, verdicts: Sequence[_Verdict]) -> Tried:
    from scipy.stats import binomtest

    caught = sum(verdict.is_caught for verdict in verdicts)
    failed = [verdict.rules for verdict in verdicts if verdict.code is ExitCode.GATE_FAILED]
    groups: dict[tuple[object, ...], list[CatchingRule]] = {}
    for rule in (rule for verdict in verdicts for rule in verdict.rules):
        name = (rule.metric, rule.position, tuple(rule.where.items()), tuple(rule.checks))
        groups.setdefault(name, []).append(rule)
    rules = [replace(alike[0], runs=len(alike)) for alike in groups.values()]
    exact = binomtest(caught, len(verdicts)).proportion_ci(0.95, method="exact")
    return Tried(
        strength=strength,
        runs=len(verdicts),
        caught=caught,
        failed=len(failed),
        by_identity=sum(any(rule.tells_apart for rule in rules) for rules in failed),
        rules=sorted(rules, key=lambda rule: (-rule.runs, rule.position)),
        values=[verdict.value for verdict in verdicts if verdict.value is not None],
        interval=(float(exact.low), float(exact.high)),
    )
