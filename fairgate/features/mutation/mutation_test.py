"""Puts mutants of a recorded run through the whole gate, and finds how strong they must be.

For each mutant the smallest strength of a grid that the gate catches with the wanted probability
over seeds, by bisection: a stronger mutant of a seed changes all that a weaker one does, so what
is caught once is taken to be caught at every larger strength. Every seed is run at the stated
strength and at the smallest that is caught; elsewhere a strength is left as soon as it is settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.items import ALL_DOCUMENTS
from fairgate.domain.measurements import Measurements
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.ports import SILENT, Executed, Progress, SystemUnderTest
from fairgate.features.mutation.clopper_pearson import clopper_pearson
from fairgate.features.mutation.judged_before import RememberedJudging
from fairgate.features.mutation.kill_score import (
    NO_VERDICT,
    CatchingRule,
    Found,
    KillScore,
    Search,
    Suggestion,
    Tried,
)
from fairgate.features.mutation.mutants import Mutant, NotMutated
from fairgate.features.mutation.mutated_system import MutatedSystem, RememberedVectors
from fairgate.features.mutation.recorded_run import RecordedRun
from fairgate.features.mutation.suggested_gates import (
    SEPARATING_METRICS,
    Proposal,
    Separating,
    propose,
    separating,
)
from fairgate.gate.gate import GateInput, GateRun, run_gate, without_attribution
from fairgate.metrics.catalogue import BY_ID
from fairgate.stats.interval import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    passed: bool
    failed: bool
    by_identity: bool
    rules: Sequence[CatchingRule]
    value: float | None
    """Of the metric that could tell the mutant from the run, in the mutant's slice."""


