"""`fairgate shrink`: findings made smaller as long as they fail; every candidate is asked anew.

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

import click

from fairgate.domain.cases import Source, TestPlan, first_asked, follow_up_key
from fairgate.domain.errors import DataError, ExitCode, UsageError
from fairgate.domain.ports import SILENT, SystemUnderTest
from fairgate.domain.units import Assessed, Unit
from fairgate.domain.wording import quoted, suggestion
from fairgate.gate.composition import Composition
from fairgate.gate.delta_debugging import OutOfQuestions, smaller_and_smaller
from fairgate.gate.gate import GateInput
from fairgate.gate.run_folder import FinishedRun, replay
from fairgate.gate.waves import ask, assess
from fairgate.metrics.intersectional import COLUMN as HIDDEN
from fairgate.relations.english import new_english_fault
from fairgate.relations.frames import realise
from fairgate.relations.linter import Linter
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import MetamorphicRelation, NotApplicable
from fairgate.reports.escaping import plain, redacted
from fairgate.suites.metamorphic.assess import DECISIVE
from fairgate.suites.metamorphic.plan import PARTS, SOURCE
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.systems.catalogue import kind_of
from fairgate.terminal import options as shared
from fairgate.terminal.output import progress_for, say

_WORD = re.compile(r"(\s*)((?:\{[^{}]*\}|[^\s{}])+)")
_END = re.compile(r"([.?!]+)[\"')\u201d]*$")
_PERSON = re.compile(r"\{(?:an?|the|plural) |\{(?:they|them|their|theirs|themselves)\}")


def is_finding(assessed: Assessed) -> bool:
    """Return whether a pair is a violation that can be shrunk: of the test arm, and hidden."""
    return not assessed.unit.is_control and assessed.claims.get(claim_of(assessed.unit)) == 1.0


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
    text = _joined(_words(source), {each.place for each in kept if each.kind == "word"})
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
        if isinstance(found, str):
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


def _joined(words: Sequence[_Word], kept: Collection[int]) -> str:
    """Return the kept words as text: each sentence keeps its capital and its end sign."""
    text, sentence = "", range(0)
    for place, word in enumerate(words):
        sentence = range(sentence.start, place + 1)
        end = _END.search(word.text)
        if end is None and place + 1 < len(words):
            continue
        own = {n: words[n].text for n in sentence if n in kept}
        first = next((sign for sign in words[sentence[0]].text if sign.isalpha()), "")
        if own and sentence[0] not in own and first.isupper():
            own[min(own)] = _capitalised(own[min(own)])
        if own and place not in own and end is not None:
            own[max(own)] = own[max(own)].rstrip(",;:") + end.group(1)
        text += "".join(words[n].blank + each for n, each in own.items())
        sentence = range(place + 1, place + 1)
    return text.lstrip()


def _capitalised(word: str) -> str:
    """Return a word or slot as it begins a sentence; a verb slot has no such form."""
    if not word.startswith("{"):
        return word[:1].upper() + word[1:]
    return f"{{{word[1].upper()}{word[2:]}" if _PERSON.match(word) else word


def shrunk(
    unit: Unit,
    source: Source,
    suite: MetamorphicSuite,
    given: GateInput,
    sut: SystemUnderTest,
    most: int,
) -> dict[str, Any]:
    """Return the smallest form of a finding that at most `most` questions find, as it is printed.

    `claim` still holds, `hidden` or `generation`. By role there are the smallest form's `texts`,
    none where the finding was not seen again, and how its `answers` were read; `before` is the
    source's text as it was. `minimal`: nothing further can be left out, as far as was asked. Equal
    texts are asked once.
    """
    relation = suite.relations[unit.dimensions["relation"]]
    asked = set(unit.asks.values())
    planned = [c for c in given.plan.cases_of(unit.suite) if first_asked(c.key) in asked]
    suites = {unit.suite: suite.without_crossing()}
    elements = elements_of(source)
    kept: Sequence[Element] = elements
    known: dict[tuple[str, ...], Assessed] = {}

    def texts_with(kept: Collection[Element]) -> Mapping[str, str] | None:
        smaller = source if len(kept) == len(elements) else reduced(source, kept)
        return None if smaller is None else texts_of(smaller, relation, unit, suite.sets)

    def fails(kept: Collection[Element]) -> bool:
        """Return whether the pair is still a finding. Raises OutOfQuestions."""
        texts = texts_with(kept)
        if texts is None:
            return False
        name = tuple(texts.values())
        if name not in known:
            if (len(known) + 1) * len(planned) > most:
                raise OutOfQuestions
            cases = [each._replace(query=texts[first_asked(each.key)]) for each in planned]
            plan = TestPlan(cases=cases, units=[unit])
            [known[name]] = assess(ask(plan, suites, sut, SILENT), sut)
        return is_finding(known[name])

    minimal = False
    try:
        if fails(elements):
            for smaller in smaller_and_smaller(elements, fails):
                kept = smaller
            minimal = True
    except OutOfQuestions:
        pass
    texts = texts_with(kept) or {}
    found = known.get(tuple(texts.values()))
    roles = unit.asks.items() if found is not None and is_finding(found) else ()
    return {
        "suite": unit.suite,
        "key": unit.key,
        "claim": claim_of(unit),
        "before": source.text,
        "texts": {role: texts[key] for role, key in roles},
        "answers": {role: str(found.readings[role].value) for role, _ in roles if found},
        "minimal": minimal,
        "questions": len(known) * len(planned),
    }


def _chosen(done: FinishedRun, keys: Sequence[str], named: str | None, most: int) -> list[Assessed]:
    """Return the findings to shrink, in the order of the plan; at most so many where none is named.

    Raises UsageError for unknown keys and pairs that are no finding.
    """
    pairs = []
    for assessed in done.run.result.assessed:
        suite = done.run.given.suites[assessed.unit.suite]
        # Follow-ups that are made of a source are made of a shorter one, too.
        if (
            named in (None, suite.id)
            and isinstance(suite, MetamorphicSuite)
            and not suite.relations[assessed.unit.dimensions["relation"]].takes_pairs
        ):
            pairs.append(assessed)
    if keys:
        return [_finding(key, pairs) for key in dict.fromkeys(keys)]
    found = [each for each in pairs if claim_of(each.unit) == HIDDEN and is_finding(each)]
    if not found:
        raise UsageError(
            "the run has no finding of `intersectional/hidden` (answers that only a combination "
            "changes); name another violated pair by its key: its source's text can be shrunk too"
        )
    return found[:most]


def _finding(key: str, pairs: Sequence[Assessed]) -> Assessed:
    found = [assessed for assessed in pairs if assessed.unit.key == key]
    if not found:
        known = [assessed.unit.key for assessed in pairs if is_finding(assessed)]
        raise UsageError(
            f"the run has no pair {quoted(key)} whose follow-up is made of its source; "
            f"{suggestion(key, known[:3000])}"
        )
    if len(found) > 1:
        named = found[0].unit.suite
        raise UsageError(f"{quoted(key)} is a pair of {len(found)} suites; add --suite {named}")
    if not is_finding(found[0]):
        raise UsageError(
            f"{quoted(key)} is no finding: it is neutral, not violated or not decided, or a part "
            "of the combination changes the answer too"
        )
    return found[0]


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one finding."""
    yield f"{plain(found['key'])} in suite {plain(found['suite'])} ({found['claim']})"
    yield f"  was          {plain(found['before'])}"
    questions = found["questions"]
    if not found["texts"]:
        why = "the question limit was reached" if not questions else "its answers differ now"
        yield f"  not seen again when it was asked once more: {why}"
        return
    for role, text in found["texts"].items():
        yield f"  {role:<12} {plain(text)}"
        yield f"  {'':<12} answered: {plain(found['answers'][role])}"
    yield (
        f"  1-minimal after {questions} questions: no word and no attribute can be left out"
        if found["minimal"]
        else f"  the best of {questions} questions; more may be left out: raise --questions"
    )


