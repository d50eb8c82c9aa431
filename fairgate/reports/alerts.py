"""What a reader must hear although no rule asks for it: an identity that is not treated alike."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.findings import IdentityFinding
from fairgate.domain.outcomes import GateResult, Outcome, RuleResult
from fairgate.metrics.identity import MAX_DIFFERENCE
from fairgate.reports import figures
from fairgate.reports.judged_rows import identities
from fairgate.reports.spans import Inline, code, name

CERTAIN = 0.05
"""A difference with a smaller p value is told as one."""
_LIMIT = 0.1


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

    Significance is Bonferroni's over the suites.
    """
    asked = {
        rule.suite
        for rule in result.rules
        if rule.metric == MAX_DIFFERENCE.id and not rule.is_reported
    }
    whole = [found for found in result.identities if not found.where and found.terms]
    return [
        _alert(result, found)
        for found in whole
        if found.suite not in asked and found.p_value * len(whole) <= CERTAIN
    ]


def _alert(result: GateResult, found: IdentityFinding) -> Alert:
    top = found.terms[0]
    known = identities(result, found.suite).get(top.term)
    who = known.name if known else top.term
    more = "more" if top.difference > 0 else "less"
    points = figures.unsigned(abs(top.difference), MAX_DIFFERENCE.id)
    finding = (
        f", answers change {points} points {more} often than for the other identities. That is too "
        "much to be chance, and no rule asks for it: add the gate "
    )
    gate = f"{{metric: {MAX_DIFFERENCE.id}, max: {_LIMIT:g}}}"
    return Alert(
        suite=found.suite,
        who=who,
        words=["For ", name(who), finding, code(gate), "."],
        rule=RuleResult(
            metric=MAX_DIFFERENCE.id,
            suite=found.suite,
            where={},
            position=0,
            outcome=Outcome.INCONCLUSIVE,
            reasons=[f"for {who}{finding}{gate}"],
            value=found.value,
            warns=True,
        ),
    )
