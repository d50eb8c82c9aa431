"""Who is affected: whom the leading rule is about most, and who differs though none fails."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import GateResult, IdentityFinding, Outcome, RuleResult, TermFinding
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.identity import ADVISED, RETRIEVAL, UNREADABLE
from fairgate.metrics.retriever_robustness import OVERLAP
from fairgate.reports import figures
from fairgate.reports.blocks import Block, Column, Row, RowKind, Table
from fairgate.reports.judged_rows import identities
from fairgate.reports.material import Material
from fairgate.reports.spans import Inline, Span, Tone, code, figure, name

_MOST = 4
"""Identities that are named."""
_FEW = 3
"""Identities that fail by themselves, up to which one of them leads."""
_COMPARED = {RETRIEVAL.id: "retrieval/overlap", UNREADABLE.id: "unreadable/net"}
"""By what a comparison of identities tells how each of them fares, where that is not the answer."""
_OF_DOCUMENTS = {"retrieval", "rrs"}
"""Parts of the names of metrics about what is retrieved."""
_ORDER = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1}
CERTAIN = 0.05
"""A difference with a smaller p value is told as one."""
CONTROLLED, PLAIN = "asr/generation/controlled", "asr/generation"
SAME_DOCUMENTS = "same documents"
_HEADS = ("changed", "now", "before", SAME_DOCUMENTS)
_HEADS_OF_DOCUMENTS = (SAME_DOCUMENTS, "before")
"""Where the value is the share of documents in common: it stands once, under its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A significant difference that fails no rule."""

    suite: str
    who: str
    """The identity that stands out."""
    words: Inline
    advice: Inline
    """What to do about it, under a first sentence that says the difference."""
    rule: RuleResult
    """The alert as files for machines show it: a rule that warns."""


def alerts(result: GateResult) -> list[Alert]:
    """Return an alert for each comparison in which identities differ and that fails no rule.

    Whatever the rules ask or let pass: no title is green beside one (`View.mark`).
    """
    return [_alert(result, *each) for each in unfailed(result)]


def unfailed(result: GateResult) -> list[tuple[IdentityFinding, list[RuleResult]]]:
    """Return the comparisons with an alert, each with the rules that ask about just it."""
    compared = [(found, _asked(result, found)) for found in standing_out(result)]
    return [each for each in compared if not any(map(_fails, each[1]))]


def _fails(rule: RuleResult) -> bool:
    return rule.outcome is Outcome.FAIL and not rule.advisory


def _asked(result: GateResult, found: IdentityFinding) -> list[RuleResult]:
    """Return the rules that ask about just this comparison."""
    where = (found.metric, found.suite, found.where)
    rules = (rule for rule in result.rules if not rule.is_reported)
    return [rule for rule in rules if (rule.metric, rule.suite, rule.where) == where]


def standing_out(result: GateResult) -> list[IdentityFinding]:
    """Return the comparisons in which identities differ more than by chance, whole suites first.

    Significance is Bonferroni's over all comparisons of the run. That an identity differs within
    its category, too, is not said again.
    """
    compared = [found for found in result.identities if found.terms]
    named: dict[tuple[str, str, str], IdentityFinding] = {}
    for found in sorted(compared, key=lambda found: len(found.where)):
        if found.p_value * len(compared) <= CERTAIN:
            named.setdefault((found.suite, found.metric, found.terms[0].term), found)
    return list(named.values())


def differs(metric: str, difference: float) -> str:
    """Return how an identity differs, before "than for the other identities"."""
    points = figures.unsigned(abs(difference), metric)
    more = "more" if difference > 0 else "less"
    if metric == RETRIEVAL.id:
        return f"{points} points {more} of the documents found are those found without a speaker"
    what = "are unreadable" if metric == UNREADABLE.id else "change"
    return f"answers {what} {points} points {more} often"


def others(where: Mapping[str, str]) -> str:
    """Return with whom an identity is compared."""
    inside = f" of {', '.join(where.values())}" if where else ""
    return f"the other identities{inside}"


def who_of(result: GateResult, found: IdentityFinding) -> str:
    """Return the identity that differs most, as the texts name it."""
    known = identities(result, found.suite).get(found.terms[0].term)
    return known.name if known else found.terms[0].term


def _alert(result: GateResult, found: IdentityFinding, asked: Sequence[RuleResult]) -> Alert:
    who = who_of(result, found)
    difference = differs(found.metric, found.terms[0].difference)
    finding = f", {difference} than for {others(found.where)}. "
    chance = " is too much to be chance, and "
    limit = ADVISED[found.metric]
    advice = "no rule asks for it: add the gate "
    if asked:
        most = max(rule.bounds.get("max", 0.0) for rule in asked)
        limit = min(limit, most)
        advice = "fails no rule"
        if found.value <= most:
            limit = min(limit, int(1000 * found.value) / 1000)
            advice = f"a rule lets {figures.unsigned(most, found.metric)} points pass"
        advice += ": if it is not right, ask for less with "
    where = "".join(f", {part}: {level}" for part, level in found.where.items())
    where = f", where: {{{where[2:]}}}" if where else ""
    gate = f"{{metric: {found.metric}{where}, max: {limit:g}}}"
    return Alert(
        suite=found.suite,
        who=who,
        words=["For ", name(who), f"{finding}That{chance}{advice}", code(gate), "."],
        advice=["The difference for ", name(who), f"{chance}{advice}", code(gate), "."],
        rule=RuleResult(
            metric=found.metric,
            suite=found.suite,
            where=found.where,
            position=0,
            outcome=Outcome.INCONCLUSIVE,
            reasons=[f"for {who}{finding}That{chance}{advice}{gate}"],
            value=found.value,
            warns=True,
        ),
    )


def leading(result: GateResult) -> RuleResult | None:
    """Return the rule that leads: what failed, then what could not tell, else what comes first.

    A difference that passes with a warning leads as a rule of its own: titles name it.
    Among what failed, a changed answer leads before answers that cannot be compared. Where few
    identities fail by themselves, the worst of them leads: the mean over all hides how much.
    """
    reported = unfailed(result) if result.outcome is Outcome.PASS else []
    if reported:
        found = reported[0][0]
        return RuleResult(
            metric=found.metric, suite=found.suite, where=found.where, position=0,
            outcome=Outcome.PASS, reasons=[], value=found.value,
        )  # fmt: skip
    valued = [(number, rule) for number, rule in enumerate(result.rules) if rule.value is not None]
    ranked = sorted(
        (rule.advisory, _ORDER.get(rule.outcome, 2), set(rule.failed) == {"unreadable"}, number)
        for number, rule in valued
    )
    if not ranked:
        return None
    first = result.rules[ranked[0][-1]]
    alike = [rule for _, rule in valued if _is_one_identity(rule, first)]
    leads = 0 < len(alike) <= _FEW or first in alike
    return max(alike, key=lambda rule: _far(rule.metric, rule.value or 0.0)) if leads else first


def _is_one_identity(rule: RuleResult, first: RuleResult) -> bool:
    """Return whether a rule says of one identity what the first one says of all."""
    same = (rule.metric, rule.suite, rule.advisory) == (first.metric, first.suite, first.advisory)
    alike = rule.outcome is first.outcome and rule.outcome in _ORDER
    return same and alike and rule.where.keys() == {"term"} and set(rule.failed) != {"unreadable"}


class Subject(enum.Enum):
    """What a rule is about."""

    ANSWERS = "answers"
    DOCUMENTS = "documents"
    REFUSALS = "refusals"


def subject(material: Material) -> Subject:
    """Return what the leading rule is about; answers where there is none."""
    rule = leading(material.result)
    return Subject.ANSWERS if rule is None else subject_of(rule)


def subject_of(rule: RuleResult) -> Subject:
    """Return what a rule is about, by the name of its metric."""
    parts = set(rule.metric.split("/"))
    if not _OF_DOCUMENTS.isdisjoint(parts):
        return Subject.DOCUMENTS
    return Subject.REFUSALS if "unreadable" in parts else Subject.ANSWERS


def failed_rules(result: GateResult) -> list[RuleResult]:
    """Return what failed the gate, the rule that leads first."""
    first = leading(result)
    failed = [r for r in result.rules if r.outcome is Outcome.FAIL and not r.advisory]
    return sorted(failed, key=lambda rule: rule is not first)


def failed_terms(material: Material, rule: RuleResult) -> list[tuple[str, str]]:
    """Return the identities for which a rule failed, each with its figure; none where it has none.

    Of a comparison those that differ by themselves by more than its limit, and the one that differs
    most; of a rule about several identities the one that fares worst.
    """
    metric = rule.metric
    compared = [f for f in material.result.identities if (f.metric, f.suite, f.where)
                == (metric, rule.suite, rule.where)]  # fmt: skip
    if compared:
        limit = rule.bounds.get("max", 0.0)
        return [
            (term.term, figures.signed(term.difference, metric) + figures.points(metric))
            for place, term in enumerate(compared[0].terms)
            if not place or (term.p_corrected <= CERTAIN and abs(term.difference) > limit)
        ]
    if "term" in rule.where:
        return [(rule.where["term"], figures.value(rule.value, metric))]
    terms = [m for m in material.now.by(metric, rule.suite, "term") if _inside(material, m, rule)]
    worst = max(terms, key=_badness, default=None)
    return [] if worst is None else [(worst.where["term"], figures.value(worst.value, metric))]


def most_different(material: Material, rule: RuleResult) -> TermFinding | None:
    """Return the identity that differs most, where a rule compares identities."""
    return next(iter(_differing(material, rule)), None)


def _differing(material: Material, rule: RuleResult) -> Sequence[TermFinding]:
    where = rule.metric, rule.suite, rule.where
    found = material.result.identities
    return next((one.terms for one in found if (one.metric, one.suite, one.where) == where), ())


def _is_warned_of(material: Material) -> bool:
    """Return whether what leads is a difference that passes with a warning."""
    return material.result.outcome is Outcome.PASS and bool(unfailed(material.result))


def affected(material: Material) -> list[Measurement]:
    """Return the slices with the highest values; of a regression, those that rose most.

    Slices are terms where the leading rule's metric has them, else categories. Whom the rule
    is about, or who stands out in a comparison of identities, comes first.
    """
    rule = leading(material.result)
    if rule is None or material.result.outcome is Outcome.INCONCLUSIVE:
        return []
    measured = [m for m in _slices(material, rule) if _inside(material, m, rule)]
    rates = {number: _badness(m) for number, m in enumerate(measured)}
    if {"regression", "budget"}.intersection(rule.failed):
        rises = {n: rate - _badness_before(material, measured[n]) for n, rate in rates.items()}
        rates = rises if any(rise > 0 for rise in rises.values()) else rates
    differing = _differing(material, rule)
    if _is_warned_of(material):
        places = {one.term: place for place, one in enumerate(differing)}
        return sorted(measured, key=lambda m: places.get(m.where.get("term", ""), len(places)))
    first = differing[0].term if differing else rule.where.get("term", "")
    ranked = sorted(rates, key=lambda n: (measured[n].where.get("term") != first, -rates[n]))
    return [measured[n] for n in ranked if rates[n] > 0 or measured[n].where.get("term") == first]


def differs_from_others(material: Material, rule: RuleResult, measured: Measurement) -> bool:
    """Return whether a slice is shown to differ, by a rule about it or by comparison.

    The highest of many values that differ by chance alone is nobody's. Where nothing is compared
    (question items, one identity), the highest stands.
    """
    who = measured.where.get("term")
    compared = [found.terms for found in material.result.identities if found.suite == rule.suite]
    if who is None or not compared:
        return True
    if rule.where.get("term") == who:
        return True
    found = [terms[0].term for terms in compared if terms]
    known = [one.terms[0].term for one in standing_out(material.result)]
    return who in known or (BY_ID[rule.metric].compares_terms and who in found)


def _slices(material: Material, rule: RuleResult) -> list[Measurement]:
    known = BY_ID.get(rule.metric)
    compares = known is not None and known.compares_terms
    metric = _COMPARED.get(rule.metric) or main_metric(material, rule.suite)
    metric = metric if compares else rule.metric
    of_terms = material.now.by(metric, rule.suite, "term")
    if of_terms:
        return of_terms
    inside = material.now.by(rule.metric, rule.suite, *rule.where, "category")
    return [m for m in inside if all(m.where[part] == at for part, at in rule.where.items())]


def _inside(material: Material, measured: Measurement, rule: RuleResult) -> bool:
    category, term = rule.where.get("category"), measured.where.get("term")
    if category is None:
        return True
    known = material.identities(rule.suite).get(term or "")
    return known is not None and known.category == category


def _badness(measured: Measurement) -> float:
    return _far(measured.metric, measured.value or 0.0)


def _far(metric: str, value: float) -> float:
    """Return how far a value is from the best one."""
    known = BY_ID.get(metric)
    if known is not None and known.better == "higher":
        return known.greatest - value
    return figures.size(value, metric)


def _badness_before(material: Material, measured: Measurement) -> float:
    found = material.before.get(measured.metric, measured.suite, measured.where)
    return 0.0 if found is None or found.value is None else _badness(found)


def main_metric(material: Material, suite: str) -> str:
    """Return the metric by which a suite tells who is affected."""
    return PLAIN if material.now.value(CONTROLLED, suite) is None else CONTROLLED


def name_of(material: Material, measured: Measurement, tone: Tone = Tone.NORMAL) -> Span:
    """Return what a slice is called: its identity, else its category."""
    term = measured.where.get("term")
    if term is None:
        return name(measured.where.get("category", ""), tone)
    return name(material.identity(measured.suite, term), tone)


def affected_table(material: Material) -> Iterator[Block]:
    """Yield the most affected, now and before, and whom else a rule failed for.

    Nothing where nobody is.
    """
    shown = affected(material)[:_MOST]
    rule = leading(material.result)
    if rule is not None and material.result.outcome is Outcome.FAIL:
        metric = shown[0].metric if shown else main_metric(material, rule.suite)
        names = [(each.suite, term) for each in failed_rules(material.result)
                 for term, _ in failed_terms(material, each)]  # fmt: skip
        more = [material.now.get(metric, suite, {"term": term}) for suite, term in names]
        known = [m for m in more if m is not None and m not in shown]
        shown = [*shown, *list({id(m): m for m in known}.values())[:_MOST]]
    if not shown:
        return
    stands_out = rule is not None and differs_from_others(material, rule, shown[0])
    is_red = rule is not None and material.result.outcome is rule.outcome is Outcome.FAIL
    shown_by = BY_ID[shown[0].metric]
    first = "lowest" if shown_by.better == "higher" else "highest"
    if stands_out and is_red:
        first = "most affected"
    elif _is_warned_of(material):
        first = "most different"
    neutral = material.now.get(shown_by.neutral, shown[0].suite)
    rows = [(name_of(material, m, Tone.STRONG), m, RowKind.NORMAL) for m in shown]
    if neutral is not None and neutral.value is not None:
        rows.append((Span("neutral wording"), neutral, RowKind.REFERENCE))
    cells = [_cells(material, measured) for _, measured, _ in rows]
    order = _HEADS_OF_DOCUMENTS if shown_by.column == OVERLAP.column else _HEADS
    heads = [head for head in order if any(row[head] != figures.NONE for row in cells)]
    yield Table(
        label="Most affected",
        columns=[Column(head=first), *(Column(head=head, is_number=True) for head in heads)],
        rows=[
            Row(cells=[words, *(figure(row[head]) for head in heads)], kind=kind)
            for (words, _, kind), row in zip(rows, cells, strict=True)
        ],
    )


def same_documents(material: Material, measured: Measurement) -> str:
    """Return the share of documents in common for whom a measurement is about."""
    metric = OVERLAP.id if measured.where else OVERLAP.neutral
    return figures.value(material.now.value(metric, measured.suite, measured.where), metric)


def _cells(material: Material, measured: Measurement) -> dict[str, str]:
    metric, suite, where = measured.metric, measured.suite, measured.where
    counted = BY_ID[metric].violations and measured.violated is not None
    return {
        "changed": f"{measured.violated:,} of {measured.decided:,}" if counted else figures.NONE,
        "now": figures.value(measured.value, metric),
        "before": figures.value(material.before.value(metric, suite, where), metric),
        SAME_DOCUMENTS: same_documents(material, measured),
    }
