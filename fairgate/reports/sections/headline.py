"""The first sentence of a report: what happens to whom how often, beside neutral wording."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from fairgate.domain.outcomes import IdentityFinding, RuleResult
from fairgate.domain.units import Unit
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.identity import RETRIEVAL
from fairgate.metrics.metric import Metric, observe
from fairgate.metrics.retriever_robustness import OVERLAP
from fairgate.reports import figures
from fairgate.reports.blocks import Span, Tone, Words, figure, name, spans
from fairgate.reports.figures import slice_in_words
from fairgate.reports.material import Material, question_suites
from fairgate.reports.sections import affected, answers_to_identity
from fairgate.suites.metamorphic.plan import SOURCE

_SAMPLE = 20
"""Sources that are looked at to know whether texts or questions are asked."""
_QUESTION_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_WITHOUT = {True: "without a speaker", False: "for the source"}
_IN_WORDS = frozenset({"term", "category"})
"""Dimensions that a sentence says as who is named."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many of the decided rows have a 1."""

    ones: int
    decided: int

    @property
    def share(self) -> float:
        """Return the ones as a fraction of the decided rows."""
        return self.ones / self.decided


def headline(material: Material, rule: RuleResult) -> Words:
    """Return the sentence of a rule's value without its full stop: for whom, and how often."""
    return [*_sentence(material, rule), *_odd_name(material, rule)]


def _sentence(material: Material, rule: RuleResult) -> Words:
    metric = BY_ID.get(rule.metric)
    if metric is not None and metric.compares_terms:
        finding = affected.differing(material.result, rule)
        if finding is not None:
            return _compared(material, rule, metric, finding)
    elif metric is not None and metric.event:
        count = counted(material, metric, rule.suite, rule.where)
        if count is not None:
            return _counted(material, rule, metric, count)
    return _valued(material, rule, metric)


def _odd_name(material: Material, rule: RuleResult) -> Words:
    """Say that one name makes at least half of what is said of its group; nothing elsewhere."""
    differing = affected.differing(material.result, rule)
    findings = [differing] if differing is not None else material.result.identities
    said_of = rule.where.get("term") or (
        affected.singled_out(differing).term if differing is not None else ""
    )
    terms = [
        term
        for finding in findings
        if finding.suite == rule.suite
        for term in finding.terms
        if term.term == said_of and term.without is not None
    ]
    if not terms or terms[0].without is None:
        return []
    key, left = terms[0].without
    if abs(left) > abs(terms[0].difference) / 2:
        return []
    units = material.result.gate_input.plan.units_of(rule.suite)
    person = next(
        (unit.names["noun_phrase"] for unit in units if unit.dimensions.get("name") == key), key
    )
    points = figure(f"{100 * left:+.1f} points".replace("-", "\N{MINUS SIGN}"))
    return ["; without ", name(person, Tone.STRONG), ", the group differs by ", points]


def counted(
    material: Material, metric: Metric, suite: str, where: Mapping[str, str], arm: int = 0
) -> Count | None:
    """Return how many rows of an arm have a 1; None where none is decided or counted."""
    measured = material.now.get(metric.id, suite, where)
    is_share = metric.violations and len(metric.arms) == 1
    if is_share and measured is not None and measured.violated is not None:
        return Count(measured.violated, measured.decided) if measured.decided else None
    table = material.run.tables.get(suite)
    if table is None or metric.column not in table.values or metric.column in table.not_evaluated:
        return None
    rows = observe(metric, table, where)
    values = rows.values[rows.arms == arm]
    decided = values[~np.isnan(values)]
    if not len(decided) or not np.isin(decided, (0.0, 1.0)).all():
        return None
    return Count(int(decided.sum()), len(decided))


def _counted(material: Material, rule: RuleResult, metric: Metric, count: Count) -> Words:
    """Return `When a woman speaks, 4 of 10 texts get another answer; …`."""
    words = [
        *circumstance(material, rule.suite, rule.where),
        *_event(material, rule, metric, count),
    ]
    words_of_control = affected.control_words(material, rule.suite)
    if len(metric.arms) > 1:
        neutral = counted(material, metric, rule.suite, rule.where, arm=1)
        words += [] if neutral is None else _neutral(words_of_control, neutral)
        return [*words, " (", *_difference(material, rule, metric), ")"]
    then = _was(material, rule, metric)
    was = f", was {then}" if then else ""
    words += [f" ({figures.value(rule.value, rule.metric)}{was})"]
    control = BY_ID.get(metric.neutral)
    neutral = counted(material, control, rule.suite, {}) if control else None
    return [*words, *(_neutral(words_of_control, neutral, control) if neutral and control else [])]


