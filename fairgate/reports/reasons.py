"""Why a gate failed, or what it could not see, in one sentence without statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairgate.domain.outcomes import Change, Outcome, RuleResult
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports import figures
from fairgate.reports.affected import leading
from fairgate.reports.material import Material
from fairgate.reports.rule_rows import is_underpowered
from fairgate.reports.sections.evidence import not_compared
from fairgate.reports.spans import Inline


def why(material: Material) -> Inline:
    """Return in one sentence what made the gate fail, or what could not be seen."""
    result, rule = material.result, leading(material.result)
    if rule is None or result.outcome is Outcome.INCONCLUSIVE:
        return ""
    parts = list(_reasons(rule))
    if not parts:
        return ""
    text = "; ".join(parts)
    everybody = ""
    if is_for_everybody(material, rule):
        everybody = " Neutral wording fares no better: the change is for everybody."
    if rule.outcome is Outcome.FAIL:
        return f"Why it fails: {text}.{everybody}"
    return f"{text[:1].upper()}{text[1:]}."


def is_for_everybody(material: Material, rule: RuleResult) -> bool:
    """Return whether neutral wording fares no better by what failed: nobody is singled out then."""
    known = BY_ID.get(rule.metric)
    neutral = material.now.value(known.neutral, rule.suite) if known and known.neutral else None
    moved = {"bound", "regression", "budget"}.intersection(rule.failed)
    if known is None or neutral is None or rule.value is None or rule.where or not moved:
        return False
    worse = rule.value - neutral if known.better == "lower" else neutral - rule.value
    return worse <= 0


def _reasons(rule: RuleResult) -> Iterator[str]:
    """Yield each check that did not hold, in plain words."""
    change = rule.change
    for check, moved, since in (
        ("regression", change, ""),
        ("budget", rule.since_anchor, " since the anchor"),
    ):
        if moved is not None and check in rule.failed:
            yield _too_large(moved, rule.metric, since)
    if "bound" in rule.failed and rule.value is not None:
        yield from _broken(rule, rule.value)
    if "identity" in rule.failed:
        yield from rule.reasons
    if "unreadable" in rule.failed:
        yield "more cases than in the baseline are not decided"
    if change is not None and change.decided_once and rule.outcome is not Outcome.FAIL:
        yield not_compared(len(change.decided_once))


def _too_large(change: Change, metric: str, since: str) -> str:
    unit = figures.points(metric)
    size = " in size" if figures.is_best_at_zero(metric) else ""
    return (
        f"the change of {figures.change(change, metric)}{unit}{size}{since} is more than the "
        f"allowed {figures.unsigned(change.margin, metric)}{unit} and too large to be chance"
    )


def _broken(rule: RuleResult, value: float) -> Iterator[str]:
    shown = figures.value(value, rule.metric)
    for kind, bound in rule.bounds.items():
        limit = figures.value(bound, rule.metric)
        if kind == "min" and value < bound:
            yield f"{shown} is below the limit of {limit}"
        elif kind != "min" and figures.size(value, rule.metric, kind) > bound:
            in_size = " in size" if figures.size(value, rule.metric, kind) != value else ""
            yield f"{shown} is{in_size} above the limit of {limit}"


def unclear(rule: RuleResult) -> str:
    """Return why a rule is inconclusive."""
    if is_underpowered(rule) and rule.change is not None:
        seen = math.isfinite(rule.change.minimum_detectable)
        least = figures.detectable(rule.change, rule.metric)
        return (
            f"only changes of at least {least}{figures.points(rule.metric)} could be seen"
            if seen
            else "too few sources to see any change"
        )
    known = BY_ID.get(rule.metric)
    if known is not None and known.compares_terms:
        return "with so few cases chance alone makes such a difference, more sources are needed"
    low, high = rule.interval or (math.inf, -math.inf)
    if rule.change is None and any(low <= bound <= high for bound in rule.bounds.values()):
        return "the limit lies inside its likely range"
    return "the rules below say why"
