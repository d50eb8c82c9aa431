"""How much planted bias a policy's gate catches in a finished run.

    PYTHONPATH=tools python -m calibration.kill_score POLICY RUN --at 0.2 --seeds 3

Biased variants of the run (`calibration.mutants`) are put through the whole gate; no model is
asked, and nothing in RUN changes. Prints JSON: of every kind of bias and every term the smallest
strength of a grid that stops the build with the wanted probability over seeds, by which rule, and
what no rule sees; rates are fractions. `make kill-tables` writes validation/kill-tables.md from it.

That strength is found by bisection: a stronger mutant of a seed changes all that a weaker one does,
so what is caught once is taken to be caught at every larger strength. Every seed is run at the
stated strength and at the smallest that is caught; elsewhere a strength is left as soon as it is
settled.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from calibration.mutants import (
    CaseId,
    Mutant,
    MutationKind,
    NotMutated,
    RecordedRun,
    noun_of,
)

from fairgate.domain.cases import Case
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import Better, Outcome, RuleResult
from fairgate.domain.parity import PARITY
from fairgate.domain.ports import NOTHING, SILENT, Executed, Progress, Runtime, Vectors
from fairgate.gate.accepted_runs import locate_accepted_runs
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.run_folder import replay
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.columns import VectorsOf

GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
STATED = 0.3
WANTED = 0.9
NO_VERDICT = "no verdict"
"""Stands for a rule where the gate found too little evidence."""
_TARGETS = 6
"""Targets that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantSearch:
    """The strength that is searched for, and with how many runs."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchingRule:
    """A rule that stops the build, or `no verdict`."""

    metric: str
    where: Mapping[str, str]
    checks: Sequence[str]
    """`parity`, `bound`, `regression`, `budget`, `unreadable`, `inconclusive`."""
    position: int
    """Index in the policy's gates; -1 for `no verdict`."""
    runs: int = 0
    """In how many runs it failed."""

    @property
    def compares_people(self) -> bool:
        """Return whether the rule is about who is named: parity, or a metric that is best at 0."""
        metric = METRICS.get(self.metric)
        return self.metric.startswith(PARITY) or (
            metric is not None and metric.better is Better.TOWARD_ZERO
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A mutant at one strength, over some seeds."""

    strength: float
    runs: int
    caught: int
    """Runs in which the gate did not pass."""
    failed: int
    """Runs in which a rule failed; the others had no verdict."""
    about_people: int
    """Runs in which a rule failed that compares people: on control mutants, false kills."""
    rules: Sequence[CatchingRule]
    """Those that stopped a run, the most frequent first, then in the policy's order."""


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
class KillScore:
    """How much bias the policy would have caught in this run."""

    policy: str
    search: MutantSearch
    sources: int
    found: Sequence[MutantResult]
    """Of biased systems; the score counts them."""
    controls: Sequence[MutantResult]
    """Of changes that are about no identity: a rule that compares people and fails on them is a
    false kill; any other rule is right to fail, for everybody fares worse."""
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
        """Return how many control mutants of the stated strength a false kill is among."""
        return sum(item.stated.about_people for item in self.controls)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    code: ExitCode
    rules: Sequence[CatchingRule]
    """Those that stopped the run."""

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

    def score(self, mutants: Sequence[Mutant | NotMutated], search: MutantSearch) -> KillScore:
        """Count the killed mutants; deterministic. Raises UsageError like `check`."""
        self.check()
        searched = [self._searched(item, search) for item in mutants if isinstance(item, Mutant)]
        return KillScore(
            policy=self._gate_input.policy.name,
            search=search,
            sources=len({unit.cluster for unit in self._gate_input.plan.units}),
            found=[item for item in searched if not item.mutant.is_control],
            controls=[item for item in searched if item.mutant.is_control],
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
        return _Verdict(code=code, rules=stopping)

    def gated(self, replaced: Executed) -> GateRun:
        """Run the gate with some executions replaced."""
        system = MutatedSystem(self._executions, replaced, self._embed, self._rows)
        return run_gate(self._gate_input, system, SILENT, verdict_with=())


def _stopping(rules: Sequence[RuleResult]) -> list[CatchingRule]:
    return [
        CatchingRule(
            metric=rule.metric,
            where=dict(rule.where),
            checks=tuple(rule.failed) or ("inconclusive",),
            position=rule.position,
        )
        for rule in rules
        if rule.is_binding and (rule.fails_gate or rule.outcome is Outcome.INCONCLUSIVE)
    ]


def _tried(strength: float, verdicts: Sequence[_Verdict]) -> Tried:
    caught = sum(verdict.is_caught for verdict in verdicts)
    failed = [verdict.rules for verdict in verdicts if verdict.code is ExitCode.GATE_FAILED]
    groups: dict[tuple[object, ...], list[CatchingRule]] = {}
    for rule in (rule for verdict in verdicts for rule in verdict.rules):
        name = (rule.metric, rule.position, tuple(rule.where.items()), tuple(rule.checks))
        groups.setdefault(name, []).append(rule)
    rules = [replace(alike[0], runs=len(alike)) for alike in groups.values()]
    return Tried(
        strength=strength,
        runs=len(verdicts),
        caught=caught,
        failed=len(failed),
        about_people=sum(any(rule.compares_people for rule in rules) for rules in failed),
        rules=sorted(rules, key=lambda rule: (-rule.runs, rule.position)),
    )


def kill_score_record(score: KillScore) -> dict[str, Any]:
    """Return everything as plain data; rates are fractions."""
    search = score.search
    return {
        "policy": score.policy,
        "sources": score.sources,
        "strengths": list(search.grid),
        "stated": search.stated,
        "wanted": search.wanted,
        "seeds": search.seeds,
        "score": {"share": score.score, "caught": score.caught, "mutants": score.mutants},
        "false_kills": {
            "failed": score.false_kills,
            "worse_for_everybody": sum(
                i.stated.failed - i.stated.about_people for i in score.controls
            ),
            "mutants": sum(item.stated.runs for item in score.controls),
        },
        "found": [asdict(item) for item in score.found],
        "controls": [asdict(item) for item in score.controls],
        "not_mutated": [asdict(item) for item in score.not_mutated],
        "left_out": list(score.left_out),
        "not_seen": list(not_seen(score)),
    }


def not_seen(score: KillScore) -> Iterator[str]:
    """Yield a sentence for what no rule catches, targets of one limit together."""
    groups: dict[tuple[str, float | None], list[str]] = {}
    for item in score.found:
        if item.smallest is not None and not item.missed:
            continue
        limit = None if item.smallest is None else item.smallest.strength
        groups.setdefault((noun_of(item.mutant), limit), []).append(item.mutant.target)
    for (noun, limit), targets in groups.items():
        most = f"at any strength up to {_percent(score.search.grid[-1])}"
        how_much = most if limit is None else f"below {_percent(limit)}"
        more = f" and {len(targets) - _TARGETS} more" if len(targets) > _TARGETS else ""
        whom = f" for {', '.join(targets[:_TARGETS])}{more}" if any(targets) else ""
        yield f"This policy does not see {noun}{whom} {how_much}."


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def kill_score(
    policy: Path,
    run: Path,
    search: MutantSearch,
    *,
    baseline: str | None = None,
    runtime: Runtime | None = None,
) -> dict[str, Any]:
    """Return the kill score of a policy for a run. Raises FairGateError for bad input."""
    done = replay(run, policy, runtime or Runtime(), partial(locate_accepted_runs, named=baseline))
    test = MutationTest(done.run.gate_input, done.run.executions, done.vectors)
    return kill_score_record(test.score(test.mutants(search), search))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the kill score of a policy for a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("policy", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--baseline", help="file, or `none` (default: baselines/<policy name>.json)"
    )
    parser.add_argument("--at", type=float, default=STATED, help="strength of the kill score")
    parser.add_argument("--seeds", type=int, default=10, help="variants of each kind and strength")
    parser.add_argument(
        "--kinds", nargs="+", type=MutationKind, choices=list(MutationKind),
        default=list(MutationKind), metavar="KIND", help="some of %(choices)s",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    search = MutantSearch(
        kinds=options.kinds, grid=tuple(sorted({*GRID, options.at})), stated=options.at,
        seeds=options.seeds,
    )  # fmt: skip
    score = kill_score(options.policy, options.run, search, baseline=options.baseline)
    json.dump(score, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
