"""Who is affected: by the leading rule, by differences that fail no rule, and term by term."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from fairgate.domain.outcomes import (
    Better,
    IdentityFinding,
    Measurement,
    Outcome,
    RuleResult,
    Subject,
    TermFinding,
)
from fairgate.domain.units import Reason
from fairgate.domain.wording import within_sentence
from fairgate.gate.bounds import counts_of
from fairgate.gate.gate import GateResult
from fairgate.metrics import shift
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.degrees import EXPECTED_RANK, LOG_ODDS
from fairgate.metrics.direction import DIRECTION
from fairgate.metrics.exposure import NET
from fairgate.metrics.identity import (
    ADVISED,
    LOG_ODDS_DIFFERENCE,
    MAX_DIFFERENCE,
    RETRIEVAL,
    UNREADABLE,
)
from fairgate.metrics.retriever_robustness import OVERLAP
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import (
    Column,
    Inline,
    RowKind,
    Span,
    code,
    columns,
    figure,
    name,
    of_suites,
    spans,
)
from fairgate.reports.figures import Figure
from fairgate.reports.material import Material, identities, pair_suites
from fairgate.stats.interval import NoInterval, wilson

_MOST = 4
"""Identities that are named."""
_IN_TABLE = 6
_FEW = 3
"""Identities that fail by themselves, up to which one of them leads."""
_COMPARED = {
    RETRIEVAL.id: "retrieval/overlap",
    UNREADABLE.id: "unreadable/net",
    LOG_ODDS_DIFFERENCE.id: "label/log-odds",
    shift.MOST_MOVED.id: shift.ANSWER,
    shift.MOST_LOST.id: shift.DOCUMENTS,
}
"""By what a comparison of identities tells how each of them fares, where that is not the answer."""
_MORE = {RETRIEVAL.id: "fewer", LOG_ODDS_DIFFERENCE.id: "less"}
"""Of what an identity has more where it fares worse, if that is not so."""
_ORDER = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1}
_GROWN = 0.05
"""Growth of a known difference above which it warns again."""
_EQUAL = 1e-6
"""Differences that are rounded to millionths and as large as each other."""
_ADVISED = 0.05
CERTAIN = 0.05
"""A difference with a smaller p value is told as one."""
CONTROLLED, PLAIN = "asr/generation/controlled", "asr/generation"
SAME_DOCUMENTS = "same documents"
_HEADS = ("changed", "now", "before", SAME_DOCUMENTS)
_HEADS_OF_DOCUMENTS = (SAME_DOCUMENTS, "before")
"""Where the value is the share of documents in common: it stands once, under its own name."""
_CLAIMS = {
    CONTROLLED: "answers that differ from most answers with neutral wording",
    PLAIN: "answers that differ from the answer without a speaker",
}
_SHORT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A significant difference that fails no rule."""

    who: str
    """The identity that stands out."""
    words: Inline
    advice: Inline
    """What to do about it, under a first sentence that says the difference."""
    rule: RuleResult
    """The alert as files for machines show it: a rule that warns."""


def alerts(result: GateResult) -> list[Alert]:
    """Return an alert for each comparison in which identities differ and that fails no rule.

    What the baseline has, too, is known and no alert.
    Whatever the rules ask or let pass: no title is green beside one (`View.mark`).
    """
    all_alerts: list[Alert] = []
    for finding, asking_rules in unfailed(result):
        term = finding.terms[0].term
        identity = identities(result, finding.suite).get(term)
        who = within_sentence(identity.name if identity else term)
        difference = "".join(differs(finding.metric, finding.terms[0].difference))
        than = f", {difference} than for {others(finding.where)} ({finding.chance}). "
        chance = " is too much to be chance, and "
        limit = ADVISED.get(finding.metric, _ADVISED)
        advice = "no rule asks for it: add the gate "
        if asking_rules:
            most = max(rule.bounds.get("max", 0.0) for rule in asking_rules)
            limit = min(limit, most)
            advice = "fails no rule"
            if finding.excess <= most:
                limit = min(limit, int(1000 * finding.excess) / 1000)
                advice = f"passes: {counts_of(finding, most)}"
            advice += "; to make it fail, set "
        where = ", ".join(f"{part}: {level}" for part, level in finding.where.items())
        where = f", where: {{{where}}}" if where else ""
        gate = f"{{metric: {finding.metric}{where}, max: {limit:g}}}"
        few, instead = _too_few_phrases(finding)
        reason = f"for {who}{than}That{chance}{advice}`{gate}`"
        reason += f". {few}`{instead}`" if few else ""
        is_told = any(alert.rule.reasons[-1].endswith(f"`{instead}`") for alert in all_alerts)
        more: list[Span] = []
        if few and not is_told:  # people read it once, machines with each
            more = [*spans(f" {few}"), code(instead), Span(".")]
        all_alerts.append(
            Alert(
                who=who,
                words=["For ", name(who), f"{than}That{chance}{advice}", code(gate), ".", *more],
                advice=[
                    *("The difference for ", name(who), f"{chance}{advice}", code(gate), "."),
                    *more,
                ],
                rule=_as_rule(finding, Outcome.INCONCLUSIVE, reason),
            )
        )
    return all_alerts