@click.command(short_help="Make findings of a run as short as they still fail.")
@click.argument("run", type=shared.EXISTING_FOLDER, metavar="RUN")
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option("--suite", help="Suite of the cases, where several have them.")
@click.option(
    "--policy", type=shared.EXISTING_FILE, help="Policy of the run (default: the run's own)."
)
@click.option(
    "--findings", type=click.IntRange(1, 1000), default=5, show_default=True,
    help="Most findings, where no CASE is named.",
)  # fmt: skip
@click.option(
    "--questions", type=click.IntRange(1, 100_000), default=1000, show_default=True,
    help="Most questions to the system for one finding.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@shared.json_option
@shared.allow_python
@shared.runtime_options
def shrink(run: Path, cases: tuple[str, ...], **options: Any) -> int:
    """Leave words and attributes out of a finding's source as long as it still fails.

    Each shorter text passes the linter and is asked anew; at the end no single word and no single
    attribute can be left out (1-minimal). CASE is a violated pair of the finished run in the folder
    RUN; without one, findings of `intersectional/hidden` are taken in the order of the plan.
    """
    undated = replace(shared.runtime_of(options), today=None)
    done = replay(run, options["policy"], undated)
    loaded, questions = done.loaded, options["questions"]
    system = loaded.policy.system
    if not kind_of(system).capabilities().repeatable:
        raise UsageError(
            f"the policy's system is {kind_of(system).id}: it cannot be asked about shorter texts; "
            "name a policy of the same suites whose system answers, with --policy"
        )
    chosen = _chosen(done, cases, options["suite"], options["findings"])
    say(
        f"shrinks {len(chosen)} finding{'' if len(chosen) == 1 else 's'}; asks the system at most "
        f"{questions * len(chosen):,} questions"
    )
    composition = Composition(loaded, undated, progress_for(quiet=options["quiet"]))
    redact = loaded.policy.redact

    given = done.run.given

    def results() -> Iterator[dict[str, Any]]:
        """Yield each finding with its texts cut or hashed as the policy's `redact` asks."""
        with composition.serving():
            for assessed in chosen:
                suite = given.suites[assessed.unit.suite]
                assert isinstance(suite, MetamorphicSuite)  # noqa: S101 (chosen so)
                source = next(each for each in suite.sources if each.id == assessed.unit.cluster)
                asked = (assessed.unit, source, suite, given, composition.system, questions)
                found = shrunk(*asked)
                texts = {role: redacted(text, redact) for role, text in found["texts"].items()}
                yield found | {"before": redacted(found["before"], redact), "texts": texts}

    if options["shape"] == "json":
        shared.echo_json(list(results()))
        return ExitCode.PASS
    for found in results():
        click.echo("\n".join(_lines(found)))
    return ExitCode.PASS
