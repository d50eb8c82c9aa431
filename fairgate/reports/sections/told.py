"""What an identity is told and others are not: sentences, words, facts, answers side by side."""

from __future__ import annotations

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
from fairgate.suites.metamorphic.plan import SOURCE
from fairgate.suites.metamorphic.sentences import changed_facts, read_text

_MOST_SENTENCES, _MOST_FACTS, _MOST_SHOWN, _MOST_IDENTITIES = 3, 5, 3, 3
_QUOTED = 60
_ALIKE = 0.6
"""Common share of the words from which two sentences say the same."""


@dataclass(frozen=True)
class Told:
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
        return [int(each) for each in np.flatnonzero(same)]

    def strangest(self, row: int) -> str:
        """Give the strangest sentence of an answer; empty where there is none."""
        place = self.table.values[STRANGEST][row]
        parts = sentences(self.response(row))
        return parts[int(place)] if not np.isnan(place) and 0 <= place < len(parts) else ""

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
    def shown(self) -> list[int]:
        """The rows that show it best: those that recur, then the strange, each source once."""
        values = self.table.values
        absent = np.zeros(len(self.table.keys))
        recurs, strange = (values.get(name, absent) for name in (RECURRING, STRANGE))

        def worth(row: int) -> tuple[float, float, str]:
            return -recurs[row], -strange[row], self.table.keys[row]

        return sorted(self.rows, key=worth)

    def beside(self, row: int) -> int | None:
        """Choose the neutral answer that has most words in common with the other neutral ones."""
        neutral = [each for each in self.neutral(row) if self.response(each)]
        if not neutral:
            return None
        texts = {each: set(words(self.response(each))) for each in neutral}
        common = Counter(word for text in texts.values() for word in text)

        def typical(each: int) -> tuple[float, str]:
            held = texts[each]
            mean = sum(common[word] for word in held) / len(held) if held else 0.0
            return -round(mean, 6), self.table.keys[each]

        return min(neutral, key=typical)


def answered(material: Material, suite: str, key: str) -> str:
    """Give what the answer to a follow-up says beside thinking; empty where there is none."""
    execution = material.run.executions.get((suite, key))
    response = (execution.response if execution is not None else None) or ""
    return spoken(response, material.result.given.suites[suite].thinking)


def failing(material: Material) -> list[tuple[RuleResult, TermFinding]]:
    """List the rules on answers in sentences that failed, each with the identities it names."""
    found = []
    for rule in material.result.rules:
        metric = BY_ID.get(rule.metric)
        if metric is None or not metric.is_against_neutral or rule.outcome is not Outcome.FAIL:
            continue
        if "identity" not in rule.failed:
            continue
        finding = next(
            (
                each
                for each in material.result.beside_neutral
                if (each.metric, each.suite, dict(each.where))
                == (rule.metric, rule.suite, dict(rule.where))
            ),
            None,
        )
        sign = -1.0 if metric.better is Better.HIGHER else 1.0
        limit = rule.bounds.get("max", 0.0)
        for place, term in enumerate(finding.terms if finding else ()):
            if sign * term.difference > limit and (not place or term.p_corrected <= _CERTAIN):
                found.append((rule, term))
    return found


_CERTAIN = 0.05


def many(term: TermFinding) -> str:
    """Say how many of an identity's answers show a reading: `23 of 58`."""
    return f"{round((term.rate or 0.0) * term.decided):,} of {term.decided:,}"


def event(material: Material, rule: RuleResult, term: TermFinding) -> Inline:
    """Say what an identity's answers do: `23 of 58 say "please call us"`, `4 of 40 refuse`."""
    metric = BY_ID[rule.metric]
    if rule.metric == RECURRING:
        texts = Told(material, rule.suite, term.category, term.term).recurring
        if texts:
            quoted = Span(quotation(material, texts[0][0].rstrip(".")), Kind.QUOTE)
            return [figure(many(term), Tone.STRONG), " say ", quoted]
    return [figure(many(term), Tone.STRONG), f" {metric.event}"]


def quotation(material: Material, text: str) -> str:
    """Cut or hash a sentence to what a title holds."""
    return excerpt(redacted(" ".join(text.split()), material.options.redact), _QUOTED)


