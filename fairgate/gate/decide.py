"""From rule results to the outcome of the gate and its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Evidence, Outcome, Overlap, RuleResult
from fairgate.domain.units import Assessed, Reading, Reason, counted
from fairgate.domain.wording import first_few, quoted
from fairgate.gate.changes import HALF, as_often_as_controls
from fairgate.gate.rules import rests_on_unproven
from fairgate.metrics import shift
from fairgate.metrics.columns import AssessedSuite, AssessedUnits
from fairgate.metrics.exposure import RANKS
from fairgate.metrics.sentences import TEXT
from fairgate.policy.schema import Policy
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.oracles.oracle import Oracle
from fairgate.stats.association import alike_within_groups, commonest, within_groups
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE

_READABLE = {"pair": "two readable answers", "case": "a readable answer"}
MOST_ALIKE = 0.98
"""Answers are constant where at least this share of them is equal."""
LEAST_AGREEMENT = 0.05
"""Answers follow their sources where Fleiss' kappa within sources, over the source itself and its
control prompts, is above this, with equal answers or with those that the oracle calls the same (two
rankings of nearly one order). Chance alone gives 0; the shipped policies are far above."""

_ADVICE = (
    "such answers show nothing: read some of them in the report; if they are intended, set "
    "`constant_answers: allow` in the policy"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """One readable answer of a suite."""

    suite: str
    about: str
    """What the answer should depend on: the source, or the correct answer of a question item."""
    value: str
    shown: str = ""
    """How the value was shown to the model: the letter of an option, where letters were shown."""
    is_open: bool = False
    """Whether any words are an answer: that two differ says nothing then."""
    is_plain: bool = True
    """Whether no identity is named: variation in such answers is not bias."""
    reading: Reading | None = field(default=None, compare=False)
    reader: str = ""
    """What read it: relations that share an answer read it by oracles of their own."""
    oracle: Oracle | None = field(default=None, compare=False)
    """What says whether two answers are the same; None where only equal ones are."""

    @property
    def is_score(self) -> bool:
        """Whether it is a number, of which two hardly ever are equal."""
        read = self.reading
        return self.oracle is None and read is not None and isinstance(read.value, float)


def constant_answers(answers: Iterable[ReadAnswer]) -> list[str]:
    """Return a sentence for each suite whose readable answers show nothing.

    A system that gives every source the same answer, or whose answers do not depend on the sources,
    violates nothing and is no evidence of fairness: a prompt without its text has the same effect.
    Such a run has no verdict, unless the policy says `constant_answers: allow`.
    """
    return [f"{where}; {_ADVICE}" for where in _showing_nothing(answers)]


def allowed_constant_answers(assessed: Iterable[Assessed], policy: Policy) -> list[str]:
    """Return the same as notices, where the policy lets such answers have a verdict."""
    if policy.constant_answers == "refuse":
        return []
    return [
        f"{where}; the policy allows it, but such answers show nothing"
        for where in _showing_nothing(readable_answers(assessed))
    ]


def _showing_nothing(answers: Iterable[ReadAnswer]) -> list[str]:
    """Return the constant readings of the suites in which no oracle reads anything else."""
    suites: dict[str, dict[str, list[ReadAnswer]]] = {}
    for answer in answers:
        suites.setdefault(answer.suite, {}).setdefault(answer.reader, []).append(answer)
    reasons_of_suites = {
        name: list(map(_constant, groups.values())) for name, groups in suites.items()
    }
    return [
        f"suite {name}: {'; '.join({why.reason: why.sentence for why in reasons}.values())}"
        for name, constants in reasons_of_suites.items()
        if (reasons := [why for why in constants if why is not None]) and all(constants)
    ]


class _Constant(NamedTuple):
    """Why one oracle's readings of a suite show nothing."""

    reason: str
    figure: str = ""
    """Its own of the oracle; several oracles of a suite may have the same reason."""

    @property
    def sentence(self) -> str:
        return f"{self.reason} {self.figure}" if self.figure else self.reason


def _constant(answers: Sequence[ReadAnswer]) -> _Constant | None:
    # In these only the source can make a difference; without controls in all.
    plain = [answer for answer in answers if answer.is_plain]
    plain = plain if len({answer.about for answer in plain}) < len(plain) else list(answers)
    for values, what in (
        ([answer.value for answer in answers], "readable answers are"),
        ([answer.value for answer in plain], "readable answers to texts that name no identity are"),
        ([answer.shown for answer in answers if answer.shown], "readable answers say"),
    ):
        value, count, total = commonest(values)
        if total and count >= MOST_ALIKE * total:
            return _Constant(f"{count:,} of {total:,} {what} {quoted(value)}, whatever was asked")
    agreement = within_groups(
        (answer.about, answer.value)
        for answer in plain
        if not answer.is_open and not answer.is_score
    )
    follows = agreement if not isinstance(agreement, float) else max(agreement, _alike(plain))
    if isinstance(follows, float) and follows <= LEAST_AGREEMENT:
        return _Constant(
            "the answers do not follow what was asked: those to one source agree no more than "
            "those to different ones",
            f"(kappa {follows:.2f}, above {LEAST_AGREEMENT:g} asked for)",
        )
    return None


