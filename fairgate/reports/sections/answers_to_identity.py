"""What an identity is told and others are not: sentences, words, facts, answers side by side."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairgate.domain.outcomes import Better, Outcome, RuleResult, TermFinding
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Table
from fairgate.metrics.sentences import CORE, RECURRING, STRANGE, STRANGEST
from fairgate.relations.oracles.text import spoken
from fairgate.relations.sentences.facts import Fact
from fairgate.relations.sentences.masking import asker
from fairgate.relations.sentences.overused import overused
from fairgate.relations.sentences.splitting import sentences, words
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import Inline, Kind, Span, Tone, columns, figure, name
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.material import Material
from fairgate.reports.sections import affected
from fairgate.suites.metamorphic.plan import SOURCE
from fairgate.suites.metamorphic.sentences import changed_facts, read_text

_MOST_SENTENCES, _MOST_FACTS, _MOST_ANSWERS, _MOST_IDENTITIES = 3, 5, 3, 3
_QUOTED = 60
_ALIKE = 0.6
"""Common share of the words from which two sentences say the same."""


@dataclass(frozen=True)
class AnswersToIdentity:
    """The answers to one identity beside the neutral ones, from a run's table and executions."""

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

    def neutral(self, row: int) -> list[int]:
        """List the rows of the neutral answers to the same source."""
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
        source = next(unit.asks[SOURCE] for unit in units if unit.key == key)
        return self.material.case(self.suite, source).varied

    def new_sentence(self, row: int) -> Span | None:
        """Quote the strangest sentence, if it is strange or recurs."""
        values = self.table.values
        is_new = any(values[name][row] > 0 for name in (RECURRING, STRANGE) if name in values)
        text = self.strangest(row)
        return quotation(self.material, text) if is_new and text else None

    def says_alone(self, row: int) -> bool:
        """Whether no neutral answer to the source holds the strangest sentence or one like it."""
        text = self.strangest(row)
        others = (s for other in self.neutral(row) for s in sentences(self.response(other)))
        return not any(is_alike(text, sentence) for sentence in others)

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
        """Choose the neutral answer that has most words in common with the other neutral ones."""
        neutral = [other for other in self.neutral(row) if self.response(other)]
        if not neutral:
            return None
        vocabularies = {other: set(words(self.response(other))) for other in neutral}
        common = Counter(word for vocabulary in vocabularies.values() for word in vocabulary)

        def typical(other: int) -> tuple[float, str]:
            vocabulary = vocabularies[other]
            total = sum(common[word] for word in vocabulary)
            mean = total / len(vocabulary) if vocabulary else 0.0
            return -round(mean, 6), self.table.keys[other]

        return min(neutral, key=typical)


def answered(material: Material, suite: str, key: str) -> str:
    """Give what the answer to a follow-up says beside thinking; empty where there is none."""
    execution = material.run.executions.get((suite, key))
    response = (execution.response if execution is not None else None) or ""
    return spoken(response, material.result.gate_input.suites[suite].thinking)


def failing(material: Material) -> list[tuple[RuleResult, TermFinding]]:
    """List the rules on answers in sentences that failed, each with the identities it names."""
    failures = []
    for rule in material.result.rules:
        metric = BY_ID.get(rule.metric)
        if (
            metric is None
            or not metric.compares_terms_with_neutral
            or rule.outcome is not Outcome.FAIL
        ):
            continue
        if "identity" not in rule.failed:
            continue
        finding = next(
            (
                finding
                for finding in material.result.beside_neutral
                if (finding.metric, finding.suite, dict(finding.where))
                == (rule.metric, rule.suite, dict(rule.where))
            ),
            None,
        )
        sign = -1.0 if metric.better is Better.HIGHER else 1.0
        limit = rule.bounds.get("max", 0.0)
        for rank, term in enumerate(finding.terms if finding else ()):
            if sign * term.difference > limit and (not rank or term.p_corrected <= _CERTAIN):
                failures.append((rule, term))
    return failures


_CERTAIN = 0.05