class MutationTest:
    """Puts mutants of one run through the gate."""

    def __init__(self, given: GateInput, executions: Executed, system: SystemUnderTest) -> None:
        """Take what the gate starts from, what the run recorded, and what embeds its documents."""
        lean, self.left_out = without_attribution(given)
        self._given = replace(
            lean, judge_units=RememberedJudging(executions), verdict_of=SEPARATING_METRICS
        )
        self._executions = executions
        self._remembered = RememberedVectors(system)
        self._run = RecordedRun(given.plan, given.suites, executions, given.policy.seed)

    def check(self) -> None:
        """Put the run as recorded through the gate.

        Raises UsageError where it does not pass: every mutant would be caught then.
        """
        own = self._gated({}, self._given)
        if own.result.exit_code is not ExitCode.PASS:
            raise UsageError(_no_start(own))

    def mutants(self, search: Search) -> list[Mutant | NotMutated]:
        """Return what can be mutated. Raises UsageError where nothing can."""
        found = self._run.mutants(search.kinds)
        if not any(isinstance(item, Mutant) and not item.is_control for item in found):
            why = "; ".join(
                f"suite {item.suite}, {item.what}: {item.reason}"
                for item in found
                if isinstance(item, NotMutated)
            )
            raise UsageError(f"nothing of this run can be mutated: {why or 'it has no suites'}")
        return found

    def score(
        self, mutants: Sequence[Mutant | NotMutated], search: Search, progress: Progress
    ) -> KillScore:
        """Return what the policy catches; deterministic. Raises UsageError like `check`."""
        self.check()
        wanted = [item for item in mutants if isinstance(item, Mutant)]
        progress.start("mutate", len(wanted), 0)
        found = []
        for mutant in wanted:
            found.append(self._searched(mutant, search))
            progress.advance(1)
        progress.finish()
        biased = [item for item in found if not item.mutant.is_control]
        controls = [mutant for mutant in wanted if mutant.is_control]
        return KillScore(
            policy=self._given.policy.name,
            search=search,
            sources=len({unit.cluster for unit in self._given.plan.units}),
            found=biased,
            controls=[item for item in found if item.mutant.is_control],
            suggestions=list(self._suggestions(biased, controls, search)),
            not_mutated=[item for item in mutants if isinstance(item, NotMutated)],
            left_out=self.left_out,
        )

    def _searched(self, mutant: Mutant, search: Search) -> Found:
        verdicts: dict[float, list[_Verdict]] = {}
        grid = list(search.grid)
        low, high = 0, len(grid)
        place = grid.index(search.stated)
        complete = True
        while low < high:
            if self._is_caught(mutant, grid[place], search, verdicts, complete=complete):
                high = place
            else:
                low = place + 1
            place, complete = (low + high) // 2, False
        if low < len(grid):
            self._is_caught(mutant, grid[low], search, verdicts, complete=True)
        tried = {e: _tried(e, verdicts[e]) for e in sorted(verdicts)}
        return Found(
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
        search: Search,
        verdicts: dict[float, list[_Verdict]],
        *,
        complete: bool,
    ) -> bool:
        """Return whether enough seeds are caught; without `complete` only until that is settled."""
        found = verdicts.setdefault(strength, [])
        for seed in range(len(found), search.seeds):
            caught = sum(not verdict.passed for verdict in found)
            missed = len(found) - caught
            if not complete and (caught >= search.needed or missed > search.seeds - search.needed):
                break
            found.append(self._verdict(mutant, strength, seed))
        return sum(not verdict.passed for verdict in found) >= search.needed

    def _verdict(self, mutant: Mutant, strength: float, seed: int) -> _Verdict:
        run = self.gated(mutant, strength, seed)
        code = run.result.exit_code
        stopping = _stopping(run.result.rules)
        if code is not ExitCode.PASS and not stopping:
            stopping = [CatchingRule(metric=NO_VERDICT, where={}, checks=(), position=-1)]
        return _Verdict(
            passed=code is ExitCode.PASS,
            failed=code is ExitCode.GATE_FAILED,
            by_identity=code is ExitCode.GATE_FAILED and any(map(_tells_apart, stopping)),
            rules=[] if code is ExitCode.PASS else stopping,
            value=self._separating_value(mutant, run),
        )

    def _separating_value(self, mutant: Mutant, run: GateRun) -> float | None:
        by = separating(mutant)
        if by is None:
            return None
        where = {by.dimension: mutant.where[by.dimension], **self._fixed(mutant.suite, by)}
        return Measurements(run.result.measurements).value(by.metric, mutant.suite, where)

    def gated(self, mutant: Mutant, strength: float, seed: int) -> GateRun:
        """Return what the gate says of one variant of the run."""
        return self._gated(self._run.mutated(mutant, strength, seed), self._given)

    def _gated(self, replaced: Executed, given: GateInput) -> GateRun:
        system = MutatedSystem(self._executions, replaced, self._remembered)
        return run_gate(given, system, SILENT)

    def _suggestions(
        self, found: Sequence[Found], controls: Sequence[Mutant], search: Search
    ) -> Iterator[Suggestion]:
        """Yield the lines that separate missed mutants from the run, tried on the run itself."""
        groups: dict[tuple[str, Separating], list[Found]] = {}
        for item in found:
            by = separating(item.mutant)
            if item.stated.caught < search.needed and by is not None:
                groups.setdefault((item.mutant.suite, by), []).append(item)
        own = Measurements(self._gated({}, self._given).result.measurements)
        for (suite, by), missed in groups.items():
            fixed = self._fixed(suite, by)
            named = {"suite": suite} if len(self._given.suites) > 1 else {}
            slices = {**named, **({"where": fixed} if fixed else {})}
            values = [
                m.value
                for m in own.by(by.metric, suite, by.dimension, *fixed)
                if m.value is not None and fixed.items() <= m.where.items()
            ]
            proposal = propose(by, slices, values, [i.stated.values for i in missed], search.needed)
            kind, reach = missed[0].mutant.kind, missed[0].mutant.reach
            alike = [mutant for mutant in controls if (mutant.kind, mutant.suite) == (kind, suite)]
            if proposal is not None and self._is_kept(proposal, alike, search):
                targets = [item.mutant.target for item in missed]
                yield Suggestion(kind=kind, reach=reach, line=proposal.line, targets=targets)

    def _fixed(self, suite: str, by: Separating) -> dict[str, str]:
        """Return the setting whose slice a metric is taken in: the one with all documents."""
        if not by.in_setting:
            return {}
        settings = [unit.dimensions["setting"] for unit in self._given.plan.units_of(suite)]
        return {"setting": ALL_DOCUMENTS if ALL_DOCUMENTS in settings else settings[0]}

    def _is_kept(self, proposal: Proposal, controls: Sequence[Mutant], search: Search) -> bool:
        """Return whether run and control mutants fail no rule with the line added."""
        policy = self._given.policy
        more = policy.model_copy(update={"gates": [*policy.gates, proposal.gate]})
        given = replace(self._given, policy=more)
        if self._gated({}, given).result.exit_code is not ExitCode.PASS:
            return False
        return not any(
            rule.outcome is Outcome.FAIL
            for mutant in controls
            for seed in range(search.seeds)
            for rule in self._gated(
                self._run.mutated(mutant, search.stated, seed), given
            ).result.rules
            if rule.position == len(policy.gates)
        )