def told(material: Material) -> Iterator[blocks.Section]:
    """Yield a section for what identities are told, where a rule on it failed."""
    by_identity: dict[tuple[str, str, str], list[tuple[RuleResult, TermFinding]]] = {}
    for rule, term in failing(material):
        by_identity.setdefault((rule.suite, term.category, term.term), []).append((rule, term))
    shown: list[blocks.Block] = []
    for number, ((suite, category, identity), found) in enumerate(by_identity.items()):
        if number == _MOST_IDENTITIES:
            rest = figures.count(len(by_identity) - number, "other identity", "other identities")
            shown.append(blocks.Text(lines=[f"{rest} in `run.json`."], form=blocks.Form.SMALL))
            break
        shown += _of_identity(material, Told(material, suite, category, identity), found)
    if shown:
        yield blocks.Section(
            id="told",
            title="What they are told",
            blocks=shown,
            chapter=blocks.Chapter.WHO,
            worth=90,
        )


def _of_identity(
    material: Material, own: Told, found: Sequence[tuple[RuleResult, TermFinding]]
) -> Iterator[blocks.Block]:
    who = name(material.identity(own.suite, own.term), Tone.STRONG)
    lines: list[Inline] = [
        [who, ": ", *blocks.spans(event(material, rule, term)),
         "; neutral phrases ", figure(f"{100 * (term.neutral or 0.0):.1f} %"), "."]
        for rule, term in found
    ]  # fmt: skip
    yield blocks.Text(lines=lines, form=blocks.Form.LIST)
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


def _side_by_side(material: Material, own: Told) -> Iterator[blocks.Block]:
    rows = []
    for row in own.shown[:_MOST_SHOWN]:
        beside = own.beside(row)
        if beside is None:
            continue
        said, usual = sentences(own.response(row)), sentences(own.response(beside))
        question = material.case(own.suite, _source_of(own, row)).varied
        rows.append(
            blocks.Row(
                cells=[
                    _quote(material, question),
                    marked(material, said, usual),
                    marked(material, usual, said),
                ]
            )
        )
    if rows:
        yield blocks.Table(
            label=f"Answers side by side for {own.term}",
            columns=columns(
                "question", [name(material.identity(own.suite, own.term)), " is told"],
                "a neutral phrase is told",
            ),
            rows=rows,
            caption="Marked: what the other answer lacks",
        )  # fmt: skip


def _source_of(own: Told, row: int) -> str:
    key = own.table.keys[row]
    units = own.material.result.given.plan.units_of(own.suite)
    return next(unit.asks[SOURCE] for unit in units if unit.key == key)


def marked(material: Material, said: Sequence[str], other: Sequence[str]) -> Inline:
    """Quote sentences; those that say what the other answer lacks stand out."""
    left = 4 * 160
    found: blocks.Words = []
    for text in said:
        if left <= 0:
            found.append(" …")
            break
        tone = Tone.NORMAL if any(is_alike(text, each) for each in other) else Tone.CHANGED
        left -= len(text)
        found += [" "] if found else []
        found.append(_quote(material, text, tone))
    return found or "(nothing)"


def is_alike(left: str, right: str) -> bool:
    """Whether two sentences have most of their words in common."""
    one, other = set(words(left)), set(words(right))
    return bool(one | other) and len(one & other) >= _ALIKE * len(one | other)


def _words_and_facts(material: Material, own: Told) -> Iterator[blocks.Block]:
    if material.options.redact == "hash":
        return
    pools, lost = [], Counter[Fact]()
    table = own.table
    phrase = asker(material.identity(own.suite, own.term))
    for row in own.rows:
        neutral = own.neutral(row)
        answers = [own.response(each) for each in neutral]
        terms = [material.identity(own.suite, table.dimension("term")[each]) for each in neutral]
        others = [asker(t).mask(text) for t, text in zip(terms, answers, strict=True)]
        pools.append((phrase.mask(own.response(row)), others))
        read = [read_text(text, t) for t, text in zip(terms, answers, strict=True)]
        text = read_text(own.response(row), material.identity(own.suite, own.term))
        if read:
            lost.update(changed_facts(text, read)[0])
    facts: list[tuple[Inline, Inline]] = []
    if stand_out := overused(pools):
        facts.append(("words that stand out", blocks.joined([name(word) for word, _ in stand_out])))
    if lost:
        named: list[Inline] = [
            [name(f"{fact.kind} {fact.value}"), f" ({count})"]
            for fact, count in lost.most_common(_MOST_FACTS)
        ]
        facts.append(("facts that it lacks", blocks.joined(named)))
    if facts:
        yield blocks.KeyValues(rows=facts, depth=blocks.Depth.FULL)