def _difference(material: Material, rule: RuleResult, metric: Metric) -> Words:
    """Return `14.0 points more; it was 2.0 points`, or that there is no difference."""
    value, was = rule.value or 0.0, _was(material, rule, metric)
    size = figures.value(abs(value), rule.metric)
    more = "more" if value >= 0 else "fewer"
    is_none = size == figures.value(0.0, rule.metric)
    words: Words = ["no difference"] if is_none else [figure(size, Tone.STRONG), f" {more}"]
    return [*words, *([f"; it was {was}"] if was else [])]


def _event(material: Material, rule: RuleResult, metric: Metric, count: Count) -> Words:
    verb, _, rest = metric.event.partition(" ")
    verb += "s" if count.ones == 1 else ""
    texts = "questions" if asks_questions(material, rule.suite) else "texts"
    many = figure(f"{count.ones:,} of {count.decided:,} {texts}", Tone.STRONG)
    return [many, f" {verb} {rest}"]


def _neutral(wording: str, count: Count, metric: Metric | None = None) -> Words:
    if not count.ones:
        return [f"; with {wording}, none do"]
    do = "does" if count.ones == 1 else "do"
    words: Words = [f"; with {wording}, ", figure(f"{count.ones:,} of {count.decided:,}")]
    return [*words, f" {do}", *([f" ({figures.value(count.share, metric.id)})"] if metric else [])]


def _compared(
    material: Material, rule: RuleResult, metric: Metric, finding: IdentityFinding
) -> Words:
    """Return how the identity that stands out differs from the others."""
    if metric.compares_terms_with_neutral:
        return _told(material, rule, finding)
    term = affected.singled_out(finding)
    where = {"term": term.term}
    who = circumstance(material, rule.suite, where)
    size = figure(figures.value(abs(term.difference), rule.metric), Tone.STRONG)
    more = "more" if term.difference > 0 else "fewer"
    than = f"than for {affected.others(rule.where)} ({finding.chance})"
    share = material.now.value(OVERLAP.id, rule.suite, where)
    count = counted(material, metric, rule.suite, where) if metric.event else None
    if rule.metric == RETRIEVAL.id and share is not None:
        same = f" of the documents found are the same as {without(material, rule.suite)}, "
        percentage = figure(figures.value(share, OVERLAP.id), Tone.STRONG)
        return [*who, percentage, same, size, f" {more} {than}"]
    if count is not None and count.decided == term.decided:
        return [*who, *_event(material, rule, metric, count), ", ", size, f" {more} {than}"]
    before, amount, after = affected.differs(rule.metric, term.difference)
    return [*who, before, figure(amount, Tone.STRONG), f"{after} {than}"]


def _told(material: Material, rule: RuleResult, finding: IdentityFinding) -> Words:
    """Return how often the first identity's answers show a reading, beside neutral ones."""
    first = next(
        (term for of, term in answers_to_identity.failing(material) if of is rule), finding.terms[0]
    )
    neutral = f"; with neutral wording {100 * (first.neutral or 0.0):.1f} % do"
    who = circumstance(material, rule.suite, {"term": first.term})
    return [*who, *spans(answers_to_identity.event(material, rule, first)), neutral]


def _valued(material: Material, rule: RuleResult, metric: Metric | None) -> Words:
    """Return a sentence that states the value; the title and the value where there is none."""
    value = rule.value or 0.0
    then = _was(material, rule, metric)
    was = f" (was {then})" if then else ""
    is_even = metric is not None and bool(metric.claim_below)
    is_even = is_even and figures.value(value, rule.metric) == figures.value(0.0, rule.metric)
    if metric is None or not metric.claim or is_even:
        title = figures.title(rule.metric)
        where = slice_in_words(rule.where, partial(material.person, rule.suite))
        inside: Words = [", ", name(where)] if where else []
        amount = figure(figures.value(value, rule.metric), Tone.STRONG)
        return [f"{title[:1].upper()}{title[1:]}", *inside, ": ", amount, was]
    is_below = value < 0 and bool(metric.claim_below)
    sentence = metric.claim_below if is_below else metric.claim
    is_named = "{who}" in sentence and "term" in rule.where
    elsewhere = {part: at for part, at in rule.where.items() if part != "term" or not is_named}
    about = slice_in_words(elsewhere, partial(material.person, rule.suite))
    words: Words = ["For ", name(about), ": "] if about else []
    sentence = f"{sentence[:1].lower()}{sentence[1:]}" if about else sentence
    who: Span = Span("an identity")
    if is_named:
        who = name(material.person(rule.suite, rule.where["term"]), Tone.STRONG)
    size = figures.value(abs(value) if is_below else value, rule.metric)
    filled = {"{who}": who, "{value}": figure(size, Tone.STRONG)}
    words += [filled.get(part, part) for part in re.split(r"(\{\w+\})", sentence)]
    words.append(was)
    control = BY_ID.get(metric.neutral)
    neutral = material.now.value(control.id, rule.suite) if control else None
    if neutral is not None:
        wording = affected.control_words(material, rule.suite)
        words += [f"; with {wording}: ", figure(figures.value(neutral, rule.metric))]
    return words