def clearest(material: Material, most: int) -> list[tuple[AnswersToIdentity, int]]:
    """List rows that show what the leading rule failed for, the clearest first.

    They are of the identity that the title names; none where that rule reads no sentences.
    """
    rule = affected.leading(material.result)
    term = next((term for of, term in failing(material) if of is rule), None)
    if rule is None or term is None:
        return []
    own = AnswersToIdentity(material, rule.suite, term.category, term.term)
    shows = own.table.values[BY_ID[rule.metric].column]
    return [(own, row) for row in own.clearest if shows[row] > 0][:most]


def example(material: Material) -> Inline:
    """Say what the clearest answer holds, in a sentence; empty where nothing is told otherwise."""
    for own, row in clearest(material, 1):
        who = name(material.identity(own.suite, own.term), Tone.STRONG)
        question = _quote(material, own.question(row))
        beside = own.beside(row)
        if new := own.new_sentence(row):
            rest = "; no neutral phrase is." if own.says_alone(row) else "."
            return ["For example, asked ", question, ", ", who, " is told ", new, rest]
        if beside is not None:
            answers = (quotation(material, own.response(number)) for number in (row, beside))
            own_answer, usual = answers
            return [
                "For example, asked ", question, ", ", who, " is told ", own_answer,
                ", a neutral phrase ", usual, ".",
            ]  # fmt: skip
    return ""


def case_items(material: Material, most: int) -> list[blocks.CaseItem]:
    """Give the clearest answers, each beside a neutral one; what the other lacks is marked."""
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
            head=name("A neutral phrase", Tone.STRONG), text=question,
            answer=marked(material, usual, answer),
        ),
        blocks.CaseSide(head=who, text=question, answer=marked(material, answer, usual)),
    ]  # fmt: skip
    has_explain = material.options.has_explain
    run = f"fairgate explain {shlex.quote(material.options.run_path)} {shlex.quote(key)}"
    return blocks.CaseItem(
        title=[who, " is told ", new] if new else [who, " is told something else"],
        text=question,
        facts=[side.answer for side in sides],
        command=blocks.command(run) if has_explain else blocks.code(key),
        sides=sides,
    )


def rates(material: Material, metric: str, suite: str) -> dict[str, float]:
    """Map each identity of a suite to the rate of its answers that show a reading."""
    by_identity: dict[str, float] = {}
    for finding in material.result.beside_neutral:
        if (finding.metric, finding.suite, dict(finding.where)) == (metric, suite, {}):
            for term in finding.terms:
                most = max(by_identity.get(term.term, 0.0), term.rate or 0.0)
                by_identity[term.term] = most
    return by_identity


def of_phrases(material: Material, metric: str, suite: str) -> list[float]:
    """List the rate of each neutral phrase of a suite."""
    table = material.run.tables[suite]
    column = table.values.get(BY_ID[metric].column)
    if column is None:
        return []
    by_phrase: dict[str, list[float]] = {}
    terms = table.dimension("term")
    for row in np.flatnonzero(table.control & ~np.isnan(column)).tolist():
        by_phrase.setdefault(terms[row], []).append(float(column[row]))
    return [sum(values) / len(values) for values in by_phrase.values()]


def many(term: TermFinding) -> str:
    """Say how many of an identity's answers show a reading: `23 of 58`."""
    return f"{round((term.rate or 0.0) * term.decided):,} of {term.decided:,}"


def event(material: Material, rule: RuleResult, term: TermFinding) -> Inline:
    """Say what an identity's answers do: `23 of 58 say "please call us"`, `4 of 40 refuse`."""
    metric = BY_ID[rule.metric]
    if rule.metric == RECURRING:
        texts = AnswersToIdentity(material, rule.suite, term.category, term.term).recurring
        if texts:
            return [figure(many(term), Tone.STRONG), " say ", quotation(material, texts[0][0])]
    return [figure(many(term), Tone.STRONG), f" {metric.event}"]


def quotation(material: Material, text: str) -> Span:
    """Cut or hash a sentence to what a title holds; in quotation marks, if it can be read."""
    if material.options.redact == "hash":
        return _quote(material, text)
    line = " ".join(text.split()).rstrip(".")
    cut = excerpt(redacted(line, material.options.redact), _QUOTED)
    return Span(f"“{cut}”", Kind.QUOTE)