def _no_start(run: GateRun) -> str:
    why = [
        f"{rule.metric} in suite {rule.suite}: {'; '.join(rule.reasons)}"
        for rule in run.result.rules
        if rule.outcome is Outcome.FAIL and not rule.advisory
    ]
    why += list(run.result.evidence.problems)
    return (
        f"the run as recorded does not pass this policy ({run.result.outcome.value}: "
        f"{' | '.join(why[:3]) or 'it does not fit the baseline'}), so every mutant would be "
        "caught; mutate a run that passes, or adjust the policy to it first"
    )


def _stopping(rules: Sequence[RuleResult]) -> list[CatchingRule]:
    found = []
    for rule in rules:
        if rule.advisory or rule.is_reported:
            continue
        waits = rule.outcome is Outcome.INCONCLUSIVE and not rule.warns
        if rule.outcome is Outcome.FAIL or waits:
            found.append(
                CatchingRule(
                    metric=rule.metric,
                    where=dict(rule.where),
                    checks=tuple(rule.failed) or ("inconclusive",),
                    position=-1 if rule.by_default else rule.position,
                )
            )
    return found


def _tells_apart(rule: CatchingRule) -> bool:
    """Return whether a rule says of somebody what is not so of everybody."""
    metric = BY_ID.get(rule.metric)
    about_all = set(rule.checks) <= {"unreadable", "inconclusive"}
    return metric is not None and metric.tells_apart and not about_all


def _tried(strength: float, verdicts: Sequence[_Verdict]) -> Tried:
    caught = sum(not verdict.passed for verdict in verdicts)
    found = clopper_pearson(caught, len(verdicts), confidence=0.95)
    return Tried(
        strength=strength,
        runs=len(verdicts),
        caught=caught,
        failed=sum(verdict.failed for verdict in verdicts),
        by_identity=sum(verdict.by_identity for verdict in verdicts),
        rules=_counted(verdicts),
        values=[verdict.value for verdict in verdicts if verdict.value is not None],
        interval=(found.low, found.high) if isinstance(found, Interval) else (0.0, 1.0),
    )


def _counted(verdicts: Sequence[_Verdict]) -> list[CatchingRule]:
    """Return the rules that stopped runs, the most frequent first, then in the policy's order."""
    runs: Counter[tuple[object, ...]] = Counter()
    first: dict[tuple[object, ...], CatchingRule] = {}
    for rule in (rule for verdict in verdicts for rule in verdict.rules):
        name = (rule.metric, rule.position, tuple(rule.where.items()), tuple(rule.checks))
        runs[name] += 1
        first.setdefault(name, rule)
    ranked = sorted(first, key=lambda name: (-runs[name], first[name].position))
    return [replace(first[name], runs=runs[name]) for name in ranked]
