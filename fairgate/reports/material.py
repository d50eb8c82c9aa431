"""What sections are built from: a run, its judged cases, what it was compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from fairgate.domain.cases import Case
from fairgate.domain.outcomes import Measurements
from fairgate.domain.units import Assessed, Reading, Reason, Value
from fairgate.domain.wording import within_sentence
from fairgate.gate.baseline import Baseline
from fairgate.gate.gate import GateResult, GateRun
from fairgate.gate.labels import content_of, false_readings
from fairgate.metrics.columns import AssessedSuite, AssessedUnits, Column
from fairgate.metrics.exposure import RANKS
from fairgate.reports.blocks import ReportOptions
from fairgate.reports.figures import RuleRow, rule_rows
from fairgate.stats.observations import Mask
from fairgate.suites.metamorphic.assess import CONTROLS
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE

YesOrNo = bool | Reason
BIAS_WORDS = {1.0: "stereotype", -1.0: "counter", 0.0: "unknown"}
"""What an answer to a question item is, by its claim."""


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """What reports ask of a judged unit, looked up when it is asked."""

    assessed: Assessed

    @property
    def suite(self) -> str:
        """Return the suite's name."""
        return self.assessed.unit.suite

    @property
    def key(self) -> str:
        """Return the key of the case: of a pair the follow-up's."""
        return self.assessed.unit.key


@dataclass(frozen=True, slots=True)
class PairRow(JudgedRow):
    """A source and a follow-up."""

    main: str
    """The claim that tells who is affected: `controlled` in a suite with a control arm."""

    @property
    def source(self) -> str:
        """Return the key of the source's case."""
        return self.assessed.unit.asks[SOURCE]

    @property
    def relation(self) -> str:
        """Return the id of the relation."""
        return self.assessed.unit.dimensions["relation"]

    @property
    def category(self) -> str:
        """Return the term's category."""
        return self.assessed.unit.dimensions["category"]

    @property
    def term(self) -> str:
        """Return the identity, or the control prompt."""
        return self.assessed.unit.dimensions["term"]

    @property
    def phrase(self) -> str:
        """Return the identity's phrase in the text."""
        return self.assessed.unit.names.get("noun_phrase") or self.term

    @property
    def speaker(self) -> str:
        """Return the identity inside a sentence; people's own names stay as they are."""
        return within_sentence(self.phrase)

    @property
    def names_speaker(self) -> bool:
        """Return whether the follow-up is the source's text with a speaker before it."""
        names = self.assessed.unit.names
        return "noun_phrase" in names and "document" not in names

    @property
    def ranks(self) -> str:
        """Return where the changed document was found, in words; empty where none is known."""
        ranks = (self.assessed.claims.get(name, Reason.NO_DOCUMENTS) for name in RANKS)
        places = [f"rank {e:g}" if e else "not found" for e in ranks if not isinstance(e, Reason)]
        id_ = self.assessed.unit.names.get("document")
        return f"Document {id_}: {' before, '.join(places)} here" if places else ""

    @property
    def is_control(self) -> bool:
        """Return whether the pair belongs to the control arm."""
        return self.assessed.unit.is_control

    @property
    def source_answer(self) -> Reading:
        """Return the answer to the source."""
        return self.assessed.readings[SOURCE]

    @property
    def answer(self) -> Reading:
        """Return the answer to the follow-up."""
        return self.assessed.readings[FOLLOW_UP]

    @property
    def majority(self) -> str | None:
        """Return the majority of the source's control answers; None where that is not decided."""
        value = self.assessed.readings[CONTROLS].value
        return None if value is None else in_words(value)

    @property
    def claim(self) -> YesOrNo:
        """Return whether the answer changed, by the suite's main claim."""
        return self.verdict(self.main)

    def verdict(self, name: str) -> YesOrNo:
        """Return a claim that is a verdict: one of `VERDICTS`."""
        claim = self.assessed.claims[name]
        return claim if isinstance(claim, Reason) else claim == 1.0

    def score(self, name: str) -> float | None:
        """Return a claim that is a number, one of `SCORES`; None where it is not decided."""
        claim = self.assessed.claims[name]
        if isinstance(claim, Reason):
            return None
        return round(claim, 6) if name == "rrs" else claim