def _too_few_phrases(finding: IdentityFinding) -> tuple[str, str]:
    """Say why a difference may be one of wording, and what would tell; empty where it is told."""
    if finding.knows_wording or not finding.phrases:
        return "", ""
    few = f"{finding.phrases} neutral phrases are too few to tell an identity from its wording: "
    return few, "control: neutral-phrases"


def unfailed(result: GateResult) -> list[tuple[IdentityFinding, list[RuleResult]]]:
    """Return the comparisons with an alert, each with the rules that ask about just it."""
    asking = [rule for rule in result.rules if not rule.is_reported]
    compared = [
        (finding, [rule for rule in asking if _about(rule) == _about(finding)])
        for finding in standing_out(result)
    ]
    return [
        entry
        for entry in compared
        if not any(r.fails_gate or r.waiver for r in entry[1]) and not is_known(result, entry[0])
    ]


def is_known(result: GateResult, finding: IdentityFinding) -> bool:
    """Return whether the baseline has the same difference: a reviewer accepted it, with a reason.

    Of the same identity, to the same side, by the same test, and not larger by `_GROWN` now.
    """
    if result.overlap is None or result.overlap.incompatible:
        return False
    now, then = finding.terms[0], result.gate_input.differed(finding)
    was = next((term for term in then.terms if term.term == now.term), None) if then else None
    if then is None or was is None or max(then.p_value, was.p_corrected) > CERTAIN:
        return False
    grown = abs(now.difference) - abs(was.difference)
    return now.difference * was.difference > 0 and grown <= _GROWN


def known_differences(material: Material) -> Iterator[Inline]:
    """Yield a sentence for each difference that the baseline has, too."""
    result, baseline = material.result, material.baseline
    for finding in standing_out(result):
        if baseline is None or not is_known(result, finding):
            continue
        term = finding.terms[0]
        who = name(material.identity(finding.suite, term.term), blocks.Tone.STRONG)
        difference = "".join(differs(finding.metric, term.difference))
        than = f", {difference} than for {others(finding.where)} ({finding.chance})"
        why = baseline.reason.rstrip(". ")
        reason = f", accepted because: {why}" if why else ""
        yield ["Known from the baseline: for ", who, f"{than}{reason}."]


def _about(compared: RuleResult | IdentityFinding) -> tuple[str, str, Mapping[str, str]]:
    return compared.metric, compared.suite, compared.where


def _as_rule(finding: IdentityFinding, outcome: Outcome, *reasons: str) -> RuleResult:
    """Return a difference that passes as a rule of its own, which warns."""
    return RuleResult(
        metric=finding.metric,
        suite=finding.suite,
        where=finding.where,
        position=0,
        outcome=outcome,
        reasons=[*reasons],
        value=finding.value,
        warns=True,
    )


def standing_out(result: GateResult) -> list[IdentityFinding]:
    """Return the comparisons in which identities differ more than by chance, whole suites first.

    Significance is Bonferroni's over all comparisons of the run; what as many neutral phrases reach
    by chance is no difference. That an identity differs within
    its category, too, is not said again.
    """
    compared = [finding for finding in result.identities if finding.terms]
    by_term: dict[tuple[str, str, str], IdentityFinding] = {}
    for finding in sorted(compared, key=lambda finding: len(finding.where)):
        if finding.p_value * len(compared) <= CERTAIN and finding.excess > 0:
            by_term.setdefault((finding.suite, finding.metric, finding.terms[0].term), finding)
    return list(by_term.values())


