"""Rules as every report shows them: in words and figures, not escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.reports import figures

REPORTED = "reported"
WORDS = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_EVALUATED: "not evaluated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule as tables and machine-readable files show it."""

    title: str
    metric: str
    suite: str
    """Empty where there is only one."""
    where: str
    """The levels alone, as policies have them: `stereo`, `woman`."""
    slice: str
    """As readers see it: `setting stereo`, `A woman`."""
    brief: str
    """The same without the names of dimensions: `stereo`, `A woman`."""
    position: int
    outcome: Outcome
    word: str
    """The outcome in a word, `FAIL` in capitals."""
    limits: str
    """`≤ 15.0 %, margin 2.0`."""
    reasons: Sequence[str]
    failed: Sequence[str]
    now: str
    """On the cases that are compared, where there is a change; else on all of them."""
    base: str
    change: str
    interval: str
    """The two bounds of the change where there is a baseline, else the interval of the value."""
    value: str
    """On all decided cases."""
    value_interval: str
    p_value: str
    sources: str
    """`100 (12 changed)`."""
    discordant: str
    detectable: str
    since_anchor: str
    """The change since the anchor with its bounds: `+4.8 (+2.1 … +7.4)`."""
    is_advisory: bool
    is_reported: bool
    """The policy sets no limit for the value; it is only printed."""
    warns: bool
    """Inconclusive but, by policy, no reason to stop the build."""
    has_change: bool
    is_underpowered: bool
    """Inconclusive, and a change that the policy wants seen could have gone unseen."""

    @property
    def needs_attention(self) -> bool:
        """Return whether the rule asked something and did anything but pass."""
        return self.outcome is not Outcome.PASS and not self.is_reported


def rule_rows(
    rules: Sequence[RuleResult], identity: Callable[[str, str], str] = lambda _, term: term
) -> list[RuleRow]:
    """Return a row for every rule, in the order of the policy.

    `identity` names a term of a suite as its texts do.
    """
    several = len({rule.suite for rule in rules}) > 1
    return [_row(rule, partial(identity, rule.suite), several=several) for rule in rules]


def slice_in_words(where: Mapping[str, str], called: Callable[[str], str]) -> str:
    """Return a slice as readers see it; an identity is called as the texts call it."""
    parts = where.items()
    return ", ".join(called(at) if part == "term" else f"{part} {at}" for part, at in parts)


def _row(rule: RuleResult, called: Callable[[str], str], *, several: bool) -> RuleRow:
    metric, change = rule.metric, rule.change
    limits = [figures.limit(kind, bound, metric) for kind, bound in rule.bounds.items()]
    if change is not None:
        limits.append(f"margin {figures.unsigned(change.margin, metric)}")
    since = rule.since_anchor
    if since is not None:
        limits.append(f"budget {figures.unsigned(since.margin, metric)}")
    value = figures.value(rule.value, metric)
    return RuleRow(
        title=figures.title(metric),
        metric=metric,
        suite=rule.suite if several else "",
        where=", ".join(rule.where.values()),
        slice=slice_in_words(rule.where, called),
        brief=", ".join(called(at) if by == "term" else at for by, at in rule.where.items()),
        position=rule.position,
        outcome=rule.outcome,
        word=REPORTED if rule.is_reported else WORDS[rule.outcome],
        limits=", ".join(limits),
        reasons=_reasons(rule, value),
        failed=tuple(rule.failed),
        now=figures.value(change.now, metric) if change else value,
        base=figures.value(change.base, metric) if change else figures.NONE,
        change=figures.change(change, metric) if change else figures.NONE,
        interval=figures.change_interval(change, metric)
        if change
        else figures.interval(rule.interval, metric),
        value=value,
        value_interval=figures.interval(rule.interval, metric),
        p_value=figures.probability(change.p_corrected) if change else figures.NONE,
        sources=f"{change.sources:,} ({change.changed_sources:,} changed)"
        if change
        else figures.NONE,
        discordant=f"{change.discordant:,}" if change else figures.NONE,
        detectable=figures.detectable(change, metric) if change else figures.NONE,
        since_anchor=figures.NONE
        if since is None
        else f"{figures.change(since, metric)} ({figures.change_interval(since, metric)})",
        is_advisory=rule.advisory,
        is_reported=rule.is_reported,
        warns=rule.warns,
        has_change=change is not None,
        is_underpowered=is_underpowered(rule),
    )


def _reasons(rule: RuleResult, value: str) -> list[str]:
    """Return why, and what the rule's value is where it is not that of the compared cases."""
    reasons = [reason.removeprefix("not evaluated: ") for reason in rule.reasons]
    change = rule.change
    if change is not None and figures.value(change.now, rule.metric) != value:
        cases = figures.count(change.pairs, "case")
        reasons.append(
            f"on all its cases the value is {value}, the change is of the {cases} that both runs "
            "decided"
        )
    return reasons


def is_underpowered(rule: RuleResult) -> bool:
    """Return whether an inconclusive rule could have missed a change that it is to detect."""
    change = rule.change
    return (
        rule.outcome is Outcome.INCONCLUSIVE
        and change is not None
        and change.minimum_detectable > change.detect
    )