def in_words(value: Value) -> str:
    """Return an oracle's reading as readers see it: a label, a score, a ranking in its order."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSuite:
    """The judged pairs of a suite as columns, in the order of the plan."""

    assessed: AssessedSuite
    is_control: Mask
    """[n] whether a pair belongs to the control arm."""
    main: str
    """As in `PairRow`."""

    @property
    def claims(self) -> Column:
        """Return the main claim of each pair."""
        return self.assessed.columns[self.main]

    def rows(self, chosen: Mask) -> Iterator[PairRow]:
        """Yield the pairs [n] that are chosen."""
        return (PairRow(self.assessed[row], self.main) for row in np.flatnonzero(chosen).tolist())


def judged_pairs(result: GateResult) -> list[PairSuite]:
    """Return the suites that are judged pair by pair and have pairs, in the order of the plan."""
    names = set(pair_suites(result))
    judged = []
    for name, suite in AssessedUnits.of(result.assessed).suites.items():
        if name in names and len(suite):
            is_control = np.asarray([unit.is_control for unit in suite.units], dtype=np.bool_)
            main = "controlled" if is_control.any() else "generation"
            judged.append(PairSuite(assessed=suite, is_control=is_control, main=main))
    return judged


@dataclass(frozen=True, slots=True)
class QuestionRow(JudgedRow):
    """A question item as it was asked."""

    def level(self, dimension: str) -> str:
        """Its level of a dimension: the category, the setting, …; empty where it has none."""
        return self.assessed.unit.dimensions[dimension]

    @property
    def bias(self) -> float | Reason:
        """1: the stereotype, -1: against it, 0: unknown."""
        return self.assessed.decision

    @property
    def is_correct(self) -> bool | Reason:
        """Whether the answer is right."""
        return self.reading.reason or self.reading.value == (self.level("alignment") or "unknown")

    @property
    def reading(self) -> Reading:
        """How the answer was read."""
        (reading,) = self.assessed.readings.values()
        return reading


def question_rows(result: GateResult) -> Iterator[QuestionRow]:
    """Yield every assessed question item in the order of the plan."""
    names, suites = question_suites(result), AssessedUnits.of(result.assessed).suites
    return map(QuestionRow, chain.from_iterable(suites[name] for name in suites if name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a term of a suite is called, and what it belongs to."""

    name: str
    category: str
    is_control: bool


def identities(result: GateResult, suite: str) -> dict[str, Identity]:
    """Return the terms of a suite in the order of the plan."""
    by_term: dict[str, Identity] = {}
    for unit in result.gate_input.plan.units:
        term = unit.dimensions.get("term")
        if unit.suite == suite and term is not None and term not in by_term:
            by_term[term] = Identity(
                name=unit.names.get("person") or unit.names.get("noun_phrase") or term,
                category=unit.dimensions["category"],
                is_control=unit.is_control,
            )
    return by_term


def pair_suites(result: GateResult) -> list[str]:
    """Return the suites that are judged pair by pair, in the order of the policy."""
    return result.suites_of("metamorphic")


def question_suites(result: GateResult) -> list[str]:
    """Return the suites of question items, in the order of the policy."""
    return result.suites_of("bbq")


