"""What an identity is told and control prompts are not: the clearest answers, side by side."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairgate.metrics.metric import Table
from fairgate.metrics.sentences import CORE, RECURRING, STRANGE, STRANGEST
from fairgate.relations.oracles.text import spoken
from fairgate.relations.sentences.splitting import sentences, words
from fairgate.reports import blocks
from fairgate.reports.blocks import Inline, Kind, Span, Tone, columns, figure, name
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.material import Material
from fairgate.reports.sections import parity
from fairgate.suites.metamorphic.plan import SOURCE

_OUTCOME = "sentences"
_MOST_SENTENCES, _MOST_IDENTITIES = 3, 3
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

    def new_sentence(self, row: int) -> Span | None:
        """Quote the strangest sentence, if it is strange or recurs."""
        values = self.table.values
        is_new = any(values[name][row] > 0 for name in (RECURRING, STRANGE) if name in values)
        text = self.strangest(row)
        return quotation(self.material, text) if is_new and text else None

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

    @cached_property
    def recurring(self) -> list[tuple[str, int]]:
        """The sentences that recur, the one that stands for all first, with how many say it."""
        values = self.table.values
        if CORE not in values or STRANGEST not in values:
            return []
        alike = [row for row in self.rows if values[RECURRING][row] > 0]
        first = [row for row in alike if values[CORE][row] > 0]
        counts = Counter(" ".join(self.strangest(row).split()) for row in alike)
        centre = " ".join(self.strangest(first[0]).split()) if first else ""
        ordered = sorted(counts, key=lambda text: (-counts[text], text != centre, text))
        return [(text, counts[text]) for text in ordered if text]

    @cached_property
    def clearest(self) -> list[int]:
        """The rows that show it best: those that recur, then the strange, each source once."""
        values = self.table.values
        absent = np.zeros(len(self.table.keys))
        recurs, strange = (values.get(name, absent) for name in (RECURRING, STRANGE))

        def worth(row: int) -> tuple[float, float, str]:
            return -recurs[row], -strange[row], self.table.keys[row]

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


def clearest(material: Material, most: int) -> list[tuple[AnswersToIdentity, int]]:
    """List rows that show what sentences fail for, the clearest first; of whom is named first."""
    for one in parity.failing(material):
        if one.outcome.id == _OUTCOME:
            for category, term in one.node.who:
                own = AnswersToIdentity(material, one.rule.suite, category, term)
                shows = own.table.values[one.node.column]
                rows = [row for row in own.clearest if shows[row] > 0] or own.clearest
                if rows:
                    return [(own, row) for row in rows[:most]]
        return []
    return []


def example(material: Material) -> Inline:
    """Say what the clearest answer holds, in a sentence; empty where nothing is told otherwise."""
    for own, row in clearest(material, 1):
        who = name(material.identity(own.suite, own.term), Tone.STRONG)
        question = _quote(material, own.question(row))
        beside = own.beside(row)
        if new := own.new_sentence(row):
            rest = "; no control prompt is." if own.says_alone(row) else "."
            return ["For example, asked ", question, ", ", who, " is told ", new, rest]
        if beside is not None:
            own_answer, usual = (quotation(material, own.response(each)) for each in (row, beside))
            told: blocks.Words = ["For example, asked ", question, ", ", who, " is told "]
            return [*told, own_answer, ", a control prompt ", usual, "."]
    return ""


def case_items(material: Material, most: int) -> list[blocks.CaseItem]:
    """Give the clearest answers, each beside a usual one; what the other lacks is marked."""
    return [_case(material, own, row) for own, row in clearest(material, most)]


def _case(material: Material, own: AnswersToIdentity, row: int) -> blocks.CaseItem:
    who = name(material.identity(own.suite, own.term), Tone.STRONG)
    key, beside = own.table.keys[row], own.beside(row)
    new = own.new_sentence(row)
    question = _quote(material, own.question(row))
    answer = sentences(own.response(row))
    usual = sentences(own.response(beside)) if beside is not None else []
    sides = [
        blocks.CaseSide(
            head=name("A control prompt", Tone.STRONG), text=question,
            answer=marked(material, usual, answer),
        ),
        blocks.CaseSide(head=who, text=question, answer=marked(material, answer, usual)),
    ]  # fmt: skip
    options = material.options
    run = f"{options.called('explain')} {shlex.quote(options.run_path)} {shlex.quote(key)}"
    return blocks.CaseItem(
        title=[who, " is told ", new] if new else [who, " is told something else"],
        text=question,
        facts=[side.answer for side in sides],
        command=blocks.command(run) if options.has_explain else blocks.code(key),
        sides=sides,
    )


def quotation(material: Material, text: str) -> Span:
    """Cut or hash a sentence to what a title holds; in quotation marks, if it can be read."""
    if material.options.redact == "hash":
        return _quote(material, text)
    line = " ".join(text.split()).rstrip(".")
    cut = excerpt(redacted(line, material.options.redact), _QUOTED)
    return Span(f"“{cut}”", Kind.QUOTE)


def told(material: Material) -> Iterator[blocks.Section]:
    """Yield the sentences that recur for whom sentences fail, with how many answers hold each."""
    contents: list[blocks.Block] = []
    for suite, (category, term) in _whom(material)[:_MOST_IDENTITIES]:
        own = AnswersToIdentity(material, suite, category, term)
        if texts := own.recurring[:_MOST_SENTENCES]:
            who = name(material.identity(suite, term))
            contents.append(
                blocks.Table(
                    label=f"Sentences that recur for {term}",
                    columns=columns(["sentence that recurs for ", who], numbers=["answers"]),
                    rows=[
                        blocks.Row(cells=[_quote(material, text), figure(f"{count:,}")])
                        for text, count in texts
                    ],
                )
            )
    if contents:
        chapter = blocks.Chapter.WHO
        yield blocks.Section(
            id="told", title="What they are told", blocks=contents, chapter=chapter, worth=80
        )


def _whom(material: Material) -> list[tuple[str, tuple[str, str]]]:
    failing = [one for one in parity.failing(material) if one.outcome.id == _OUTCOME]
    return list(dict.fromkeys((one.rule.suite, who) for one in failing for who in one.node.who))


def _quote(material: Material, text: str, tone: Tone = Tone.NORMAL) -> Span:
    return Span(excerpt(redacted(text, material.options.redact)), Kind.QUOTE, tone)


def marked(material: Material, answer: Sequence[str], other: Sequence[str]) -> Inline:
    """Quote sentences; those that say what the other answer lacks stand out."""
    left = 4 * 160
    line: blocks.Words = []
    for sentence in answer:
        if left <= 0:
            line.append(" …")
            break
        has_like = any(is_alike(sentence, another) for another in other)
        left -= len(sentence)
        line += [" "] if line else []
        line.append(_quote(material, sentence, Tone.NORMAL if has_like else Tone.CHANGED))
    return line or "(nothing)"


def is_alike(left: str, right: str) -> bool:
    """Whether two sentences have most of their words in common."""
    lefts, rights = set(words(left)), set(words(right))
    return bool(lefts | rights) and len(lefts & rights) >= _ALIKE * len(lefts | rights)