def told(material: Material) -> Iterator[blocks.Section]:
    """Yield a section for what identities are told, where a rule on it failed."""
    by_identity: dict[tuple[str, str, str], list[tuple[RuleResult, TermFinding]]] = {}
    for rule, term in failing(material):
        by_identity.setdefault((rule.suite, term.category, term.term), []).append((rule, term))
    contents: list[blocks.Block] = []
    for number, ((suite, category, identity), failures) in enumerate(by_identity.items()):
        if number == _MOST_IDENTITIES:
            rest = figures.count(len(by_identity) - number, "other identity", "other identities")
            contents.append(blocks.Text(lines=[f"{rest} in `run.json`."], style=blocks.Style.SMALL))
            break
        contents += _of_identity(
            material, AnswersToIdentity(material, suite, category, identity), failures
        )
    if contents:
        yield blocks.Section(
            id="told",
            title="What they are told",
            blocks=contents,
            chapter=blocks.Chapter.WHO,
            worth=90,
        )


def _of_identity(
    material: Material, own: AnswersToIdentity, failures: Sequence[tuple[RuleResult, TermFinding]]
) -> Iterator[blocks.Block]:
    who = name(material.identity(own.suite, own.term), Tone.STRONG)
    by_metric = {rule.metric: (rule, term) for rule, term in reversed(failures)}
    lines: list[Inline] = [
        [who, ": ", *blocks.spans(event(material, rule, term)),
         "; neutral phrases ", figure(f"{100 * (term.neutral or 0.0):.1f} %"), "."]
        for rule, term in reversed(by_metric.values())
    ]  # fmt: skip
    yield blocks.Text(lines=lines, style=blocks.Style.LIST)
    if texts := own.recurring[:_MOST_SENTENCES]:
        yield blocks.Table(
            label=f"Sentences that recur for {own.term}",
            columns=columns("sentence that recurs", numbers=["answers"]),
            rows=[
                blocks.Row(cells=[_quote(material, text), figure(f"{count:,}")])
                for text, count in texts
            ],
        )
    yield from _side_by_side(material, own)
    yield from _words_and_facts(material, own)


def _quote(material: Material, text: str, tone: Tone = Tone.NORMAL) -> Span:
    return Span(excerpt(redacted(text, material.options.redact)), Kind.QUOTE, tone)


def _side_by_side(material: Material, own: AnswersToIdentity) -> Iterator[blocks.Block]:
    rows = []
    for row in own.clearest[:_MOST_ANSWERS]:
        beside = own.beside(row)
        if beside is None:
            continue
        answer, usual = sentences(own.response(row)), sentences(own.response(beside))
        rows.append(
            blocks.Row(
                cells=[
                    _quote(material, own.question(row)),
                    marked(material, answer, usual),
                    marked(material, usual, answer),
                ]
            )
        )
    if rows:
        yield blocks.Table(
            label=f"Answers side by side for {own.term}",
            columns=columns(
                "question", [name(material.identity(own.suite, own.term)), " is told"],
                "A neutral phrase is told",
            ),
            rows=rows,
            caption="Marked is what the other answer lacks",
            is_prose=True,
        )  # fmt: skip


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


def _words_and_facts(material: Material, own: AnswersToIdentity) -> Iterator[blocks.Block]:
    if material.options.redact == "hash":
        return
    pools, lost = [], Counter[Fact]()
    table = own.table
    phrase = asker(material.identity(own.suite, own.term))
    for row in own.rows:
        neutral = own.neutral(row)
        answers = [own.response(other) for other in neutral]
        terms = [material.identity(own.suite, table.dimension("term")[other]) for other in neutral]
        others = [asker(term).mask(text) for term, text in zip(terms, answers, strict=True)]
        pools.append((phrase.mask(own.response(row)), others))
        texts = [read_text(text, term) for term, text in zip(terms, answers, strict=True)]
        text = read_text(own.response(row), material.identity(own.suite, own.term))
        if texts:
            lost.update(changed_facts(text, texts)[0])
    rows: list[tuple[Inline, Inline]] = []
    if stand_out := overused(pools):
        rows.append(("words that stand out", blocks.joined([name(word) for word, _ in stand_out])))
    if lost:
        facts: list[Inline] = [
            [name(f"{fact.kind} {fact.value}"), f" ({count})"]
            for fact, count in lost.most_common(_MOST_FACTS)
        ]
        rows.append(("facts that it lacks", blocks.joined(facts)))
    if rows:
        yield blocks.KeyValues(rows=rows)
