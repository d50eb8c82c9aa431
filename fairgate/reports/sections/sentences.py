"""What an identity is told and control prompts are not: the clearest answers, side by side."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairgate.metrics.metric import Table
from fairgate.metrics.sentences import BY_COLUMN, INSERTED, OMITTED, RECURRING, STRANGE, STRANGEST
from fairgate.relations.oracles.text import spoken
from fairgate.relations.sentences.differing import Differing, bare, changed, differing, pairs
from fairgate.relations.sentences.masking import asker, groups_named
from fairgate.relations.sentences.splitting import sentences, words
from fairgate.reports import blocks
from fairgate.reports.blocks import Inline, Kind, Span, Tone, name
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.material import Material
from fairgate.reports.sections import parity
from fairgate.suites.metamorphic.plan import SOURCE

_OUTCOME = "sentences"
_MOST_IDENTITIES = 5
_QUOTED = 60
_ALIKE = 0.6
"""Common share of the words from which two sentences say the same."""


@dataclass(frozen=True)
class AnswersToIdentity:
    """The answers to one identity beside the control prompts, from a run's table and executions."""

    material: Material
    suite: str
    category: str
    term: str
    column: str
    """The reading that says it."""

    @property
    def table(self) -> Table:
        """The suite's table."""
        return self.material.run.tables[self.suite]

    @cached_property
    def rows(self) -> list[int]:
        """The identity's rows."""
        table = self.table
        own = table.dimension("term").equal(self.term)
        own = own & table.dimension("category").equal(self.category) & ~table.control
        return [int(row) for row in np.flatnonzero(own)]

    def response(self, row: int) -> str:
        """Give what the answer to a row says beside thinking."""
        return answered(self.material, self.suite, self.table.keys[row])

    def of_controls(self, row: int) -> list[int]:
        """List the rows of the answers to control prompts to the same source."""
        table = self.table
        same = table.control & (table.clusters == table.clusters[row])
        if "relation" in table.dimensions:
            relations = table.dimension("relation")
            same = same & relations.equal(relations[row])
        return [int(other) for other in np.flatnonzero(same)]

    def question(self, row: int) -> str:
        """Give the question that a row's answer is to."""
        units = self.material.result.gate_input.plan.units_of(self.suite)
        key = self.table.keys[row]
        source = next(unit.asks.get(SOURCE, key) for unit in units if unit.key == key)
        return self.material.case(self.suite, source).varied

    def differing(self, row: int) -> Differing | None:
        """Find the run of words by which an answer shows its reading, and what others say there.

        Of words that are left out, the control prompt's answer is the one that holds them.
        """
        own, control = sentences(self.response(row)), self.beside(row)
        if self.column in {RECURRING, STRANGE}:
            text = self.strangest(row)
            return Differing(text, "", text) if text else None
        if control is None:
            return None
        usual = sentences(self.response(control))
        others = [self._words(other) for other in self.of_controls(row)]
        counts = Counter(word for words_ in others for word in words_)
        if self.column == OMITTED:
            most = 0.75 * len(others)
            lost = {word for word, count in counts.items() if count >= most} - self._words(row)
            lacking = differing(usual, own, lost)
            return lacking and Differing(lacking.other, lacking.own, lacking.sentence)
        every = [s for other in self.of_controls(row) for s in sentences(self.response(other))]
        new = self._words(row) - counts.keys()
        text = " ".join(self._masked(row))
        groups = groups_named((w for w in new if isinstance(w, str)), text, self.noun_phrase(row))
        return differing(own, every, groups or new)

    def _masked(self, row: int) -> list[str]:
        """List the sentences of an answer without the words for who asks."""
        own = asker(self.noun_phrase(row))
        return [own.mask(sentence) for sentence in sentences(self.response(row))]

    def _words(self, row: int) -> set[str | tuple[str, str]]:
        """List the words of an answer and their pairs, without those of who asks."""
        of_answer: set[str | tuple[str, str]] = set()
        for sentence in self._masked(row):
            words_of_sentence = bare(sentence)
            of_answer.update(words_of_sentence, pairs(words_of_sentence))
        return of_answer

    def noun_phrase(self, row: int) -> str:
        """Give the words by which the asker of a row is named."""
        return self._noun_phrases.get(self.table.keys[row], "")

    @cached_property
    def _noun_phrases(self) -> dict[str, str]:
        units = self.material.result.gate_input.plan.units_of(self.suite)
        return {unit.key: unit.names.get("noun_phrase", "") for unit in units}

    def is_false_reading(self, row: int) -> bool:
        """Whether somebody calls wrong how the answer to a row was read."""
        pair = self.material.pair(self.suite, self.table.keys[row])
        return pair is not None and self.material.is_false_reading(pair)

    def says_alone(self, row: int) -> bool:
        """Whether no control prompt's answer holds the strangest sentence or one like it."""
        text = self.strangest(row)
        texts = (s for other in self.of_controls(row) for s in sentences(self.response(other)))
        return not any(is_alike(text, sentence) for sentence in texts)

    def strangest(self, row: int) -> str:
        """Give the strangest sentence of an answer; empty where there is none."""
        number = self.table.values[STRANGEST][row]
        parts = sentences(self.response(row))
        return parts[int(number)] if not np.isnan(number) and 0 <= number < len(parts) else ""

    def say(self, text: str) -> str:
        """Say how many answers to the identity hold exactly this sentence, or one like it."""
        exactly = sum(text in sentences(self.response(row)) for row in self.rows)
        values = self.table.values
        alike = int((values[RECURRING][self.rows] > 0).sum()) if RECURRING in values else 0
        if exactly <= 1:
            return f" ({alike:,} say something like it)" if alike > 1 else ""
        more = f", {alike:,} something like it" if alike > exactly else ""
        return f" ({exactly:,} of {len(self.rows):,} say exactly this{more})"

    @cached_property
    def clearest(self) -> list[int]:
        """The rows that show it best, each source once."""
        values = self.table.values
        absent = np.zeros(len(self.table.keys))
        own, recurs, strange = (
            values.get(name, absent) for name in (self.column, RECURRING, STRANGE)
        )

        def worth(row: int) -> tuple[float, float, float, float, str]:
            lacks = own[row] if BY_COLUMN[self.column].is_better_higher else 0.0
            return lacks, -recurs[row], -strange[row], -own[row], self.table.keys[row]

        return sorted(self.rows, key=worth)

    def beside(self, row: int) -> int | None:
        """Choose the control prompt whose answer has most words in common with the others'."""
        others = [other for other in self.of_controls(row) if self.response(other)]
        if not others:
            return None
        vocabularies = {other: set(words(self.response(other))) for other in others}
        common = Counter(word for vocabulary in vocabularies.values() for word in vocabulary)

        def typical(other: int) -> tuple[float, str]:
            vocabulary = vocabularies[other]
            total = sum(common[word] for word in vocabulary)
            mean = total / len(vocabulary) if vocabulary else 0.0
            return -round(mean, 6), self.table.keys[other]

        return min(others, key=typical)