def differs(metric: str, difference: float) -> tuple[str, str, str]:
    """Return how an identity differs: before, the amount, after, then "than for the others"."""
    points = figures.value(abs(difference), metric)
    if metric == LOG_ODDS_DIFFERENCE.id:
        return "the better labels are ", points, f" {'more' if difference > 0 else 'less'} probable"
    often = f" {'more' if difference > 0 else 'less'} often"
    if metric == RETRIEVAL.id:
        return "the documents found are the same as without a speaker ", points, often
    if metric == shift.MOST_LOST.id:
        return "documents that the reference finds are not found ", points, often
    if metric == shift.MOST_MOVED.id:
        return "answers move from the reference's ", points, often
    return f"answers {'are unreadable' if metric == UNREADABLE.id else 'change'} ", points, often


def is_harm(metric: str, amount: float) -> bool:
    """Return whether an identity fares worse by a difference or a signed value, and not better.

    Of its answers more change, or get worse, or cannot be read, or the better labels are less
    probable; of its documents fewer are found.
    """
    entry = BY_ID.get(metric)
    more_is_better = metric == RETRIEVAL.id or (
        entry is not None
        and (
            entry.better is Better.HIGHER
            or (entry.better is Better.TOWARD_ZERO and entry.column == NET)
            or entry.column in (LOG_ODDS, EXPECTED_RANK)
        )
    )
    return amount < 0 if more_is_better else amount > 0


def singled_out(finding: IdentityFinding) -> TermFinding:
    """Return the identity that a comparison is told by: of equal size, the one that fares worse.

    A difference as large on the far side of two identities is the same difference.
    """
    top = finding.terms[0]
    alike = (term for term in finding.terms if abs(term.difference) >= abs(top.difference) - _EQUAL)
    return next((term for term in alike if is_harm(finding.metric, term.difference)), top)


def others(where: Mapping[str, str]) -> str:
    """Name the group that an identity is compared with."""
    inside = f" of {', '.join(where.values())}" if where else ""
    return f"the other identities{inside}"


def leading(result: GateResult) -> RuleResult | None:
    """Return the rule that leads: what failed, then what could not tell, else what comes first.

    A difference that passes with a warning leads as a rule of its own: titles name it.
    Among what failed, a changed answer leads before answers that cannot be compared, and what is
    worse for somebody before what is better for one. Where few identities fail by themselves, the
    worst of them leads: the mean over all hides how much.
    """
    reported = unfailed(result) if result.outcome is Outcome.PASS else []
    if reported:
        return _as_rule(reported[0][0], Outcome.PASS)
    is_red = result.outcome is Outcome.FAIL  # and not for what is waived
    rules = [rule for rule in result.rules if not (is_red and rule.waiver)]
    valued = [(number, rule) for number, rule in enumerate(rules) if rule.value is not None]
    ranked = sorted(
        (
            rule.advisory,
            _ORDER.get(rule.outcome, 2),
            is_undecided(rule),
            favours(result, rule),
            number,
        )
        for number, rule in valued
    )
    if not ranked:
        return None
    first = rules[ranked[0][-1]]
    kind = (first.metric, first.suite, first.advisory, first.outcome)
    # What says of one identity what the first one says of all.
    alike = [
        rule
        for _, rule in valued
        if (rule.metric, rule.suite, rule.advisory, rule.outcome) == kind
        and rule.where.keys() == {"term"}
        and set(rule.failed) != {"unreadable"}
    ]
    leads = first in alike or (first.outcome in _ORDER and 0 < len(alike) <= _FEW)
    return max(alike, key=lambda rule: _far(rule.metric, rule.value or 0.0)) if leads else first


def subject(material: Material) -> Subject:
    """Return the subject of the leading rule; answers where there is none."""
    rule = leading(material.result)
    return Subject.ANSWERS if rule is None else subject_of(rule)


def subject_of(rule: RuleResult) -> Subject:
    """Tell what the metric of a rule is about; answers where no metric has that name."""
    metric = BY_ID.get(rule.metric)
    return Subject.ANSWERS if metric is None else metric.about