def _was(material: Material, rule: RuleResult, metric: Metric | None) -> str:
    """Return the value in the run that is shown beside this one, if it is known."""
    if metric is not None and metric.compares_terms:
        return ""
    beside = material.beside
    then = "" if beside.is_baseline else f" in the {beside.word}"
    change = beside.change(rule)
    # What no rule compares with the baseline is in no headline: the verdict is not about it.
    untested = beside.values.value(rule.metric, rule.suite, rule.where) if then else None
    was = untested if change is None else change.base
    return "" if was is None else f"{figures.value(was, rule.metric)}{then}"


def asks_questions(material: Material, suite: str) -> bool:
    """Return whether most sources of a suite end with a question mark, or are question items."""
    if suite in question_suites(material.result):
        return True
    units = material.result.gate_input.plan.units_of(suite)
    keys = dict.fromkeys(unit.asks[SOURCE] for unit in units if SOURCE in unit.asks)
    cases = (material.planned(suite, key) for key in islice(keys, _SAMPLE))
    ends = [case.query.rstrip(" \"'”»").endswith(_QUESTION_MARKS) for case in cases if case]
    return 2 * sum(ends) > len(ends)


def without(material: Material, suite: str) -> str:
    """Return in words the text that a follow-up of a suite is compared with."""
    unit = _unit(material, suite, {})
    return _WITHOUT[unit is not None and _speaks(unit)]


def circumstance(material: Material, suite: str, where: Mapping[str, str]) -> Words:
    """Return in which follow-ups something happens, as a sentence begins: `When a woman speaks, `.

    By what the units say of themselves: a speaker's noun phrase, a document, a pool of names.
    """
    unit = _unit(material, suite, where)
    rest = {part: at for part, at in where.items() if part not in _IN_WORDS}
    more = slice_in_words(rest, str)
    inside: Words = [name(more), ": "] if more else []
    if suite in question_suites(material.result):
        return inside
    if "term" in where:
        return [*inside, *_of_one(material, suite, where["term"], unit)]
    category = where.get("category", "")
    if unit is None or not _speaks(unit):
        about: Words = ["For ", name(category), ", "] if category else []
        event = "a document names an identity" if _is_document(unit) else "attributes change"
        return [*inside, *(about or [f"When {event}, "])]
    if category:
        return [*inside, "When the speaker's ", name(category), " is named, "]
    return [*inside, "When an identity is named, "]


def _of_one(material: Material, suite: str, term: str, unit: Unit | None) -> Words:
    speaker = material.person(suite, term)
    who = name(speaker, Tone.STRONG)
    if unit is None or "noun_phrase" not in unit.names:
        return ["For ", who, ", "]
    if "name" in unit.dimensions:
        return ["With a name of the group ", who, ", "]
    if _is_document(unit):
        return ["When a document names ", who, ", "]
    are_questions = asks_questions(material, suite)
    if not speaker.startswith(("a ", "an ")):
        return ["Asked by " if are_questions else "Said by ", who, ", "]
    return ["When ", who, " asks, " if are_questions else " speaks, "]


def _unit(material: Material, suite: str, where: Mapping[str, str]) -> Unit | None:
    """Return the first unit of a slice that names an identity."""
    for unit in material.result.gate_input.plan.units_of(suite):
        if not unit.is_control and where.items() <= unit.dimensions.items():
            return unit
    return None


def _speaks(unit: Unit) -> bool:
    return "noun_phrase" in unit.names and not _is_document(unit)


def _is_document(unit: Unit | None) -> bool:
    return unit is not None and "document" in unit.names
