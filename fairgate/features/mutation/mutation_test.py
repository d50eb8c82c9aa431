"""Puts mutants of a recorded run through the whole gate, and finds how strong they must be.

For each mutant the smallest strength of a grid that the gate catches with the wanted probability
over seeds, by bisection: a stronger mutant of a seed changes all that a weaker one does, so what
is caught once is taken to be caught at every larger strength. Every seed is run at the stated
strength and at the smallest that is caught; elsewhere a strength is left as soon as it is settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairgate.domain.cases import TestPlan, first_asked
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.items import ALL_DOCUMENTS
from fairgate.domain.measurements import Measurements
from fairgate.domain.outcomes import KeptKillScore, Outcome, RuleResult
from fairgate.domain.ports import NOTHING, SILENT, Executed, Progress, SystemUnderTest, Vectors
from fairgate.domain.runtime import Runtime
from fairgate.domain.units import Judged, Unit
from fairgate.features.mutation.command import not_seen
from fairgate.features.mutation.mutants import (
    NO_VERDICT,
    SEPARATING_METRICS,
    CaseId,
    CatchingRule,
    Found,
    KillScore,
    Mutant,
    NotMutated,
    Proposal,
    Search,
    Separating,
    Suggestion,
    Tried,
    propose,
    separating,
)
from fairgate.features.mutation.recorded_run import RecordedRun
from fairgate.gate.accepted_runs import (
    MOST_SENTENCES,
    kill_score_badge,
    kill_score_path,
    locate_references,
    policy_hash,
    write_kill_score,
)
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput, GateRun, run_gate, without_attribution
from fairgate.gate.judge import judge_units
from fairgate.gate.loaded_policy import load_policy
from fairgate.gate.run_folder import earlier_run, replay
from fairgate.io.durable import write_text
from fairgate.metrics.catalogue import BY_ID
from fairgate.stats.interval import NOTHING_DECIDED, Interval, IntervalOrReason, NoInterval
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Executions, Suite, VectorsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    passed: bool
    failed: bool
    by_identity: bool
    rules: Sequence[CatchingRule]
    value: float | None
    """Of the metric that could tell the mutant from the run, in the mutant's slice."""


class RememberedVectors:
    """Embeddings of documents, each text embedded once for all mutants."""

    def __init__(self, system: SystemUnderTest) -> None:
        """Take the system that embeds."""
        self._system = system
        self._rows: dict[str, int] = {}
        self._matrix: Vectors | None = None

    def of(self, documents: Sequence[Document]) -> Vectors | None:
        """Return float32 `[n, d]`; None where a text is not known or nothing embeds it."""
        texts = [document.text for document in documents if document.text is not None]
        if len(texts) < len(documents):
            return self._system.vectors(documents)
        fresh = {d.text: d for d in documents if d.text is not None and d.text not in self._rows}
        if fresh:
            found = self._system.vectors(list(fresh.values()))
            if found is None:
                return None
            start = len(self._rows)
            self._rows |= {text: start + number for number, text in enumerate(fresh)}
            self._matrix = found if self._matrix is None else np.vstack([self._matrix, found])
        if self._matrix is None:
            return self._system.vectors(documents)
        rows: Vectors = self._matrix[[self._rows[text] for text in texts]]
        return rows


