"""How much bias a policy catches: mutants of a recorded run, put through the whole gate.

For each mutant the smallest strength of a grid that the gate catches with the wanted probability
over seeds, by bisection: a stronger mutant of a seed changes all that a weaker one does, so what
is caught once is taken to be caught at every larger strength. Every seed is run at the stated
strength and at the smallest that is caught; elsewhere a strength is left as soon as it is settled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.engine.gate import GateInput, GateRun, run_gate
from fairgate.engine.mutants import (
    Kind,
    Mutant,
    MutatedSystem,
    NotMutated,
    RecordedRun,
    RememberedVectors,
)
from fairgate.engine.ports import SILENT, Executed, Progress, SystemUnderTest
from fairgate.metrics.attribution import COLUMNS
from fairgate.metrics.catalogue import BY_ID
from fairgate.stats.clopper_pearson import clopper_pearson
from fairgate.stats.interval import Interval

GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
STATED = 0.3
WANTED = 0.9
NO_VERDICT = "no verdict"
"""Stands for a rule where the gate found too little evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for, and with how many runs."""

    kinds: Sequence[Kind] = tuple(Kind)
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
        return mutants * self.seeds * (1 + math.ceil(math.log2(len(self.grid) + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchingRule:
    """A rule that stops the build, or `no verdict`."""

    metric: str
    where: Mapping[str, str]
    checks: Sequence[str]
    """`bound`, `regression`, `identity`, `unreadable`, `inconclusive`."""
    position: int
    """Index in the policy's gates; -1 where it stands in none."""
    runs: int = 0
    """In how many runs it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A mutant at one strength, over some seeds."""

    strength: float
    runs: int
    caught: int
    """Runs in which the gate did not pass."""
    failed: int
    """Runs in which a rule failed; the others had no verdict."""
    rules: Sequence[CatchingRule]
    """Those that stopped a run, the most frequent first."""
    interval: tuple[float, float]
    """Clopper-Pearson, of the share that is caught."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
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
class KillScore:
    """How much bias the policy would have caught in this run."""

    policy: str
    search: Search
    sources: int
    found: Sequence[Found]
    """Of biased and worse systems; the score counts them."""
    controls: Sequence[Found]
    """Of changes that are about no identity: a rule that fails on them is a false kill."""
    not_mutated: Sequence[NotMutated]
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
        """Return how many control mutants of the stated strength a rule failed."""
        return sum(item.stated.failed for item in self.controls)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    passed: bool
    failed: bool
    rules: Sequence[CatchingRule]


class MutationTest:
    """Puts mutants of one run through the gate."""

    def __init__(self, given: GateInput, executions: Executed, system: SystemUnderTest) -> None:
        """Take what the gate starts from, what the run recorded, and what embeds its documents."""
        self._given, self.left_out = _without_attribution(given)
        self._executions = executions
        self._remembered = RememberedVectors(system)
        self._run = RecordedRun(given.plan, given.suites, executions, given.policy.seed)

    def check(self) -> None:
        """Put the run as recorded through the gate.

        Raises UsageError where it does not pass: every mutant would be caught then.
        """
        own = self._gated({})
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
        return KillScore(
            policy=self._given.policy.name,
            search=search,
            sources=len({unit.cluster for unit in self._given.plan.units}),
            found=[item for item in found if not item.mutant.is_control],
            controls=[item for item in found if item.mutant.is_control],
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
            rules=[] if code is ExitCode.PASS else stopping,
        )

    def gated(self, mutant: Mutant, strength: float, seed: int) -> GateRun:
        """Return what the gate says of one variant of the run."""
        return self._gated(self._run.mutated(mutant, strength, seed))

    def _gated(self, replaced: Executed) -> GateRun:
        system = MutatedSystem(self._executions, replaced, self._remembered)
        return run_gate(self._given, system, SILENT)


def _without_attribution(given: GateInput) -> tuple[GateInput, list[str]]:
    """Return the input without crossed answers, which a changed pair has none of, and its rules."""
    columns = set(COLUMNS.values())
    gates = given.policy.gates
    out = [g.metric for g in gates if g.metric in BY_ID and BY_ID[g.metric].column in columns]
    kept = [gate for gate in gates if gate.metric not in out]
    policy = given.policy.model_copy(update={"gates": kept})
    quiet = {name: suite.without_crossing() for name, suite in given.suites.items()}
    return replace(given, policy=policy, suites=quiet), list(dict.fromkeys(out))


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


def _tried(strength: float, verdicts: Sequence[_Verdict]) -> Tried:
    caught = sum(not verdict.passed for verdict in verdicts)
    found = clopper_pearson(caught, len(verdicts), confidence=0.95)
    return Tried(
        strength=strength,
        runs=len(verdicts),
        caught=caught,
        failed=sum(verdict.failed for verdict in verdicts),
        rules=_counted(verdicts),
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