def failed_rules(result: GateResult) -> list[RuleResult]:
    """Return the rules that failed the gate, the leading one first."""
    first = leading(result)
    return sorted((r for r in result.rules if r.fails_gate), key=lambda rule: rule is not first)


def failed_terms(material: Material, rule: RuleResult) -> list[tuple[str, str]]:
    """Return the identities for which a rule failed, each with its figure; none where it has none.

    Of a comparison those that fare worse by themselves by more than its limit, and the one that
    differs most; never who fares better. Of a rule about several identities the one that fares
    worst.
    """
    metric = rule.metric
    compared = differing(material.result, rule)
    if compared:
        limit = rule.bounds.get("max", 0.0) + compared.allowance
        first = singled_out(compared)
        more = _MORE.get(metric, "more")
        return [
            (term_compared.term, f"{figures.value(abs(term_compared.difference), metric)} {more}")
            for term_compared in sorted(
                compared.terms, key=lambda term_compared: term_compared is not first
            )
            if is_harm(metric, term_compared.difference)
            and (
                term_compared is first
                or (term_compared.p_corrected <= CERTAIN and abs(term_compared.difference) > limit)
            )
        ]
    if "term" in rule.where:
        return [(rule.where["term"], figures.value(rule.value, metric))]
    if "name" in rule.where:
        return []
    terms = [m for m in material.now.by(metric, rule.suite, "term") if _inside(material, m, rule)]

    def by(measured: Measurement) -> float:
        """Return how badly an identity fares, on the side of 0 on which the whole value lies."""
        if is_undecided(rule):
            return float(measured.inconclusive)
        is_signed = metric in BY_ID and BY_ID[metric].better is Better.TOWARD_ZERO
        side = math.copysign(1.0, rule.value or 0.0)
        return side * (measured.value or 0.0) if is_signed else badness(measured)

    worst = max(terms, key=by, default=None)
    if worst is None or by(worst) == min(map(by, terms)):
        return []
    return [(worst.where["term"], figures.value(worst.value, metric))]


def is_undecided(rule: RuleResult) -> bool:
    """Return whether a rule failed only because fewer cases are decided than in the baseline."""
    return set(rule.failed) == {"unreadable"}


def names_identities(rule: RuleResult) -> bool:
    """Return whether a rule failed for identities by themselves."""
    return "term" in rule.where or "identity" in rule.failed


def failed_identities(material: Material, *, is_favoured: bool = False) -> dict[Subject, list[str]]:
    """Return the identities for which a rule failed, by subject: the leading one, then the worst.

    Or those in whose favour one failed: their answers are better, or their documents found more.
    """
    names_by_subject: dict[Subject, dict[str, None]] = {}
    first, *others = failed_rules(material.result)
    others.sort(key=lambda rule: -_far(rule.metric, rule.value or 0.0))
    for rule in filter(names_identities, (first, *others)):
        if favours(material.result, rule) is is_favoured:
            names = names_by_subject.setdefault(subject_of(rule), {})
            terms = (term for term, _ in failed_terms(material, rule))
            names |= {material.person(rule.suite, term): None for term in terms}
    return {about: list(names) for about, names in names_by_subject.items() if names}


def titled(material: Material) -> list[tuple[str, str]]:
    """Return suite and term of the identities whose answers failed, in the order of the title."""
    titled_terms: dict[tuple[str, str], None] = {}
    for rule in failed_rules(material.result):
        if subject_of(rule) is Subject.ANSWERS:
            titled_terms |= {(rule.suite, term): None for term, _ in failed_terms(material, rule)}
    return list(titled_terms)


def differing(result: GateResult, rule: RuleResult) -> IdentityFinding | None:
    """Return how the identities that a rule compares differ; None where it compares none."""
    findings = [*result.identities, *result.beside_neutral]
    return next(
        (finding for finding in findings if finding.terms and _about(finding) == _about(rule)), None
    )