@dataclass(frozen=True, slots=True)
class MutatedSystem:
    """A recorded system some of whose executions are replaced. Implements `SystemUnderTest`."""

    executions: Executed
    replaced: Mapping[CaseId, Execution]
    remembered: RememberedVectors

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[CaseId, Execution]:
        """Return the executions of the plan's cases; missing ones are left out."""
        del progress, earlier
        found: dict[CaseId, Execution] = {}
        for case in plan.cases:
            key = case.suite, case.key
            execution = self.replaced.get(key) or self.executions.get(key)
            if execution is not None:
                found[key] = execution
        return found

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings of the documents."""
        return self.remembered.of(documents)


class RememberedJudging:
    """Remembers how the units of a recorded run are judged. Implements `gate.judge.JudgeUnits`.

    For suites whose units are judged cluster by cluster: the answers to one source (one template)
    have no part in what is decided of another. Both kinds that can be mutated are.
    """

    def __init__(self, recorded: Executed) -> None:
        """Take the executions of the run, of which variants are made."""
        self._recorded = recorded
        self._known: dict[str, list[Judged]] = {}
        self._clusters: dict[str, dict[str, str]] = {}

    def __call__(
        self,
        suite: Suite,
        units: Sequence[Unit],
        readings: Readings,
        executions: Executions,
        vectors: VectorsOf,
    ) -> list[Judged]:
        """Return a judged unit for each unit, in their order."""
        changed = {
            key
            for (name, key), found in executions.items()
            if name == suite.id and found is not self._recorded.get((name, key))
        }
        known = self._known.get(suite.id)
        clusters = self._affected(suite.id, changed)
        if known is None or clusters is None:
            judged = judge_units(suite, units, readings, executions, vectors)
            if not changed:
                self._known[suite.id] = judged
                self._clusters[suite.id] = _clusters_of(units)
            return judged
        anew = [unit for unit in units if unit.cluster in clusters]
        fresh = iter(judge_units(suite, anew, readings, executions, vectors) if anew else ())
        return [next(fresh) if was.unit.cluster in clusters else was for was in known]

    def _affected(self, suite: str, changed: set[str]) -> set[str] | None:
        """Return the clusters of the changed cases; None where one is not known."""
        clusters = self._clusters.get(suite, {})
        found = {clusters.get(key, clusters.get(first_asked(key))) for key in changed}
        return None if None in found else {name for name in found if name is not None}


def _clusters_of(units: Sequence[Unit]) -> dict[str, str]:
    """Return the key of every case that is asked about a unit, with the unit's cluster."""
    return {key: unit.cluster for unit in units for key in (*unit.asks.values(), *unit.verdicts)}


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


def clopper_pearson(count: int, trials: int, *, confidence: float) -> IntervalOrReason:
    """Return the two-sided interval of `count` of `trials`, in [0, 1]; none for no trials.

    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the
    case of the binomial", Biometrika 26 (1934) 404-413. For shares of simulated runs, which are
    few: it covers at least its confidence for every number of trials.
    """
    from scipy.special import betaincinv

    if not trials:
        return NoInterval(reason=NOTHING_DECIDED)
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count == trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return Interval(low=low, high=high, method="clopper-pearson")


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


def mutation_test(
    policy: Path, run: Path, runtime: Runtime, named_baseline: str | None
) -> MutationTest:
    """Return the mutation test of a policy on a finished run.

    Raises UsageError where the run does not pass the policy as it is.
    """
    replayed, given, loaded, _ = replay(
        run, policy, runtime, lambda loaded, path: locate_references(loaded, path, named_baseline)
    )
    system = Composition(loaded, runtime, SILENT).replayed(earlier_run(run, loaded))
    return MutationTest(given, replayed.executions, system)


def keep_score(
    found: KillScore, policy: Path, runtime: Runtime, *, save: bool, badge: Path | None
) -> None:
    """Write what later reports and badges show of a policy's kill score."""
    loaded = load_policy(policy, runtime)
    score = KeptKillScore(
        policy_hash=policy_hash(loaded.policy.model_dump_json()),
        strength=found.search.stated,
        seeds=found.search.seeds,
        sources=found.sources,
        caught=found.caught,
        mutants=found.mutants,
        false_kills=found.false_kills,
        controls=sum(item.stated.runs for item in found.controls),
        not_seen=list(not_seen(found))[:MOST_SENTENCES],
    )
    if save:
        write_kill_score(kill_score_path(policy), score)
    if badge is not None:
        write_text(badge, kill_score_badge(score), option="--badge")
