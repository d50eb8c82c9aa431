"""Ask wave after wave: the plan, what embeds responses, what judges are asked, what crosses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol, TypeVar

from fairgate.domain.cases import Case, TestPlan, crossed_key, repeat_key
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import Executed, Progress, Staged, SystemUnderTest
from fairgate.domain.units import Judged, Reason, Unit
from fairgate.gate.judge import JudgeUnits, ReadingsOf, judge, judge_units, readings_of
from fairgate.relations.oracles.judge import JudgedTexts
from fairgate.relations.oracles.thinking import spoken
from fairgate.relations.relation import RESPONSE
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.suite import Suite

MOST_EMBEDDED = 8_000
"""Characters of a response that are embedded: a system may write without end."""
_MOST_HELD = 100_000
_Lists = tuple[Sequence[Document], Sequence[Document]]
FEWEST = 30
"""Satisfied pairs that are crossed in each arm even where fewer are violated."""
_WAVE = 2
Stratum = TypeVar("Stratum")


class Documents(StrEnum):
    """How the documents of a pair's two cases relate."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    UNDECIDED = "undecided"
    """The pair has no verdict, so its documents do not matter."""


def keys_of(item: Judged) -> tuple[str, str]:
    """Return the keys of a pair's cases: source and follow-up."""
    asks = item.unit.asks
    return asks[SOURCE], asks[FOLLOW_UP]


def documents_of_pairs(
    judged: Sequence[Judged], executions: Executed, suites: Container[str]
) -> Iterator[Documents]:
    """Yield how the documents of each pair's source and follow-up relate, rank by rank.

    Units of other suites than these count as undecided. Lists are shared, so that two of them are
    compared once.
    """
    known: dict[tuple[int, int], tuple[_Lists, Documents]] = {}
    for item in judged:
        suite = item.unit.suite
        if suite not in suites or isinstance(item.decision, Reason):
            yield Documents.UNDECIDED
            continue
        source, follow_up = keys_of(item)
        before, after = executions.get((suite, source)), executions.get((suite, follow_up))
        left = None if before is None else before.documents
        right = None if after is None else after.documents
        if left is None or right is None:
            yield Documents.UNKNOWN
            continue
        name = id(left), id(right)
        found = known.get(name)
        if found is None:
            # Kept with what has these ids, so that nothing else takes them.
            found = (left, right), _related(left, right)
            if len(known) < _MOST_HELD:
                known[name] = found
        yield found[1]


def _related(left: Sequence[Document], right: Sequence[Document]) -> Documents:
    equal = left is right or [*map(document_key, left)] == [*map(document_key, right)]
    return Documents.EQUAL if equal else Documents.DIFFERENT


@dataclass(slots=True, kw_only=True)
class Answered:
    """The cases of all waves so far, with their executions and verdicts."""

    plan: TestPlan
    suites: Mapping[str, Suite]
    readings: ReadingsOf
    executions: dict[tuple[str, str], Execution] = field(default_factory=dict)
    added: list[Case] = field(default_factory=list)
    """The cases of the waves after the first."""
    judge: Callable[[], Sequence[Judged]]
    _judged: Sequence[Judged] | None = None
    _documents: Sequence[Documents] | None = None

    @property
    def judged(self) -> Sequence[Judged]:
        """Return the plan's units as judged once what they ask is answered; judged once."""
        if self._judged is None:
            self._judged = self.judge()
        return self._judged

    @property
    def documents(self) -> Sequence[Documents]:
        """Return how the documents of each judged unit relate, of suites that cross; found once."""
        if self._documents is None:
            crossing = {
                name for name, suite in self.suites.items() if suite.crossing not in (None, "off")
            }
            self._documents = list(documents_of_pairs(self.judged, self.executions, crossing))
        return self._documents


class Wave(Protocol):
    """Names further cases. Deterministic: equal answers, equal cases."""

    id: ClassVar[str]

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the cases to ask now; none where nothing is to be asked."""
        ...


class Planned:
    """The first wave: everything that can be asked without knowing an answer."""

    id: ClassVar[str] = "planned"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the plan's cases that wait for no response."""
        del seed
        return [case for case in answered.plan.cases if not case.waits]