@dataclass(frozen=True, kw_only=True)
class Material:
    """A run and its baseline, indexed once."""

    run: GateRun
    options: ReportOptions
    clearest: list[PairRow] = field(init=False, default_factory=list)
    """The changed pairs in the order of `sections/cases.py`, once they are known."""
    _identities: dict[str, dict[str, Identity]] = field(init=False, default_factory=dict)

    @property
    def result(self) -> GateResult:
        """Return the verdict with everything that was decided."""
        return self.run.result

    @property
    def baseline(self) -> Baseline | None:
        """Return the baseline of the comparison."""
        return self.result.gate_input.accepted_runs.baseline

    @property
    def anchor(self) -> Baseline | None:
        """Return the run since which budgets count."""
        return self.result.gate_input.accepted_runs.anchor

    @property
    def confidence_interval(self) -> str:
        """Return the name of intervals, with their level of confidence: `95 %`."""
        return f"confidence interval ({100 * self.options.confidence:g} %)"

    @cached_property
    def now(self) -> Measurements:
        """Return this run's measurements."""
        return Measurements(self.result.measurements)

    @cached_property
    def before(self) -> Measurements:
        """Return the baseline's measurements; none without one."""
        return Measurements(() if self.baseline is None else self.baseline.measurements)

    @cached_property
    def rules(self) -> list[RuleRow]:
        """Return the rules in the order of the policy."""
        return rule_rows(self.result.rules, self.person)

    @cached_property
    def judged(self) -> list[PairSuite]:
        """Return the judged pairs by suite."""
        return judged_pairs(self.result)

    def pairs_where(self, chosen: Callable[[PairSuite], Mask]) -> Iterator[PairRow]:
        """Yield the judged pairs that are chosen [n] of each suite, in the order of the plan."""
        return chain.from_iterable(suite.rows(chosen(suite)) for suite in self.judged)

    @property
    def pairs(self) -> Iterator[PairRow]:
        """Yield the judged pairs in the order of the plan; of a large run these are many."""
        return self.pairs_where(lambda suite: np.ones(len(suite.assessed), dtype=np.bool_))

    def pair(self, suite: str, key: str) -> PairRow | None:
        """Return the judged pair of a key; None where there is none, or nobody labelled any."""
        return self._pairs_by_key.get((suite, key)) if self._false_readings else None

    @cached_property
    def _pairs_by_key(self) -> Mapping[tuple[str, str], PairRow]:
        return {(row.suite, row.key): row for row in self.pairs}

    @property
    def named_pairs(self) -> Iterator[PairRow]:
        """Yield the pairs that name an identity; of a large run these are many."""
        return self.pairs_where(lambda suite: ~suite.is_control)

    @cached_property
    def _false_readings(self) -> frozenset[tuple[str, str]]:
        return false_readings(self.result.gate_input.accepted_runs.labels)

    def is_false_reading(self, row: PairRow) -> bool:
        """Return whether somebody calls wrong how this very pair of answers was read."""
        run, wrong = self.run, self._false_readings
        content = content_of(run.readings, run.executions, row.assessed) if wrong else ""
        return (row.suite, content) in wrong

    @cached_property
    def changed_pairs(self) -> list[PairRow]:
        """Return the pairs that name an identity and have a changed answer."""
        return [*self.pairs_where(lambda suite: ~suite.is_control & (suite.claims.values == 1.0))]

    @cached_property
    def questions(self) -> list[QuestionRow]:
        """Return the judged question items in the order of the plan."""
        return list(question_rows(self.result))

    def planned(self, suite: str, key: str) -> Case | None:
        """Return a case as it was asked, with the response that it embeds; None: none is planned.

        Readings know all that were asked, so that no run of a million pairs indexes them again.
        """
        readings = self.run.readings.get(suite)
        case = None if readings is None else readings.case(key)
        return self._unasked.get((suite, key)) if case is None else case

    def case(self, suite: str, key: str) -> Case:
        """Return the same of a case that is planned. Raises KeyError."""
        return self.planned(suite, key) or self._unasked[suite, key]

    @cached_property
    def _unasked(self) -> Mapping[tuple[str, str], Case]:
        readings = self.run.readings
        return {
            (case.suite, case.key): case
            for case in self.result.gate_input.plan.cases
            if case.suite not in readings or case.key not in readings[case.suite]
        }

    def was_unchanged(self, row: PairRow) -> bool:
        """Return whether a pair's answer was decided and unchanged then."""
        return self._before.get(row.suite, {}).get(row.key) == 0

    @cached_property
    def _before(self) -> Mapping[str, Mapping[str, int]]:
        """Return suite to pair to its main claim in the baseline; -1: undecided."""
        claims_of_suites: dict[str, Mapping[str, int]] = {}
        run = self.baseline
        for suite, stored in run.suites.items() if run else ():
            values = stored.table.values
            column = values.get("controlled", values.get("generation"))
            if column is not None:
                claims = np.nan_to_num(column, nan=-1.0).astype(np.int8).tolist()
                claims_of_suites[suite] = dict(zip(stored.table.keys, claims, strict=True))
        return claims_of_suites

    def identities(self, suite: str) -> dict[str, Identity]:
        """Return the identities of a suite, by term."""
        if suite not in self._identities:
            self._identities[suite] = identities(self.result, suite)
        return self._identities[suite]

    def person(self, suite: str, term: str) -> str:
        """Return a term's name inside a sentence: `an elderly person`."""
        return within_sentence(self.identity(suite, term))

    def identity(self, suite: str, term: str) -> str:
        """Return a term's name in the texts: `An elderly person`."""
        entry = self.identities(suite).get(term)
        return entry.name if entry else term