def favours(result: GateResult, rule: RuleResult) -> bool:
    """Return whether a failed rule about identities says that one fares better, and none worse."""
    compared = differing(result, rule)
    if compared is not None:
        return "identity" in rule.failed and not is_harm(
            rule.metric, singled_out(compared).difference
        )
    entry, value = BY_ID.get(rule.metric), rule.value or 0.0
    is_signed = entry is not None and (entry.is_difference or entry.better is Better.TOWARD_ZERO)
    is_of_one = "term" in rule.where and set(rule.failed) == {"bound"} and value != 0.0
    return is_of_one and is_signed and not is_harm(rule.metric, value)


def affected(material: Material) -> list[Measurement]:
    """Return the slices with the highest values; of a regression, those that rose most.

    Slices are terms where the leading rule's metric has them, else categories. Whom the rule
    is about, or who stands out in a comparison of identities, comes first.
    """
    rule = leading(material.result)
    if rule is None or material.result.outcome is Outcome.INCONCLUSIVE:
        return []
    entry, metric = BY_ID.get(rule.metric), rule.metric
    if entry is not None and entry.compares_terms:
        metric = _COMPARED.get(metric) or main_metric(material, rule.suite)
    slices = material.now.by(metric, rule.suite, "term") or [
        m
        for m in material.now.by(rule.metric, rule.suite, *rule.where, "category")
        if all(m.where[part] == at for part, at in rule.where.items())
    ]
    measured = [m for m in slices if _inside(material, m, rule)]
    rates = {number: badness(m) for number, m in enumerate(measured)}
    if {"regression", "budget"}.intersection(rule.failed):
        then = [material.beside.values.get(m.metric, m.suite, m.where) for m in measured]
        was = [0.0 if m is None or m.value is None else badness(m) for m in then]
        rises = {n: rate - was[n] for n, rate in rates.items()}
        rates = rises if any(rise > 0 for rise in rises.values()) else rates
    apart = differing(material.result, rule)
    first = singled_out(apart).term if apart else rule.where.get("term", "")
    ranked = sorted(rates, key=lambda n: (measured[n].where.get("term") != first, -rates[n]))
    return [measured[n] for n in ranked if rates[n] > 0 or measured[n].where.get("term") == first]


def differs_from_others(material: Material, rule: RuleResult, measured: Measurement) -> bool:
    """Return whether a slice is shown to differ, by a rule about it or by comparison.

    The highest of many values that differ by chance alone is nobody's. Where nothing is compared
    (question items, one identity), the highest stands.
    """
    who = measured.where.get("term")
    compared = [
        finding.terms for finding in material.result.identities if finding.suite == rule.suite
    ]
    if who is None or not compared or rule.where.get("term") == who:
        return True
    first_terms = [terms[0].term for terms in compared if terms]
    standing_terms = [finding.terms[0].term for finding in standing_out(material.result)]
    return who in standing_terms or (BY_ID[rule.metric].compares_terms and who in first_terms)


def _inside(material: Material, measured: Measurement, rule: RuleResult) -> bool:
    category, term = rule.where.get("category"), measured.where.get("term")
    identity = material.identities(rule.suite).get(term or "")
    return category is None or (identity is not None and identity.category == category)


def badness(measured: Measurement) -> float:
    """Return how far a measured value is from the best one."""
    return _far(measured.metric, measured.value or 0.0)


def _far(metric: str, value: float) -> float:
    """Return how far a value is from the best one."""
    entry = BY_ID.get(metric)
    if entry is not None and entry.better == "higher":
        return entry.greatest - value
    return figures.size(value, metric)


def main_metric(material: Material, suite: str) -> str:
    """Return the metric by which a suite tells who is affected."""
    return PLAIN if material.now.value(CONTROLLED, suite) is None else CONTROLLED


def name_of(
    material: Material, measured: Measurement, tone: blocks.Tone = blocks.Tone.NORMAL
) -> blocks.Span:
    """Return a slice's name: its identity, else its category, else all of its levels."""
    where = measured.where
    if where.get("term"):
        return name(material.identity(measured.suite, where["term"]), tone)
    return name(where.get("category") or ", ".join(where.values()) or "everybody", tone)


def control_words(material: Material, suite: str) -> str:
    """Name the control arm of a suite within a sentence: names have no neutral wording."""
    units = material.result.gate_input.plan.units_of(suite)
    return "other people's names" if units and "name" in units[0].dimensions else "neutral wording"


