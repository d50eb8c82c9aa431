"""Findings made smaller: the shortest source that still fails, every candidate asked anew.

Chunks of the source are left out by delta debugging; at the end no single word or attribute can be.
Each candidate is asked and judged like any plan, in waves, under the keys of the original cases, so
that its sampling seeds are theirs. Deterministic for a system that is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from fairgate.domain.cases import Source, TestPlan, first_asked, follow_up_key
from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.json_text import flat
from fairgate.domain.ports import SILENT, Progress, SystemUnderTest
from fairgate.domain.runtime import Runtime
from fairgate.domain.units import Judged, Unit
from fairgate.domain.wording import quoted, suggestion
from fairgate.gate.composition import Composition
from fairgate.gate.delta_debugging import OutOfQuestions, smaller_and_smaller
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.run_folder import replay
from fairgate.gate.waves import answer_waves
from fairgate.metrics.intersectional import COLUMN as HIDDEN
from fairgate.relations.english import new_english_fault
from fairgate.relations.frames import Unrealisable, realise
from fairgate.relations.linter import Linter
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import MetamorphicRelation, NotApplicable
from fairgate.reports.escaping import Redaction, plain, redacted
from fairgate.suites.metamorphic.judge import DECISIVE
from fairgate.suites.metamorphic.plan import PARTS, SOURCE
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.systems.catalogue import kind_of

_WORD = re.compile(r"(\s*)((?:\{[^{}]*\}|[^\s{}])+)")
_END = re.compile(r"([.?!]+)[\"')\u201d]*$")
_PERSON = re.compile(r"\{(?:an?|the|plural) |\{(?:they|them|their|theirs|themselves)\}")


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


class Element(NamedTuple):
    """One thing that can be left out of a source."""

    kind: str
    """`word` or `attribute`."""
    place: int


@dataclass(frozen=True, slots=True)
class _Word:
    blank: str
    """What stands before it."""
    text: str


def elements_of(source: Source) -> list[Element]:
    """Return what can be left out: the words in order, then the attributes.

    The elements of a source are the words of its frame (a slot with what touches it is one word)
    and its attributes; a source without a frame has the words of its text. Pure.
    """
    words = [Element("word", n) for n in range(len(_words(source)))]
    return words + [Element("attribute", n) for n in range(len(source.attributes))]


def reduced(source: Source, kept: Collection[Element]) -> Source | None:
    """Return the source with these elements alone; None where that is no correct text.

    A sentence keeps its capital and its end sign. Pure; what the linter refuses, or English cannot
    say, is no smaller source.
    """
    text = _joined(_words(source), [e.place for e in sorted(kept) if e.kind == "word"])
    if not text:
        return None
    if not source.frame:
        smaller = Source(id=source.id, text=text)
    else:
        uses = [use for n, use in enumerate(source.attributes) if Element("attribute", n) in kept]
        try:
            found = realise(text, uses)
        except DataError:
            return None
        if isinstance(found, Unrealisable):
            return None
        smaller = Source(id=source.id, text=found.text, frame=text, attributes=found.attributes)
    return None if new_english_fault(source.text, smaller.text) else smaller


def texts_of(
    source: Source, relation: MetamorphicRelation, unit: Unit, sets: Sequence[PerturbationSet]
) -> Mapping[str, str] | None:
    """Return the text of every case that a unit asks, made of this source.

    None where the relation makes no such follow-up of it, or the linter refuses one of them.
    """
    own = relation.source_text(source)
    found = relation.follow_ups(source, sets)
    if isinstance(found, NotApplicable):
        return None
    made = {follow_up_key(source.id, relation.id, each.variant): each for each in found}
    wanted = [key for role, key in unit.asks.items() if role != SOURCE]
    chosen = [made[key] for key in wanted if key in made and not made[key].inapplicable]
    if len(chosen) < len(wanted):
        return None
    if any(Linter(relation.fault, sets).rejections(own, chosen)):
        return None
    follow_ups = zip(wanted, chosen, strict=True)
    return {unit.asks[SOURCE]: own, **{key: each.text for key, each in follow_ups}}


def _words(source: Source) -> list[_Word]:
    return [_Word(*found.groups()) for found in _WORD.finditer(source.frame or source.text)]


def _joined(words: Sequence[_Word], kept: Sequence[int]) -> str:
    """Return the kept words as text: each sentence keeps its capital and its end sign."""
    sentence, sentences = 0, []
    for each in words:
        sentences.append(sentence)
        sentence += _END.search(each.text) is not None
    text = ""
    for n, place in enumerate(kept):
        word = words[place].text
        begins = n == 0 or sentences[kept[n - 1]] != sentences[place]
        first = sentences.index(sentences[place])
        if begins and place != first and _is_capital(words[first].text):
            word = _capitalised(word)
        if n + 1 == len(kept) or sentences[kept[n + 1]] != sentences[place]:
            last = len(sentences) - 1 - sentences[::-1].index(sentences[place])
            end = _END.search(words[last].text)
            if end is not None and place != last:
                word = word.rstrip(",;:") + end.group(1)
        text += (words[place].blank if n else "") + word
    return text


def _is_capital(word: str) -> bool:
    return next((sign.isupper() for sign in word if sign.isalpha()), False)


def _capitalised(word: str) -> str:
    """Return a word or slot as it begins a sentence; a verb slot has no such form."""
    if not word.startswith("{"):
        return word[:1].upper() + word[1:]
    return f"{{{word[1].upper()}{word[2:]}" if _PERSON.match(word) else word


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkChoice:
    """The options of `fairgate shrink`."""

    keys: tuple[str, ...]
    """Findings to shrink; empty: those of `intersectional/hidden`."""
    suite: str | None
    policy: Path | None
    findings: int
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinking:
    """What is going to be shrunk, and each result as it comes."""

    announcement: str
    results: Iterator[Shrunk]
    redact: Redaction


def shrink_run(run: Path, choice: ShrinkChoice, runtime: Runtime, progress: Progress) -> Shrinking:
    """Return the shrinking of a run's findings; nothing is asked until results are taken.

    Raises UsageError for unknown keys, pairs that are no finding, and systems that cannot be asked.
    """
    undated = replace(runtime, today=None)
    replayed, given, loaded, _ = replay(run, choice.policy, undated)
    system = loaded.policy.system
    if not kind_of(system).capabilities(system).repeatable:
        raise UsageError(
            f"the policy's system is {kind_of(system).id}: it cannot be asked about shorter texts; "
            "name a policy of the same suites whose system answers, with --policy"
        )
    chosen = _chosen(replayed, given, choice)
    total = choice.questions * len(chosen)
    announcement = (
        f"shrinks {len(chosen)} finding{'' if len(chosen) == 1 else 's'}; asks the system at most "
        f"{total:,} questions"
    )
    composition = Composition(loaded, undated, progress)
    return Shrinking(
        announcement=announcement,
        results=_results(chosen, given, composition, choice.questions),
        redact=loaded.policy.redact,
    )


def _results(
    chosen: Sequence[Judged], given: GateInput, composition: Composition, most: int
) -> Iterator[Shrunk]:
    with composition.serving():
        for judged in chosen:
            suite = given.suites[judged.unit.suite]
            assert isinstance(suite, MetamorphicSuite)  # noqa: S101 (chosen so)
            sources = {source.id: source for source in suite.given.sources}
            source = sources[judged.unit.cluster]
            yield shrink(judged.unit, source, suite, given, composition.system, most)


def _chosen(run: GateRun, given: GateInput, choice: ShrinkChoice) -> list[Judged]:
    """Return the findings to shrink, in the order of the plan."""
    pairs = [
        judged
        for judged in run.result.judged
        if choice.suite in (None, judged.unit.suite) and _has_source(judged, given)
    ]
    if choice.keys:
        return [_finding(key, pairs) for key in dict.fromkeys(choice.keys)]
    found = [each for each in pairs if claim_of(each.unit) == HIDDEN and is_finding(each)]
    if not found:
        raise UsageError(
            "the run has no finding of `intersectional/hidden` (answers that only a combination "
            "changes); name another violated pair by its key: its source's text can be shrunk too"
        )
    return found[: choice.findings]


def _has_source(judged: Judged, given: GateInput) -> bool:
    """Return whether a unit's follow-ups are made of its source, and so of a shorter one."""
    suite = given.suites[judged.unit.suite]
    if not isinstance(suite, MetamorphicSuite):
        return False
    return not suite.relations[judged.unit.dimensions["relation"]].takes_pairs