def _alike(answers: Sequence[ReadAnswer]) -> float:
    """Return the agreement within sources by the oracles' own `same`; -1 where it adds nothing."""
    by_value = {one.value: one for one in answers if one.oracle and not one.is_open}

    def same(left: str, right: str) -> bool:
        answer, other = by_value[left], by_value[right]
        assert answer.oracle and answer.reading and other.reading  # noqa: PT018, S101
        return answer.oracle.same(answer.reading, other.reading)

    agreement = alike_within_groups(
        ((one.about, one.value) for one in answers if one.value in by_value), same
    )
    return -1.0 if agreement is None else agreement


def readable_answers(assessed: Iterable[Assessed]) -> list[ReadAnswer]:
    """Return every readable answer once by oracle; a source's own is shared by its pairs."""
    answers: dict[tuple[str, str], dict[str, ReadAnswer]] = {}
    alike: dict[tuple[object, ...], ReadAnswer] = {}
    readers: dict[str, tuple[str, Oracle | None]] = {}
    for suite in AssessedUnits.of(assessed).suites.values():
        codes = {role: column.codes.tolist() for role, column in suite.readings.items()}
        texts = suite.columns.get(TEXT)
        source: tuple[object, ...] = ()
        for row, unit in enumerate(suite.units):
            if unit.follows is None:
                continue
            about, is_open = unit.follows or unit.cluster, bool(unit.verdicts)
            relation = unit.dimensions.get("relation", "")
            if relation not in readers:
                readers[relation] = _read_by(relation)
            reader, oracle = readers[relation]
            of_reader = answers.setdefault((unit.suite, reader), {})
            source, last_source = (unit.asks.get(SOURCE), reader, about, is_open), source
            for role, key in unit.asks.items():
                if role == SOURCE and source == last_source:
                    continue
                reading = suite.readings[role].readings[codes[role][row]]
                if reading.value is None:
                    continue
                if texts is not None:
                    # Answers in sentences are constant where their words are, not their tone.
                    text = texts[row]
                    if role == FOLLOW_UP and not isinstance(text, Reason):
                        of_reader[key] = ReadAnswer(
                            suite=unit.suite,
                            about=about,
                            value=f"text {int(text):08x}",
                            is_open=True,
                            is_plain=unit.is_control,
                            reader=reader,
                        )
                    continue
                is_plain = unit.is_control or role == SOURCE
                name = unit.suite, reader, about, is_open, is_plain, reading.value, reading.shown
                known = alike.get(name)
                if known is None:
                    known = alike[name] = ReadAnswer(
                        suite=unit.suite,
                        about=about,
                        value=reading.shown if is_open else str(reading.value),
                        shown="" if is_open else reading.shown,
                        is_open=is_open,
                        is_plain=is_plain,
                        reading=reading,
                        reader=reader,
                        oracle=oracle,
                    )
                of_reader[key] = known
    return [answer for of_reader in answers.values() for answer in of_reader.values()]


def _read_by(name: str) -> tuple[str, Oracle | None]:
    """Return a key that tells a relation's oracle from others, and the relation's own oracle."""
    relation = RELATIONS.get(name)
    if relation is None:
        return name, None
    if not relation.reads_task:
        own = relation.oracle(None)
        return own.id, own
    # GenFair's substitutions are read for sentiment beside tone, its other relations are not.
    with_sentiment = getattr(relation, "with_sentiment", False)
    return f"{type(relation).oracle.__qualname__} {with_sentiment}", None


