"""What a reader must hear although no rule fails: an identity that is not treated alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.findings import IdentityFinding
from fairgate.domain.outcomes import GateResult, Outcome, RuleResult
from fairgate.metrics.identity import ADVISED, RETRIEVAL, UNREADABLE
from fairgate.reports import figures
from fairgate.reports.judged_rows import identities
from fairgate.reports.spans import Inline, code, name

CERTAIN = 0.05
"""A difference with a smaller p value is told as one."""


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