def affected_table(material: Material) -> Iterator[blocks.Block]:
    """Yield the most affected identities of a failed run, now and before, and others that fail."""
    listed = affected(material)[:_MOST]
    rule = leading(material.result)
    if rule is None or material.result.outcome is not Outcome.FAIL:
        return
    if rule.metric in BY_ID and BY_ID[rule.metric].compares_terms_with_neutral:
        return  # said by what they are told
    metric = listed[0].metric if listed else main_metric(material, rule.suite)
    for failed in failed_rules(material.result):
        for term, _ in failed_terms(material, failed):
            measured = material.now.get(metric, failed.suite, {"term": term})
            if measured is not None and measured not in listed and len(listed) < _IN_TABLE:
                listed.append(measured)
    if not listed:
        return
    shown_by = BY_ID[listed[0].metric]
    stands_out = differs_from_others(material, rule, listed[0])
    neutral = material.now.get(shown_by.neutral, listed[0].suite)
    rows = [(name_of(material, m, blocks.Tone.STRONG), m, RowKind.NORMAL) for m in listed]
    if neutral is not None and neutral.value is not None:
        rows.append(
            (blocks.Span(control_words(material, neutral.suite)), neutral, RowKind.REFERENCE)
        )
    cells = []
    for _, measured_row, _ in rows:
        counted = BY_ID[measured_row.metric].violations and measured_row.violated is not None
        before = material.beside.values.value(
            measured_row.metric, measured_row.suite, measured_row.where
        )
        cells.append(
            {
                "changed": f"{measured_row.violated:,} of {measured_row.decided:,}"
                if counted
                else figures.NONE,
                "now": figures.value(measured_row.value, measured_row.metric),
                "before": figures.value(before, measured_row.metric),
                SAME_DOCUMENTS: same_documents(material, measured_row),
            }
        )
    order = _HEADS_OF_DOCUMENTS if shown_by.column == OVERLAP.column else _HEADS
    heads = [head for head in order if any(row[head] != figures.NONE for row in cells)]
    yield blocks.Table(
        label="Most affected",
        columns=columns("most affected" if stands_out else "who", numbers=heads),
        rows=[
            blocks.Row(cells=[words, *(figure(row[head]) for head in heads)], kind=kind)
            for (words, _, kind), row in zip(rows, cells, strict=True)
        ],
    )


def same_documents(material: Material, measured: Measurement) -> str:
    """Return the share of common documents for the identity of a measurement."""
    metric = OVERLAP.id if measured.where else OVERLAP.neutral
    return figures.value(material.now.value(metric, measured.suite, measured.where), metric)


def terms(material: Material) -> Iterator[blocks.Section]:
    """Yield a chart of every suite with categories, their terms, and neutral wording."""
    kind = blocks.Section(
        id="terms", title="Who is affected", blocks=(), chapter=blocks.Chapter.WHO, worth=80
    )

    def named(suite: str) -> int:
        return sum(not identity.is_control for identity in material.identities(suite).values())

    suites = pair_suites(material.result)
    yield from of_suites(kind, suites, partial(_terms, material), count=named)