def weigh_evidence(
    plan: TestPlan, assessed: Sequence[Assessed], rules: Sequence[RuleResult], policy: Policy
) -> Evidence:
    """Count what was decided, and give the reason where it is too little for a verdict."""
    suites = AssessedUnits.of(assessed).suites.values()
    planned = len(assessed)
    undecided: Counter[Reason] = sum((Counter(s.decisions.counts()) for s in suites), Counter())
    unit = "pair" if all(len(unit.asks) > 1 for suite in suites for unit in suite.units) else "case"
    invalid = sum(item.kind == "invalid" for item in plan.rejected)
    missing = list(dict.fromkeys(chain.from_iterable(map(_unanswered, suites))))
    problems = [all_rejected(plan)] if planned == 0 and plan.rejected else []
    problems = problems or _too_few_decided(assessed, unit, policy)
    if missing:
        problems.append(
            f"cases without an answer: {first_few(missing)}; record an empty response where the "
            "system gave none, and answer the questions that are new, for example where sources "
            "have changed since the recording (`fairgate check` lists them)"
        )
    unmatched = list(dict.fromkeys(chain.from_iterable(map(_without_reference, suites))))
    if unmatched:
        problems.append(
            f"the reference has no answer to {first_few(unmatched)}: nothing can be said to have "
            "moved there; let it answer the same questions, or record its answers again"
        )
    if invalid > policy.max_invalid * (planned + invalid):
        problems.append(
            f"the perturbation linter rejected {invalid} of {planned + invalid} follow-ups, more "
            f"than max_invalid {policy.max_invalid:g} allows"
        )
    problems += _never_found(suites)
    if policy.constant_answers == "refuse":
        problems += constant_answers(readable_answers(assessed))
    asking = [rule for rule in rules if not rule.is_reported]
    binding = [rule for rule in rules if rule.is_binding]
    limiting = [
        rule
        for rule in asking
        if rule.parity is None and not getattr(policy.gates[rule.position], "report", False)
    ]
    if not binding and any(rests_on_unproven(plan, rule.suite, rule.where) for rule in limiting):
        problems.append(
            "no rule can fail this gate but those that rest on the judge's verdicts, and these "
            "count only with a sufficient record: measure the judge with `fairgate judge "
            "evaluate`, or add a rule that needs no judge"
        )
    if not rules:
        problems.append("no gate of the policy applies to this plan")
    elif asking and all(_is_open(rule) for rule in rules):
        problems.append("no rule of the policy could be evaluated")
    is_lost = bool(asking) and all(_is_open(rule) for rule in asking)
    has_figures = len(asking) < len(rules)
    problems += _not_evaluated(
        [
            rule
            for rule in rules
            if _is_open(rule) and (not rule.advisory or (is_lost and has_figures))
        ]
    )
    problems += diluted(rules)
    if not problems and asking and all(rule.is_first_run for rule in asking):
        problems.append(
            "every rule compares with a baseline and there is none yet: read the figures, then "
            "accept this run with `fairgate baseline accept`, or add a bound (`max`)"
        )
    return Evidence(
        planned=planned,
        decided=planned - undecided.total(),
        invalid=invalid,
        missing=missing,
        problems=problems,
        undecided=dict(sorted(undecided.items())),
    )


def _never_found(suites: Iterable[AssessedSuite]) -> Iterator[str]:
    """Yield a sentence for each suite of changed documents that are in no list at all."""
    for suite in suites:
        ranks = [suite.columns[name] for name in RANKS if name in suite.columns]
        values = np.concatenate([column.values for column in ranks]) if ranks else np.empty(0)
        decided = values[~np.isnan(values)]
        if len(decided) and not decided.any():
            yield (
                f"suite {suite.units[0].suite}: none of the documents that sources name is in any "
                "list that was retrieved, whoever they name: nothing was tested; ask questions "
                "that find them, or look deeper (`retrieve_only`, `top_k`)"
            )


def diluted(rules: Sequence[RuleResult]) -> list[str]:
    """Return a sentence for each rule that holds by other cases alone than the baseline has.

    They end a run without a verdict; accepting it, with its cases, is for a reviewer to do.
    """
    return [
        f"{rule.metric}{f' ({_place(rule)})' if rule.where else ''} in suite {rule.suite} holds "
        f"only by cases that were added or excluded: {'; '.join(rule.reasons)}"
        for rule in rules
        if rule.doubts.is_diluted and not rule.advisory and rule.outcome is Outcome.INCONCLUSIVE
    ]


def _place(rule: RuleResult) -> str:
    return ", ".join(f"{name} {value}" for name, value in rule.where.items())


def _too_few_decided(assessed: Sequence[Assessed], unit: str, policy: Policy) -> list[str]:
    """Say where nothing was decided, or too little; where others are there, without unproven units.

    What an unmeasured judge leaves open takes no verdict from rules that rest on something else.
    """
    suites = AssessedUnits.of(assessed).suites.values()
    proven = [np.asarray([not u.is_unproven for u in suite.units], np.bool_) for suite in suites]
    if not any(rows.any() for rows in proven):
        proven = [np.ones(len(suite), np.bool_) for suite in suites]
    planned = decided = 0
    reasons: Counter[Reason] = Counter()
    unstable = 0.0
    for suite, rows in zip(suites, proven, strict=True):
        counting = suite.decisions.taken(np.flatnonzero(rows))
        if not len(counting):
            continue
        planned += len(counting)
        decided += len(counting) - len(counting.reasons)
        reasons.update(counting.counts())
        control = np.asarray([unit.is_control for unit in suite.units], np.bool_)[rows]
        is_unstable = counting.having(Reason.UNSTABLE)
        own, of_controls = is_unstable[~control].tolist(), is_unstable[control].tolist()
        # What is unstable, of follow-ups no more often than control prompts, is for everybody.
        unstable += sum(of_controls) + as_often_as_controls(own, of_controls)
    if not decided:
        return [f"nothing was decided: no {unit} has {_READABLE[unit]}"]
    # Where hardly half is decided, nothing is shown, whoever has the unstable answers.
    if decided >= policy.min_decided * max(planned - unstable, HALF * planned):
        return []
    few = f"only {decided} of {planned} planned {unit}s were decided"
    return [f"{few}, fewer than min_decided {policy.min_decided:g} asks for ({counted(reasons)})"]