def _finding(key: str, pairs: Sequence[Judged]) -> Judged:
    found = [judged for judged in pairs if judged.unit.key == key]
    if not found:
        known = [judged.unit.key for judged in pairs if is_finding(judged)]
        raise UsageError(
            f"the run has no pair {quoted(key)} whose follow-up is made of its source; "
            f"{suggestion(key, known[:3000])}"
        )
    suites = sorted({judged.unit.suite for judged in found})
    if len(suites) > 1:
        raise UsageError(
            f"{quoted(key)} is a case of {len(suites)} suites; add --suite {suites[0]}"
        )
    if not is_finding(found[0]):
        claim = claim_of(found[0].unit)
        what = (
            "a neutral pair"
            if found[0].unit.is_control
            else "a combination whose parts change the answer too, or that changes nothing"
            if claim == HIDDEN
            else "not violated, or not decided"
        )
        raise UsageError(f"{quoted(key)} is no finding: it is {what}")
    return found[0]


def render_shrunk(found: Shrunk, *, redact: Redaction) -> str:
    """Return the lines of one finding; texts are cut or hashed as the policy's `redact` asks."""
    return "\n".join(_lines(found, redact))


def shrunk_record(found: Shrunk, *, redact: Redaction) -> dict[str, Any]:
    """Return one finding as plain data, its texts cut or hashed in the same way."""
    texts = {role: redacted(text, redact) for role, text in found.texts.items()}
    return flat(replace(found, before=redacted(found.before, redact), texts=texts))


def _lines(found: Shrunk, redact: Redaction) -> Iterator[str]:
    yield f"{plain(found.key)} in suite {plain(found.suite)} ({found.claim})"
    yield f"  was          {_text(found.before, redact)}"
    if not found.texts:
        why = "the question limit was reached" if not found.questions else "its answers differ now"
        yield f"  not seen again when it was asked once more: {why}"
        return
    for role, text in found.texts.items():
        yield f"  {role:<12} {_text(text, redact)}"
        yield f"  {'':<12} answered: {plain(found.answers[role])}"
    yield (
        f"  1-minimal after {found.questions} questions: no word and no attribute can be left out"
        if found.minimal
        else f"  the best of {found.questions} questions; more may be left out: raise --questions"
    )


def _text(text: str, redact: Redaction) -> str:
    return plain(redacted(text, redact))
