"""The verdict in a title and two sentences, in words that need no statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.errors import ExitCode
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import GateResult, Outcome, RuleResult
from fairgate.reports import figures
from fairgate.reports.decided_once import DecidedOnce, not_compared
from fairgate.reports.escaping import name, sentence
from fairgate.reports.rule_rows import detectable, is_underpowered
from fairgate.reports.slices import names_of_terms
from fairgate.reports.view import Headline

_NAMING = "Naming a demographic "
_BEYOND = "Beyond what neutral wording does, "
_CLAIMS: Mapping[str, tuple[str, str]] = {
    "asr/generation/controlled": (
        f"{_NAMING}gives another answer than neutral wording does in ",
        " of pairs",
    ),
    "asr/generation": (f"{_NAMING}changes the answer in ", " of pairs"),
    "asr/generation/net": (
        f"{_BEYOND}{_NAMING.lower()}changes ",
        " of answers",
    ),
    "asr/retrieval": (
        f"{_NAMING}changes the labels of the retrieved documents in ",
        " of pairs",
    ),
    "asr/retrieval/net": (
        f"{_BEYOND}{_NAMING.lower()}changes the labels of the retrieved documents in ",
        " of pairs",
    ),
    "rrs/mean": (f"{_NAMING}moves the retrieved documents by ", " on RRS's scale from 0 to 3"),
    "unreadable/net": (f"{_NAMING}makes ", " more answers unreadable than neutral wording does"),
}
_NAMED = 3
_SAME = 5e-5
"""Half of the last digit that reports show."""
_COMMON_UNCHANGED = "the cases that the baseline has too are unchanged"


def headline(result: GateResult, before: Sequence[Measurement], once: DecidedOnce) -> Headline:
    """Return the title and the two sentences; `before` holds the baseline's measurements.

    `once` names the cases that a rule's change leaves out: its value counts them all the same.
    """
    title = _title(result)
    if result.outcome is Outcome.INCONCLUSIVE:
        return _without_verdict(result, title)
    number = _leading(result)
    if number is None:
        return _plain(title, "No rule has a value.")
    rule = result.rules[number]
    claim, after = _claim(rule)
    worst = "Most affected" if result.outcome is Outcome.FAIL else "Highest"
    return Headline(
        title=title,
        before=claim,
        figure=figures.value(rule.value, rule.metric),
        after=after + _context(rule, len(once.get(number, ()))) + ".",
        affected_label=worst,
        affected=_affected(result, rule, before),
    )


def _claim(rule: RuleResult) -> tuple[str, str]:
    """Return what stands before and after the figure."""
    where = name(", ".join(f"{part} {level}" for part, level in rule.where.items()))
    if rule.metric in _CLAIMS:
        claim, after = _CLAIMS[rule.metric]
        return (f"For {where}: {claim[0].lower()}{claim[1:]}" if where else claim), after
    title = figures.title(rule.metric)
    return f"{title[:1].upper()}{title[1:]}{f', {where}' if where else ''}: ", ""


def _plain(title: str, words: str) -> Headline:
    return Headline(
        title=title, before=sentence(words), figure="", after="", affected_label="", affected=()
    )


def _title(result: GateResult) -> str:
    if result.outcome is Outcome.PASS:
        return _pass(result)
    if result.outcome is Outcome.FAIL:
        return _failure(result)
    if result.exit_code is ExitCode.BASELINE:
        fits = result.overlap is None or not result.overlap.incompatible
        return "the baseline is incomplete" if fits else "baseline and run do not fit together"
    return "too little evidence for a verdict"


def _pass(result: GateResult) -> str:
    """Say no more than was shown: a rule that could not tell holds nothing."""
    if all(rule.advisory or rule.is_reported for rule in result.rules):
        return "nothing can fail this gate,"
    unclear = sum(r.outcome is Outcome.INCONCLUSIVE and not r.advisory for r in result.rules)
    rules = f"{figures.count(unclear, 'rule')} inconclusive"
    if is_first_run(result):
        return f"no limit broken, {rules}," if unclear else "fairness limits hold, first run,"
    return f"no regression shown, {rules}," if unclear else "no fairness regression"


def _failure(result: GateResult) -> str:
    binding = [rule for rule in result.rules if not rule.advisory]
    failed = {check for rule in binding for check in rule.failed}
    if "regression" in failed:
        return "fairness regressed"
    if "bound" in failed:
        return "a fairness limit is broken"
    if not any(rule.outcome is Outcome.FAIL for rule in binding):
        return "too little evidence for a pass"
    return "the fairness gate failed"


def is_first_run(result: GateResult) -> bool:
    """Return whether there was no baseline to compare with."""
    return result.overlap is None


def _without_verdict(result: GateResult, title: str) -> Headline:
    if result.overlap is not None and result.overlap.incompatible:
        found = figures.count(len(result.overlap.incompatible), "difference")
        return _plain(
            title,
            f"{found} in what must match: restore it, or accept this run as the new baseline.",
        )
    problems = list(result.evidence.problems) or ["no rule could be evaluated"]
    return _plain(title, f"{problems[0][:1].upper()}{problems[0][1:]}.")


def _leading(result: GateResult) -> int | None:
    """Return which rule leads: what failed, then what could not tell, else what comes first."""
    order = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1}
    ranked = sorted(
        (rule.advisory, order.get(rule.outcome, 2), number)
        for number, rule in enumerate(result.rules)
        if rule.value is not None
    )
    return ranked[0][-1] if ranked else None


def _context(rule: RuleResult, once: int) -> str:
    """Return what the figure is to be read beside: the baseline, the limit, the interval."""
    parts = []
    change = rule.change
    if change is not None and not change.discordant:
        same = rule.value is not None and abs(rule.value - change.base) < _SAME
        parts.append("as in the baseline" if same else _COMMON_UNCHANGED)
    elif change is not None:
        moved = figures.signed(figures.movement(change, rule.metric), rule.metric)
        parts.append(f"was {figures.value(change.base, rule.metric)}")
        parts.append(f"{moved}{figures.points(rule.metric)}")
        parts.append(figures.probability(change.p_corrected))
    if change is None or "bound" in rule.failed:
        limits = [figures.limit(name, bound, rule.metric) for name, bound in rule.bounds.items()]
        parts += [f"allowed {' and '.join(limits)}"] if limits else []
    if "unreadable" in rule.failed:
        parts.append("but more cases are no longer decided")
    if change is not None and is_underpowered(rule):
        smallest = f"only changes of at least {detectable(change, rule.metric)} could be seen"
        seen = math.isfinite(change.minimum_detectable)
        parts.append(smallest if seen else "too few sources to see any change")
    elif rule.outcome is Outcome.INCONCLUSIVE:
        parts.append("inconclusive")
    told = [", ".join(parts)] if parts else []
    told += [not_compared(once)] if once else []
    return f" ({'; '.join(told)})" if told else ""


def _affected(
    result: GateResult, rule: RuleResult, before: Sequence[Measurement]
) -> Sequence[tuple[str, str]]:
    """Return the terms with the highest values; of a regression, those that rose most."""
    names = names_of_terms(result.plan, rule.suite)
    now = _term_values(result.measurements, rule)
    base = _term_values(before, rule)
    worst = {t: number for t, number in now.items() if number > 0 and _inside(t, rule, result)}
    if "regression" in rule.failed and base:
        rise = {term: number - base.get(term, 0.0) for term, number in worst.items()}
        worst = {term: number for term, number in rise.items() if number > 0}
    ranked = sorted(worst, key=lambda term: -worst[term])[:_NAMED]
    return [
        (names.get(term, name(term)), _against(now[term], base.get(term), rule.metric))
        for term in ranked
    ]


def _term_values(measurements: Sequence[Measurement], rule: RuleResult) -> dict[str, float]:
    return {
        m.where["term"]: m.value
        for m in measurements
        if m.metric == rule.metric
        and m.suite == rule.suite
        and set(m.where) == {"term"}
        and m.value is not None
    }


def _against(now: float, base: float | None, metric: str) -> str:
    shown = figures.value(now, metric)
    was = figures.value(base, metric)
    return shown if base is None or was == shown else f"{shown} (was {was})"


def _inside(term: str, rule: RuleResult, result: GateResult) -> bool:
    category, only = rule.where.get("category"), rule.where.get("term")
    if only is not None:
        return False
    return category is None or any(
        pair.term == term and pair.category == category
        for pair in result.plan.pairs
        if pair.suite == rule.suite
    )
