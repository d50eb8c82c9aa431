"""What a reader must hear although no rule asks for it: an identity that is not treated alike."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.findings import IdentityFinding
from fairgate.domain.outcomes import GateResult, Outcome, RuleResult
from fairgate.metrics.identity import MAX_DIFFERENCE, RETRIEVAL, UNREADABLE
from fairgate.reports import figures
from fairgate.reports.judged_rows import identities
from fairgate.reports.spans import Inline, code, name

CERTAIN = 0.05
"""A difference with a smaller p value is told as one."""
_LIMITS = {MAX_DIFFERENCE.id: 0.1, RETRIEVAL.id: 0.35, UNREADABLE.id: 0.05}
"""What the gate that is advised would accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A significant difference that no rule of the policy judges."""

    suite: str
    who: str
    """The identity that stands out."""
    words: Inline
    rule: RuleResult
    """The alert as files for machines show it: a rule that warns."""


def alerts(result: GateResult) -> list[Alert]:
    """Return an alert for each suite in which identities differ and no rule asks whether they do.

    Significance is Bonferroni's over suites and comparisons. Every wording finds other documents,
    so what is found must differ by more than a gate would accept, too.
    """
    asked = {
        (rule.metric, rule.suite)
        for rule in result.rules
        if rule.metric in _LIMITS and not rule.is_reported and not rule.where
    }
    return [
        _alert(result, found)
        for found in standing_out(result)
        if (found.metric, found.suite) not in asked
        and (found.metric != RETRIEVAL.id or found.value > _LIMITS[found.metric])
    ]


def standing_out(result: GateResult) -> list[IdentityFinding]:
    """Return the comparisons of whole suites in which identities differ more than by chance."""
    whole = [found for found in result.identities if not found.where and found.terms]
    return [found for found in whole if found.p_value * len(whole) <= CERTAIN]


def differs(metric: str, difference: float) -> str:
    """Return how an identity differs, before "than for the other identities"."""
    points = figures.unsigned(abs(difference), metric)
    more = "more" if difference > 0 else "less"
    if metric == RETRIEVAL.id:
        return f"{points} points {more} of the documents found are those found without a speaker"
    what = "are unreadable" if metric == UNREADABLE.id else "change"
    return f"answers {what} {points} points {more} often"


def who_of(result: GateResult, found: IdentityFinding) -> str:
    """Return the identity that differs most, as the texts name it."""
    known = identities(result, found.suite).get(found.terms[0].term)
    return known.name if known else found.terms[0].term


def _alert(result: GateResult, found: IdentityFinding) -> Alert:
    who = who_of(result, found)
    finding = (
        f", {differs(found.metric, found.terms[0].difference)} than for the other identities. That "
        "is too much to be chance, and no rule asks for it: add the gate "
    )
    gate = f"{{metric: {found.metric}, max: {_LIMITS[found.metric]:g}}}"
    return Alert(
        suite=found.suite,
        who=who,
        words=["For ", name(who), finding, code(gate), "."],
        rule=RuleResult(
            metric=found.metric,
            suite=found.suite,
            where={},
            position=0,
            outcome=Outcome.INCONCLUSIVE,
            reasons=[f"for {who}{finding}{gate}"],
            value=found.value,
            warns=True,
        ),
    )