def _unanswered(suite: AssessedSuite) -> Iterator[str]:
    """Yield the keys of the cases of a suite that have no answer, unit by unit."""
    rows = np.zeros(len(suite), np.bool_)
    for column in suite.readings.values():
        lacking = [reading.reason is Reason.MISSING for reading in column.readings]
        # The last place stands for -1: nothing was asked.
        rows |= np.asarray([*lacking, False], np.bool_)[column.codes]
    for row in np.flatnonzero(rows).tolist():
        for role, key in suite.units[row].asks.items():
            asked = suite.readings.get(role)
            if asked is not None and row in asked and asked[row].reason is Reason.MISSING:
                yield key


def _without_reference(suite: AssessedSuite) -> Iterator[str]:
    """Yield the keys of the units that the policy's reference does not answer."""
    lacking = np.zeros(len(suite), np.bool_)
    for name in shift.COLUMNS & suite.columns.keys():
        lacking |= suite.columns[name].having(Reason.NO_REFERENCE)
    return (suite.units[row].key for row in np.flatnonzero(lacking).tolist())


def all_rejected(plan: TestPlan) -> str:
    """Say why no source of any relation became a pair: the commonest reason, with an example."""
    [(reason, number)] = Counter(item.reason for item in plan.rejected).most_common(1)
    first = next(item for item in plan.rejected if item.reason == reason)
    return (
        f"nothing was asked: {number} of {len(plan.rejected)} sources and follow-ups were excluded "
        f"because {reason} (the first: {quoted(first.key)}, {first.relation})"
    )


def _not_evaluated(rules: Sequence[RuleResult]) -> list[str]:
    """Return a sentence for the metrics and slices that have no value for the same reasons."""
    slices: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        reasons = "; ".join(reason.removeprefix("not evaluated: ") for reason in rule.reasons)
        slices.setdefault((rule.metric, rule.suite, reasons), []).append(_place(rule))
    metrics: dict[tuple[str, str, str], list[str]] = {}
    for (metric, suite, reasons), places in slices.items():
        metrics.setdefault((suite, _of_slices(places), reasons), []).append(metric)
    return [
        f"{first_few(ids)} in suite {suite} could not be evaluated{of_slices}: {reasons}"
        for (suite, of_slices, reasons), ids in metrics.items()
    ]


def _of_slices(places: Sequence[str]) -> str:
    """Return which slices of a suite a sentence is about; nothing where it is the suite alone."""
    named = [place for place in places if place]
    if not named:
        return ""
    return f"{', nor' if len(named) < len(places) else ''} for {first_few(named)}"


def _is_open(rule: RuleResult) -> bool:
    """Return whether the policy asked for a value that is not there."""
    return rule.outcome is Outcome.NOT_EVALUATED and not (rule.is_first_run or rule.is_reported)


def decide(
    rules: Sequence[RuleResult], evidence: Evidence, overlaps: Iterable[Overlap]
) -> tuple[Outcome, ExitCode]:
    """Return the outcome of the gate and the exit code.

    The first that holds: 1 a rule failed that is not waived, 3 no comparison, 5 too little
    evidence, 0. Where evidence is lacking, an
    estimate that chance alone could have put beyond its bound is no failure. `overlaps` are those
    with baseline and anchor, where there are such runs.
    """
    binding = [rule for rule in rules if rule.is_binding]
    if any(rule.fails_gate and not (rule.doubts.is_bare and evidence.problems) for rule in binding):
        return Outcome.FAIL, ExitCode.GATE_FAILED
    incomplete = any(rule.doubts.is_incomplete for rule in binding)
    if incomplete or any(overlap.incompatible for overlap in overlaps):
        return Outcome.INCONCLUSIVE, ExitCode.BASELINE
    if evidence.problems:
        return Outcome.INCONCLUSIVE, ExitCode.NO_VERDICT
    return Outcome.PASS, ExitCode.PASS