def _terms(material: Material, suite: str, place: int) -> Iterator[blocks.Block]:
    metric, now = main_metric(material, suite), material.now
    of_terms = now.by(metric, suite, "term")
    if not of_terms:
        return
    if reads_sentences(material, suite) and not any(term.value for term in of_terms):
        return  # no label changes, so that a chart of labels would say that nobody is affected
    found = [one for one in material.result.identities if one.suite == suite and not one.where]
    worst = [
        f"The largest difference between one identity and the others: "
        f"{figures.unsigned(one.value, one.metric)} points; {one.chance}."
        for one in found
        if one.metric == MAX_DIFFERENCE.id
    ]
    yield blocks.Text(lines=[" ".join([f"Share of {_CLAIMS[metric]}.", *worst])])
    others = [
        choice
        for choice in material.choices[1:]
        if any(choice.values.by(metric, suite, by) for by in ("category", "term"))
    ]
    has_documents = now.value(OVERLAP.id, suite) is not None
    has_direction = now.value(DIRECTION.id, suite) is not None
    sources = sources_of(material, suite)

    def row(words: Inline, m: Measurement, kind: RowKind = RowKind.NORMAL) -> blocks.Range:
        where, is_neutral = m.where, kind is RowKind.REFERENCE
        plain = now.value(f"{PLAIN}/control" if is_neutral else PLAIN, suite, where)
        shown = [f"{m.violated or 0:,} of {m.decided:,}", figures.value(plain, PLAIN)]
        shown += [same_documents(material, m)] if has_documents else []
        worse = None if is_neutral else now.value(DIRECTION.id, suite, where)
        shown += [figures.signed(worse, DIRECTION.id)] if has_direction else []
        return blocks.Range(
            name=words,
            now=figures.figure(m) if is_neutral else ranged(material, m, sources),
            base=figures.figure(material.beside.values.get(m.metric, suite, where)),
            facts=[figure(one) for one in shown],
            kind=kind,
            others=[figures.figure(one.values.get(m.metric, suite, where)) for one in others],
        )

    units = (unit.dimensions for unit in material.result.gate_input.plan.units_of(suite))
    names = {found["name"]: found["term"] for found in units if "name" in found}
    by_name = _ranked(now.by(metric, suite, "name"))
    rows: list[blocks.Range] = []
    ranked = _ranked(of_terms)
    for group in _ranked(now.by(metric, suite, "category")):
        category = group.where["category"]
        rows.append(row(name(category), group, RowKind.GROUP))
        for measured in ranked:
            identity = material.identities(suite).get(measured.where["term"])
            if identity is not None and identity.category == category:
                rows.append(row(name(identity.name), measured))
                of_term = (m for m in by_name if names[m.where["name"]] == measured.where["term"])
                rows += [row([" ", name(m.where["name"])], m) for m in of_term]
    neutral = now.get(f"{metric}/control", suite)
    if neutral is not None and neutral.value is not None:
        rows.append(row(control_words(material, suite), neutral, RowKind.REFERENCE))
    # The rate says it too, and a telephone has room for one more column.
    heads = [Column(head="changed", is_number=True, is_wide=has_documents or has_direction)]
    heads += [Column(head="changed against no speaker", is_number=True, is_wide=True)]
    heads += [Column(head=SAME_DOCUMENTS, is_number=True)] if has_documents else []
    heads += [Column(head="worse less better", is_number=True)] if has_direction else []
    yield blocks.RangeChart(
        label=f"Rates by category and term{f' {place}' if place > 1 else ''}",
        rows=rows,
        usual=material.beside.id if len(material.choices) > 1 else "",
        others=[(other.id, other.word) for other in others],
        head="category and term",
        value="rate",
        interval=material.likely_range,
        facts=heads,
        most=_SHORT,
    )


def reads_sentences(material: Material, suite: str) -> bool:
    """Return whether a rule of the suite reads answers beside those to neutral phrases."""
    metrics = (BY_ID.get(rule.metric) for rule in material.result.rules if rule.suite == suite)
    return any(metric is not None and metric.compares_terms_with_neutral for metric in metrics)


def _ranked(measured: list[Measurement]) -> list[Measurement]:
    return sorted(measured, key=lambda m: -1.0 if m.value is None else m.value, reverse=True)


def sources_of(material: Material, suite: str) -> dict[tuple[str, str], set[str]]:
    """Return the sources with a decided pair of a suite's test arm, by dimension and level."""
    sources: dict[tuple[str, str], set[str]] = {}
    for row in material.named_pairs:
        if row.suite == suite and not isinstance(row.claim, Reason):
            for at in (("category", row.category), ("term", row.term)):
                sources.setdefault(at, set()).add(row.source)
    return sources


def ranged(
    material: Material, measured: Measurement, sources: Mapping[tuple[str, str], set[str]]
) -> Figure:
    """Return a rate with an interval, of the score method where the bootstrap has too few clusters.

    Its cases are sources, not pairs: pairs of a source move together, so that a category of many
    terms has no more of them than one term has.
    """
    figure_shown = figures.figure(measured)
    if figure_shown.bounds is not None or figure_shown.value is None:
        return figure_shown
    many = len(sources.get(next(iter(measured.where.items())), ()))
    interval = wilson(figure_shown.value * many, many, confidence=material.options.confidence)
    if isinstance(interval, NoInterval):
        return figure_shown
    bounds = interval.low, interval.high
    return replace(figure_shown, bounds=bounds, interval=figures.interval(bounds, measured.metric))