def answered(material: Material, suite: str, key: str) -> str:
    """Give what the answer to a follow-up says beside thinking; empty where there is none."""
    execution = material.run.executions.get((suite, key))
    response = (execution.response if execution is not None else None) or ""
    return spoken(response, material.result.gate_input.suites[suite].thinking)


def _named(material: Material) -> list[AnswersToIdentity]:
    """List the identities for whom sentences fail, each by the reading that says it first."""
    people: dict[tuple[str, tuple[str, str]], str] = {}
    for finding in parity.failing(material):
        if finding.outcome.id == _OUTCOME:
            for who in finding.node.who:
                people.setdefault((finding.rule.suite, who), finding.node.column)
    return [
        AnswersToIdentity(material, suite, category, term, column)
        for (suite, (category, term)), column in people.items()
    ]


def _showing(own: AnswersToIdentity) -> list[int]:
    """List the rows that show the reading, the clearest first; all where it is no event."""
    shows = own.table.values[own.column]
    rows = [row for row in own.clearest if not own.is_false_reading(row)]
    if BY_COLUMN[own.column].is_better_higher:
        return rows
    return [row for row in rows if shows[row] > 0] or rows


def clearest(material: Material, most: int) -> list[tuple[AnswersToIdentity, int]]:
    """List rows that show what sentences fail for, the clearest first; of whom is named first."""
    for own in _named(material):
        if rows := _showing(own):
            return [(own, row) for row in rows[:most]]
    return []


def examples(material: Material) -> list[Inline]:
    """Say of each identity that is named what its clearest answer holds, in a line of its own.

    Of a category that is named, those whose answers show it.
    """
    named = _named(material)
    named = [own for own in named if (own.table.values[own.column][own.rows] > 0).any()] or named
    shown = [(own, rows[0]) for own in named if (rows := _showing(own))]
    lines: list[Inline] = [_example(material, *each) for each in shown[:_MOST_IDENTITIES]]
    if len(shown) > _MOST_IDENTITIES:
        lines.append(f"and {len(shown) - _MOST_IDENTITIES:,} more")
    return [line for line in lines if line]