class EmbeddedResponses:
    """Cases whose text holds the response to another case (Meta-Fair MR8-MR10)."""

    id: ClassVar[str] = "embedded-responses"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the plan's other cases; one whose response says nothing is not asked."""
        del seed
        found = []
        for case in answered.plan.cases:
            if case.embeds is None:
                continue
            spoken_part = said_in(answered, case.suite, case.embeds)
            if spoken_part:
                query = case.query.replace(RESPONSE, spoken_part[:MOST_EMBEDDED])
                found.append(case._replace(query=query))
        return found


class Judgements:
    """Questions to judges about a pair of prompts and responses, or a follow-up (Meta-Fair)."""

    id: ClassVar[str] = "judgements"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return what judges are asked; a pair without a response, or too long, is not judged."""
        del seed
        asked = [case for case in answered.plan.cases if case.judge is not None]
        found = []
        for case in asked:
            responses = [said_in(answered, case.suite, key, whole=True) for key in case.judged]
            if all(responses):
                asks = [answered.readings[case.suite].case(key) for key in case.judged]
                prompts = ["" if each is None else each.query for each in asks]
                alone = len(prompts) == 1
                texts = JudgedTexts(
                    source_prompt=None if alone else prompts[0],
                    follow_up_prompt=prompts[-1],
                    source_response=None if alone else responses[0],
                    follow_up_response=responses[-1],
                )
                # What is not shown could be the biased part: such a pair has no verdict.
                found += [] if texts.is_cut else [case._replace(query=texts.question())]
        return found


def said_in(answered: Answered, suite: str, key: str, *, whole: bool = False) -> str:
    """Return what the response to a case says beside thinking; empty where there is none.

    With `whole`, text before a closing tag that nothing opened is a part of it.
    """
    execution = answered.executions.get((suite, key))
    return spoken((execution.response if execution is not None else None) or "", whole=whole)


class Crossing:
    """The wave that separates the effect of retrieval from that of the generator."""

    id: ClassVar[str] = "crossing"

    def next(self, answered: Answered, seed: int) -> Sequence[Case]:
        """Return the crossed cases; empty where none are needed.

        Deterministic: satisfied pairs are drawn by a hash of the policy's seed and their key, so
        most of a sample stays when other pairs change.
        """
        suites = answered.suites
        crossing = {
            name: suite.crossing
            for name, suite in suites.items()
            if suite.crossing is not None and suite.crossing != "off"
        }
        cases: dict[tuple[str, str], Case] = {}
        pairs = zip(answered.judged, answered.documents, strict=True) if crossing else ()
        most = {name: suites[name].most_crossed for name in crossing}
        drawn = list(_drawn(pairs, crossing, most, seed))
        wanted = {(item.unit.suite, key) for item in drawn for key in keys_of(item)}
        known = {
            (case.suite, case.key): case
            for case in answered.plan.cases
            if case.suite in crossing and (case.suite, case.key) in wanted
        }
        for item in drawn:
            unit = item.unit
            again = suites[unit.suite].repeats + 1
            source, follow_up = (known[unit.suite, key] for key in keys_of(item))
            for case in (
                _again(source, again),
                _again(follow_up, again),
                _crossed(source, follow_up.key),
                _crossed(follow_up, source.key),
            ):
                cases.setdefault((case.suite, case.key), case)
        return list(cases.values())


def crossing_price(cases: Sequence[Case]) -> str:
    """Return what the crossed cases are for, how many there are, and how to have fewer."""
    pairs = sum(case.documents_of is not None for case in cases) // 2
    return (
        f"{len(cases):,} questions to separate retriever and generator in {pairs:,} pairs, less "
        "those in store; a suite's `attribution_pairs` allows fewer, `attribution: off` none"
    )


def most_questions(units: Sequence[Unit], *, is_greedy: bool, pairs: int | None = None) -> int:
    """Return how many questions crossing can add for at most so many of these pairs.

    Two for each pair; sampled answers are also asked again, once for the pair and once for its
    source (a greedy one is known already).
    """
    crossed = len(units) if pairs is None else min(pairs, len(units))
    sources = min(crossed, len({unit.asks[SOURCE] for unit in units}))
    return 2 * crossed + (0 if is_greedy else crossed + sources)


def _again(case: Case, number: int) -> Case:
    return case._replace(
        key=repeat_key(case.key, number), wave=_WAVE, repeat=number - 1, is_crossing=True
    )


def _crossed(case: Case, other: str) -> Case:
    return case._replace(
        key=crossed_key(case.key, other), wave=_WAVE, documents_of=other, is_crossing=True
    )


def _drawn(
    pairs: Iterable[tuple[Judged, Documents]],
    crossing: Mapping[str, str],
    most: Mapping[str, int | None],
    seed: int,
) -> Iterator[Judged]:
    """Yield the pairs to cross: of each arm the violated ones and as many satisfied ones.

    Where a suite allows fewer, each of its strata (arm and verdict) is a random sample; what a
    stratum found counts for all of it.
    """
    strata: dict[tuple[str, bool, bool], list[Judged]] = {}
    arms: dict[tuple[str, bool], list[Judged]] = {}
    for item, documents in pairs:
        unit = item.unit
        if documents is Documents.DIFFERENT and unit.suite in crossing:
            arm = unit.suite, unit.is_control
            arms.setdefault(arm, []).append(item)
            strata.setdefault((*arm, item.decision == 1.0), []).append(item)
    sizes: dict[str, dict[tuple[str, bool, bool], int]] = {}
    for (suite, is_control, is_violated), items in strata.items():
        violated = len(strata.get((suite, is_control, True), ()))
        sampled = not is_violated and crossing[suite] != "all"
        wanted = max(violated, FEWEST) if sampled else len(items)
        of_suite = sizes.setdefault(suite, {})
        of_suite[suite, is_control, is_violated] = min(len(items), wanted)
    chosen = set()
    for suite, of_suite in sizes.items():
        for stratum, taken in _shared(of_suite, most[suite]).items():
            ranked = sorted(strata[stratum], key=lambda item: _drawing_order(seed, item.unit))
            chosen |= {(suite, item.unit.key) for item in ranked[:taken]}
    for items in arms.values():
        yield from (item for item in items if (item.unit.suite, item.unit.key) in chosen)


def _shared(sizes: Mapping[Stratum, int], most: int | None) -> dict[Stratum, int]:
    """Return how many of each stratum are taken: all, or equal parts of `most`, small ones whole.

    Equal parts, because a stratum of which nothing is read leaves no result at all.
    """
    shares: dict[Stratum, int] = {}
    left = sum(sizes.values()) if most is None else most
    for place, (stratum, size) in enumerate(sorted(sizes.items(), key=lambda one: one[1])):
        shares[stratum] = min(size, left // (len(sizes) - place))
        left -= shares[stratum]
    return shares


def _drawing_order(seed: int, unit: Unit) -> str:
    name = f"{seed}\0{unit.suite}\0{unit.key}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


WAVES: tuple[Wave, ...] = (Planned(), EmbeddedResponses(), Judgements(), Crossing())
"""In the order in which they are asked; units ask cases of all but the last."""
_PARTS = {
    Crossing.id: "attribution",
    EmbeddedResponses.id: "questions about answers",
    Judgements.id: "judgements",
}
"""What progress calls the waves after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which waves are asked, and what decides the units."""

    waves: Sequence[Wave] = WAVES
    judge_units: JudgeUnits = judge_units


WHOLE = Asking()
"""Every wave; suites decide their units."""


def answer_waves(
    plan: TestPlan,
    suites: Mapping[str, Suite],
    seed: int,
    sut: SystemUnderTest,
    progress: Progress,
    asking: Asking = WHOLE,
) -> Answered:
    """Ask every wave, and return what is known then; units are judged from the planned cases."""
    executions: dict[tuple[str, str], Execution] = {}
    readings = readings_of(suites, executions)
    answered = Answered(
        plan=plan,
        suites=suites,
        readings=readings,
        executions=executions,
        judge=lambda: judge(plan, suites, readings, executions, sut, asking.judge_units),
    )
    for case in plan.cases:
        readings[case.suite].expect(case)
    for wave in asking.waves:
        cases = wave.next(answered, seed)
        for case in cases:
            readings[case.suite].add(case)
        if cases:
            asked = TestPlan(cases=cases, units=())
            part = _PARTS.get(wave.id, wave.id)
            price = crossing_price(cases) if wave.id == Crossing.id else ""
            shown = progress if wave is asking.waves[0] else Staged(progress, part, price)
            executions.update(sut.execute(asked, shown, executions))
        if wave is not asking.waves[0]:
            answered.added.extend(cases)
    return answered
