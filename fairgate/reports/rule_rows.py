"""Rule results as table rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairgate.domain.outcomes import Change, Outcome, RuleResult
from fairgate.reports import figures
from fairgate.reports.escaping import name, sentence
from fairgate.reports.rule_view import RuleRow

SYMBOLS = {
    Outcome.PASS: "✅",
    Outcome.FAIL: "❌",
    Outcome.INCONCLUSIVE: "⚠️",
    Outcome.NOT_EVALUATED: "➖",
}
REPORTED = "reported"
WORDS = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_EVALUATED: "not evaluated",
}


def rule_rows(rules: Sequence[RuleResult]) -> list[RuleRow]:
    """Return a row for every rule, in the order of the policy."""
    several = len({rule.suite for rule in rules}) > 1
    return [_row(rule, several=several) for rule in rules]


def _row(rule: RuleResult, *, several: bool) -> RuleRow:
    metric, change = rule.metric, rule.change
    limits = [figures.limit(name, bound, metric) for name, bound in rule.bounds.items()]
    if change is not None:
        limits.append(f"margin {figures.unsigned(change.margin, metric)}")
    return RuleRow(
        title=figures.title(metric),
        metric=metric,
        suite=name(rule.suite) if several else "",
        where=name(", ".join(rule.where.values())),
        slice=name(", ".join(f"{part} {value}" for part, value in rule.where.items())),
        position=rule.position,
        outcome=rule.outcome,
        symbol=SYMBOLS[rule.outcome],
        word=REPORTED if rule.is_reported else WORDS[rule.outcome],
        limits=", ".join(limits),
        reasons=tuple(sentence(reason.removeprefix("not evaluated: ")) for reason in rule.reasons),
        failed=tuple(rule.failed),
        now=figures.value(rule.value, metric),
        base=figures.value(change.base, metric) if change else figures.NONE,
        change=figures.signed(figures.movement(change, metric), metric) if change else figures.NONE,
        interval=figures.signed_interval(figures.movement_interval(change, metric), metric)
        if change
        else figures.interval(rule.interval, metric),
        value_interval=figures.interval(rule.interval, metric),
        p_value=figures.probability(change.p_corrected) if change else figures.NONE,
        sources=f"{change.sources:,} ({change.changed_sources:,} changed)"
        if change
        else figures.NONE,
        discordant=f"{change.discordant:,}" if change else figures.NONE,
        detectable=detectable(change, metric) if change else figures.NONE,
        advisory=rule.advisory,
        is_reported=rule.is_reported,
        warns=rule.warns,
        base_value=change.base if change else None,
        is_underpowered=is_underpowered(rule),
    )


def is_underpowered(rule: RuleResult) -> bool:
    """Return whether an inconclusive rule could have missed a change that it is to detect."""
    change = rule.change
    return (
        rule.outcome is Outcome.INCONCLUSIVE
        and change is not None
        and change.minimum_detectable > change.detect
    )


def detectable(change: Change, metric: str) -> str:
    """Return the smallest worsening that would be seen, with the sign of the change column."""
    smallest = replace(change, change=change.minimum_detectable)
    return figures.signed(figures.movement(smallest, metric), metric)