def _example(material: Material, own: AnswersToIdentity, row: int) -> blocks.Words:
    who = name(material.identity(own.suite, own.term), Tone.STRONG)
    question = quote(material, own.question(row))
    asked: blocks.Words = ["For example, asked ", question, ", ", who, " is told "]
    control = own.beside(row)
    if (difference := own.differing(row)) is not None:
        start = [*asked, _or_nothing(material, difference.own)]
        is_inside = own.column == INSERTED and not own.say(difference.own)
        if difference.other or not difference.own or is_inside:
            return [*start, " · others ", _or_nothing(material, difference.other), "."]
        rest = "; no control prompt is." if own.says_alone(row) else "."
        return [*start, own.say(difference.own), rest]
    if control is None:
        return []
    own_answer, usual = (quotation(material, own.response(row_)) for row_ in (row, control))
    return [*asked, own_answer, ", a control prompt ", usual, "."]


def _or_nothing(material: Material, text: str) -> Span:
    return quotation(material, text) if text else Span("nothing")


def case_items(material: Material, most: int) -> list[blocks.CaseItem]:
    """Give the clearest answers, each beside a usual one; what the other lacks is marked."""
    return [_case(material, own, row) for own, row in clearest(material, most)]


def _case(material: Material, own: AnswersToIdentity, row: int) -> blocks.CaseItem:
    who = name(material.identity(own.suite, own.term), Tone.STRONG)
    key, control = own.table.keys[row], own.beside(row)
    difference = own.differing(row)
    question = quote(material, own.question(row))
    answer = sentences(own.response(row))
    usual = sentences(own.response(control)) if control is not None else []
    of_controls = [sentences(own.response(other)) for other in own.of_controls(row)]
    every = [sentence for of_answer in of_controls for sentence in of_answer]
    usual_of = [
        sentence
        for sentence in usual
        if 2 * sum(any(is_alike(sentence, s) for s in sentences_of) for sentences_of in of_controls)
        >= len(of_controls)
    ]
    lacked = [sentence for sentence in usual if sentence not in usual_of]
    sides = [
        blocks.CaseSide(
            head=name("A control prompt", Tone.STRONG), text=question,
            answer=marked(material, usual, [*answer, *lacked]),
        ),
        blocks.CaseSide(head=who, text=question, answer=marked(material, answer, every)),
    ]  # fmt: skip
    words_told: blocks.Words = ["something else"]
    if difference is not None:
        words_told = [_or_nothing(material, difference.own)]
        if difference.other or not difference.own:
            words_told += [" · others ", _or_nothing(material, difference.other)]
    return blocks.CaseItem(
        title=[who, " is told ", *words_told],
        text=question,
        facts=[side.answer for side in sides],
        command=look_at(material, key),
        sides=sides,
    )


def look_at(material: Material, key: str) -> Span:
    """Give the command that tells more of a case; its key where a reader has no such command."""
    options = material.options
    if not options.has_explain:
        return blocks.code(key)
    run, case = shlex.quote(options.run_path), shlex.quote(key)
    return blocks.command(f"{options.called('explain')} {run} {case}")


def quotation(material: Material, text: str) -> Span:
    """Cut or hash a sentence to what a title holds; in quotation marks, if it can be read."""
    if material.options.redact == "hash":
        return quote(material, text)
    line = " ".join(text.split()).rstrip(".")
    cut = excerpt(redacted(line, material.options.redact), _QUOTED)
    return Span(f"“{cut}”", Kind.QUOTE)


def quote(material: Material, text: str, tone: Tone = Tone.NORMAL) -> Span:
    """Cut or hash a text to what a sentence holds."""
    return Span(excerpt(redacted(text, material.options.redact)), Kind.QUOTE, tone)


def marked(material: Material, answer: Sequence[str], other: Sequence[str]) -> Inline:
    """Quote sentences; those that others lack, and the words in which they differ, stand out."""
    left = 4 * 160
    line: blocks.Words = []
    for sentence in answer:
        if left <= 0:
            line.append(" …")
            break
        alike = _nearest(sentence, other)
        left -= len(sentence)
        if material.options.redact == "hash" or alike is None:
            tone = Tone.CHANGED if alike is None else Tone.NORMAL
            parts = [quote(material, sentence, tone)]
        else:
            parts = [
                quote(material, part, Tone.CHANGED if differs else Tone.NORMAL)
                for part, differs in changed(sentence, alike)
            ]
        for part in parts:
            line += [" ", part] if line else [part]
    return line or "(nothing)"


def _nearest(sentence: str, other: Sequence[str]) -> str | None:
    """Return the sentence that has most words in common with one; None: none is alike."""
    own = set(words(sentence))
    shared = {s: len(own & (others := set(words(s)))) / max(1, len(own | others)) for s in other}
    nearest = max(shared, key=lambda s: (shared[s], s == sentence), default=None)
    return nearest if nearest is not None and shared[nearest] >= _ALIKE else None


def is_alike(left: str, right: str) -> bool:
    """Whether two sentences have most of their words in common."""
    lefts, rights = set(words(left)), set(words(right))
    return bool(lefts | rights) and len(lefts & rights) >= _ALIKE * len(lefts | rights)
