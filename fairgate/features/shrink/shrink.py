"""Findings made smaller: the shortest source that still fails, every candidate asked anew.

Chunks of the source are left out by delta debugging; at the end no single word or attribute can be.
Each candidate is asked and judged like any plan, in waves, under the keys of the original cases, so
that its sampling seeds are theirs. Deterministic for a system that is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Source, TestPlan
from fairgate.domain.keys import first_asked
from fairgate.domain.ports import SILENT, SystemUnderTest
from fairgate.domain.units import Judged, Unit
from fairgate.features.shrink.reduced import Element, elements_of, reduced, texts_of
from fairgate.gate.delta_debugging import OutOfQuestions, smaller_and_smaller
from fairgate.gate.gate import GateInput
from fairgate.gate.waves import answer_waves
from fairgate.metrics.intersectional import COLUMN as HIDDEN
from fairgate.suites.metamorphic.judge import DECISIVE
from fairgate.suites.metamorphic.plan import PARTS
from fairgate.suites.metamorphic.suite import MetamorphicSuite


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A finding and its smallest form."""

    suite: str
    key: str
    claim: str
    """Which claim still holds: `hidden`, or `generation`."""
    before: str
    """The source's text as it was."""
    texts: Mapping[str, str]
    """By role, the texts of the smallest form; empty where the finding was not seen again."""
    answers: Mapping[str, str]
    """By role, how its answers were read."""
    minimal: bool
    """Whether it is known that nothing further can be left out."""
    questions: int
    """How many questions were asked for it."""


def is_finding(judged: Judged) -> bool:
    """Return whether a pair is a violation that can be shrunk: of the test arm, and hidden."""
    return not judged.unit.is_control and judged.claims.get(claim_of(judged.unit)) == 1.0


def claim_of(unit: Unit) -> str:
    """Return the claim that makes a unit a finding: `hidden` where it combines two changes."""
    return HIDDEN if set(PARTS) <= unit.asks.keys() else DECISIVE


def shrink(
    unit: Unit,
    source: Source,
    suite: MetamorphicSuite,
    given: GateInput,
    sut: SystemUnderTest,
    most: int,
) -> Shrunk:
    """Return the smallest form of a finding that is found with at most `most` questions."""
    trial = _Trial(unit, source, suite, given, sut, most)
    elements = elements_of(source)
    kept: Sequence[Element] = elements
    minimal = False
    try:
        if trial.fails(elements):
            for smaller in smaller_and_smaller(elements, trial.fails):
                kept = smaller
            minimal = True
    except OutOfQuestions:
        pass
    texts, answers = trial.shown(kept)
    return Shrunk(
        suite=unit.suite,
        key=unit.key,
        claim=claim_of(unit),
        before=source.text,
        texts=texts,
        answers=answers,
        minimal=minimal,
        questions=trial.questions,
    )


class _Trial:
    """Asks and judges candidates of one finding; equal texts are asked once."""

    def __init__(
        self,
        unit: Unit,
        source: Source,
        suite: MetamorphicSuite,
        given: GateInput,
        sut: SystemUnderTest,
        most: int,
    ) -> None:
        self.questions = 0
        self._unit, self._source, self._sut, self._most = unit, source, sut, most
        self._suite = suite.without_crossing()
        self._seed = given.policy.seed
        self._relation = suite.relations[unit.dimensions["relation"]]
        asked = set(unit.asks.values())
        planned = given.plan.cases_of(unit.suite)
        self._cases = [case for case in planned if first_asked(case.key) in asked]
        self._known: dict[tuple[tuple[str, str], ...], Judged] = {}

    def fails(self, kept: Collection[Element]) -> bool:
        """Return whether the pair is still a finding. Raises OutOfQuestions."""
        texts = self._texts(kept)
        return texts is not None and is_finding(self._judged(texts))

    def shown(self, kept: Collection[Element]) -> tuple[dict[str, str], dict[str, str]]:
        """Return texts and answers of what was found last, by role; nothing where it was not."""
        texts = self._texts(kept)
        judged = None if texts is None else self._known.get(_folded(texts))
        if texts is None or judged is None or not is_finding(judged):
            return {}, {}
        asks = self._unit.asks
        readings = judged.readings
        return (
            {role: texts[key] for role, key in asks.items()},
            {role: str(readings[role].value) for role in asks},
        )

    def _texts(self, kept: Collection[Element]) -> Mapping[str, str] | None:
        whole = len(kept) == len(elements_of(self._source))
        source = self._source if whole else reduced(self._source, kept)
        if source is None:
            return None
        return texts_of(source, self._relation, self._unit, self._suite.given.sets)

    def _judged(self, texts: Mapping[str, str]) -> Judged:
        name = _folded(texts)
        if name not in self._known:
            if self.questions + len(self._cases) > self._most:
                raise OutOfQuestions
            self.questions += len(self._cases)
            cases = [each._replace(query=texts[first_asked(each.key)]) for each in self._cases]
            plan = TestPlan(cases=cases, units=[self._unit])
            suites = {self._unit.suite: self._suite}
            answered = answer_waves(plan, suites, self._seed, self._sut, SILENT)
            self._known[name] = answered.judged[0]
        return self._known[name]


def _folded(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(texts.items()))
