"""Which part of a change explains a red verdict, and which of the changed documents.

HEAD is run with one part of its system as at BASE, each in turn; where none of these restores the
verdict, with two. Where taking back the corpus does, a smallest set of changed documents is
searched that does so too. All judging is the gate's own, with BASE's run as the baseline.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from fairgate.domain.cases import SYSTEM_RETRIEVER
from fairgate.domain.errors import BaselineError, ModelError, RetrievalError
from fairgate.domain.outcomes import Outcome, RuleResult, Slice, slice_of
from fairgate.domain.ports import SILENT, Progress, Staged, SystemUnderTest
from fairgate.features.blame.documents import ChangedDocument, Mixture, smallest_part
from fairgate.features.blame.sides import Factor, LocalSides
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import NO_ACCEPTED_RUNS, AcceptedRuns, Baseline
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.parity import Prompts
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import observe
from fairgate.metrics.parity import OUTCOMES
from fairgate.reports.figures import metric_in
from fairgate.stats.observations import Observations, estimate

MOST_CHANGED = 1000
"""Documents; where more changed none is to blame: each is a run of the gate at worst."""
_DECIMALS = 6
Parts = tuple[Factor, ...]
"""What is as at BASE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRule:
    """A rule that fails at HEAD and not at BASE."""

    metric: str
    suite: str
    where: Mapping[str, str]
    who: Sequence[str]
    """Of parity, who fails; the values are those of the first, beside control prompts."""
    base: float | None
    """Values are None where nothing is decided."""
    head: float | None
    taken_back: Sequence[float | None]
    """HEAD's values with parts as at BASE, in the order of `Blame.trials`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocuments:
    """The result of the search among the changed documents."""

    changed: Mapping[str, int]
    """Kind of change to the number of documents."""
    found: Sequence[ChangedDocument] = ()
    """As at BASE they restore the verdict, and without any one of them not."""
    why_not: str = ""
    """Why none are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Which part of a change explains a red verdict."""

    factors: Sequence[Factor]
    """Those that differ between BASE and HEAD, in the order of `Factor`."""
    rules: Sequence[FailingRule] = ()
    """Empty where HEAD fails nothing that BASE does not fail."""
    trials: Sequence[Parts] = ()
    """What was taken back, one run each."""
    restoring: Sequence[Parts] = ()
    """Those of them that restore the verdict: single parts, or pairs where no single one does."""
    documents: FoundDocuments | None = None
    notes: Sequence[str] = field(default_factory=list)


def blame(gate_input: GateInput, sides: LocalSides, progress: Progress = SILENT) -> Blame:
    """Explain the verdict by the factors that differ; `gate_input` is HEAD's policy and plan.

    Deterministic for systems that are; a second call with the same store asks nothing again.
    Raises BaselineError where BASE's run has no verdict, which nothing can be compared with.
    """
    if not sides.factors:
        return Blame(factors=())
    lean, left_out = replace(gate_input, accepted_runs=NO_ACCEPTED_RUNS).without_attribution()
    notes = [f"attribution is not computed: {', '.join(left_out)} left out"] if left_out else []

    def run(system: SystemUnderTest, title: str, baseline: Baseline | None) -> GateRun:
        given = replace(lean, accepted_runs=AcceptedRuns(baseline=baseline))
        stages = Staged(progress, title) if title else SILENT
        return run_gate(given, system, stages, verdict_with=())

    everything = frozenset(sides.factors)
    base = run(sides.system(frozenset()), "BASE", None)
    baseline = _baseline(base)
    head = run(sides.system(everything), "HEAD", baseline)
    red = _RedRules(base, head)
    notes += [f"fails at BASE too, so no change explains it: {name}" for name in red.old]
    if not red.rules:
        return Blame(factors=sides.factors, notes=notes)
    runs: dict[Parts, GateRun] = {}
    restoring: list[Parts] = []
    for size in (1, 2):
        # Backwards: what searches is exchanged first, while HEAD's generator is open.
        for parts in [*combinations(sides.factors, size)][::-1] if not restoring else ():
            title = f"HEAD with BASE's {' and '.join(parts)}"
            try:
                runs[parts] = run(sides.system(everything - {*parts}), title, baseline)
            except (ModelError, RetrievalError) as error:
                notes.append(f"{title} cannot be run: {error}")
        restoring = restoring or [parts for parts in runs if red.are_gone(runs[parts])]
    documents = None
    if (Factor.CORPUS,) in restoring:

        def is_restored(mixture: Mixture) -> bool:
            return red.are_gone(run(sides.searching(mixture), "", baseline))

        progress.note("looking for the documents among those that changed")
        documents = _searched(lean, sides, is_restored)
    return Blame(
        factors=sides.factors,
        rules=[_failing(rule, base, head, list(runs.values())) for rule in red.rules],
        trials=list(runs),
        restoring=restoring,
        documents=documents,
        notes=notes,
    )


def _baseline(base: GateRun) -> Baseline:
    try:
        return baseline_of(base, reason="BASE", date="")
    except BaselineError as error:
        raise BaselineError(
            f"BASE has no verdict of its own, so nothing can be compared with it: {error}"
        ) from error


class _RedRules:
    """The rules that fail at HEAD and not at BASE, with whom they fail for only at HEAD."""

    def __init__(self, base: GateRun, head: GateRun) -> None:
        """Compare both runs."""
        self._before: dict[Slice, set[str]] = {}
        failed = set()
        for rule in base.result.rules:
            self._before.setdefault(_slice(rule), set()).update(_names(rule))
            if rule.outcome is Outcome.FAIL:
                failed.add((_slice(rule), rule.position))
        self.rules: list[RuleResult] = []
        self.old: list[str] = []
        """The rules that fail on both sides, in words."""
        for rule in head.result.rules:
            if not rule.fails_gate:
                continue
            is_old = (_slice(rule), rule.position) in failed
            before = self._before.get(_slice(rule), set()) if is_old else set()
            new = [node for node in rule.failing if node.name not in before]
            if new or not is_old:
                self.rules.append(replace(rule, failing=new))
            else:
                self.old.append(rule_name(rule.metric, rule.suite, rule.where, _names(rule)))

    def are_gone(self, run: GateRun) -> bool:
        """Return whether each was judged and holds, but for whom it fails at BASE too."""
        by_slice: dict[Slice, list[RuleResult]] = {}
        for rule in run.result.rules:
            by_slice.setdefault(_slice(rule), []).append(rule)
        rules = [by_slice.get(_slice(red), []) for red in self.rules]
        return all(each and all(map(self._holds, each)) for each in rules)

    def _holds(self, rule: RuleResult) -> bool:
        before = self._before.get(_slice(rule), set())
        return rule.outcome is Outcome.PASS or (bool(rule.failing) and {*_names(rule)} <= before)


def rule_name(metric: str, suite: str, where: Mapping[str, str], who: Sequence[str]) -> str:
    """Return a rule in words: metric, slice, who fails, and suite."""
    whom = f" for {', '.join(who)}" if who else ""
    return f"{metric_in(metric, where)}{whom} in suite {suite}"


def _names(rule: RuleResult) -> list[str]:
    """Name who fails; of metrics nobody."""
    return [node.name for node in rule.failing]


def _slice(rule: RuleResult) -> Slice:
    return slice_of(rule.metric, rule.suite, rule.where)


def _failing(
    rule: RuleResult, base: GateRun, head: GateRun, runs: Sequence[GateRun]
) -> FailingRule:
    return FailingRule(
        metric=rule.metric,
        suite=rule.suite,
        where=dict(rule.where),
        who=_names(rule),
        base=_value(rule, base),
        head=_value(rule, head),
        taken_back=[_value(rule, run) for run in runs],
    )


def _value(rule: RuleResult, run: GateRun) -> float | None:
    """Return what a rule is about in a run: a metric, or who fails first beside control prompts."""
    value = estimate(_observed(rule, run))
    return round(float(value), _DECIMALS) + 0.0 if math.isfinite(value) else None


def _observed(rule: RuleResult, run: GateRun) -> Observations:
    table = run.tables[rule.suite]
    if not rule.failing or rule.parity is None:
        return observe(METRICS[rule.metric], table, rule.where)
    node = rule.failing[0]
    column = OUTCOMES[rule.parity.outcome].by_column[node.column].of(table)
    values = np.full(len(table.keys), np.nan) if column is None else column
    categories, terms = table.dimension("category"), table.dimension("term")
    rows = Prompts.of(table, rule.where).rows
    who = set(node.who)
    is_node = np.asarray([(categories[row], terms[row]) in who for row in rows.tolist()], np.bool_)
    is_node &= ~table.control[rows]
    is_used = is_node | table.control[rows]
    return Observations(
        keys=[table.keys[row] for row in rows[is_used].tolist()],
        clusters=table.clusters[rows[is_used]],
        arms=(~is_node[is_used]).astype(np.int8),
        values=values[rows[is_used]],
        weights=(1.0, -1.0),
        n_clusters=len(table.cluster_names),
    )


def _searched(
    gate_input: GateInput, sides: LocalSides, is_restored: Callable[[Mixture], bool]
) -> FoundDocuments:
    """Return a smallest set of changed documents whose reversal restores the verdict."""
    changed = sides.corpus.changed
    documents = FoundDocuments(
        changed=dict(sorted(Counter(document.kind for document in changed).items()))
    )
    if len(changed) > MOST_CHANGED:
        return replace(documents, why_not=f"more than {MOST_CHANGED:,} documents changed")
    cases = [case for case in gate_input.plan.cases if case.retriever == SYSTEM_RETRIEVER]
    deepest = max(case.top_k for case in cases)

    def restores(reverted: Sequence[ChangedDocument]) -> bool:
        mixture = sides.corpus.with_reverted(reverted)
        return len(mixture.all) >= deepest and is_restored(mixture)

    if not changed or not restores(changed):
        return replace(documents, why_not="the order of equally similar documents decides")
    return replace(documents, found=smallest_part(changed, restores))
