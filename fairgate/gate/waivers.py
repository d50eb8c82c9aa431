"""Failures that the policy waives until a date: faults of waivers, and what becomes of the rules.

A waived rule keeps its outcome `fail` and does not fail the gate. Nothing else is waived: missing
values, answers or baselines end a run as they do without waivers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import Better, Outcome, RuleResult, Slice, Waiver, slice_of
from fairgate.domain.parity import PARITY, SCORE, Level, NamedNode, ParityResult
from fairgate.domain.wording import harmless, listed, quoted, suggestion, within_sentence
from fairgate.gate.rules import expand_rules, parity_rules
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Metric
from fairgate.policy.schema import Policy, WaiverPolicy
from fairgate.policy.yaml_text import YamlFault
from fairgate.suites.suite import Suite

_COMPARED = frozenset({"regression", "budget", "unreadable"})
"""Checks of a metric that compare with baseline or anchor: its bound's waiver covers none."""
_SINCE = "/baseline"
"""Follows a metric's name in a waiver that covers a worsening, too."""
_MOST_DAYS = 366


def day_problem(last_day: str, today: dt.date | None) -> str:
    """Return why an entry may not end on a day: it is none, or lies too far ahead; else nothing.

    `today` None asks only for a day.
    """
    try:
        day = dt.date.fromisoformat(last_day)
    except ValueError:
        return f"{quoted(last_day)} is no date; expected YYYY-MM-DD"
    is_far = today is not None and (day - today).days > _MOST_DAYS
    return f"{last_day} is more than {_MOST_DAYS} days ahead; give an earlier day" * is_far


def waives(entry: WaiverPolicy, slice_: Slice) -> bool:
    """Return whether an entry names exactly a rule: equal dimensions, never a part of them.

    It waives every rule of its metric that the policy has for just this slice.
    """
    metric, suite, where = slice_
    names = (metric,) if metric.startswith(PARITY) else (metric, metric + _SINCE)
    is_same_rule = entry.rule in names and entry.suite in (None, suite)
    return is_same_rule and frozenset(entry.where.items()) == where


def covers_a_worsening(entry: WaiverPolicy) -> bool:
    """Return whether an entry names what became worse; a metric's then covers its bound, too."""
    return entry.rule.endswith(_SINCE)


def waiver_problems(
    policy: Policy, plan: TestPlan, suites: Mapping[str, Suite], today: dt.date | None
) -> Iterator[YamlFault]:
    """Yield (path in the policy, message) for entries that name no single rule, or no usable date.

    One whose date is past is no problem: its rule decides again. `today` None asks for no date.
    """
    binding: dict[Slice, bool] = {}
    if policy.waivers:
        for rule in expand_rules(policy, plan):
            fails = not (rule.advisory or rule.gate.report)
            binding[rule.slice] = binding.get(rule.slice, False) or fails
        for question in parity_rules(policy, suites):
            binding[question.slice] = binding.get(question.slice, False) or (
                not question.gate.advisory
            )
    for position, entry in enumerate(policy.waivers):
        matches = [slice_ for slice_ in binding if waives(entry, slice_)]
        again = [
            n
            for n in range(position)
            if policy.waivers[n].who == entry.who
            and any(waives(policy.waivers[n], slice_) for slice_ in matches)
        ]
        name, why = listed([_name(entry)[:150]]), ""
        is_parity = entry.rule.startswith(PARITY)
        if not matches:
            names = [_named(by, where, entry.suite and suite) for by, suite, where in binding]
            why = f"no rule is {name}; {suggestion(name[1:-1], names)}"
        elif len(matches) > 1:
            several = listed(suite for _, suite, _ in matches)
            why = f"{name} is a rule of several suites; set `suite` to {several}"
        elif not binding[matches[0]]:
            why = f"{name} is advisory or only reported, it fails no build; remove the entry"
        elif again:
            why = f"{name} is waived by `waivers[{again[0]}]` too; keep one of them"
        elif is_parity and entry.who is None:
            why = "a waiver of parity says whom it is about: add `who`, as the report names them"
        elif not is_parity and entry.who is not None:
            why = f"{name} is about nobody by name; take `who` out, or name its slice by `where`"
        if why:
            yield ("waivers", position, "rule"), why
        elif entry.who is not None and (why := _nobody(entry.who, plan, matches[0][1])):
            yield ("waivers", position, "who"), why
        metric = METRICS.get(entry.rule.removesuffix(_SINCE))
        most = 1.0 if metric is None else max(abs(metric.least), abs(metric.greatest))
        if abs(entry.up_to) > most and not entry.rule.startswith(f"{PARITY}{SCORE}"):
            why = f"{name} is never beyond {most:g}, and {entry.up_to:g} waives all"
            yield ("waivers", position, "up_to"), f"{why}; give a value that it can have"
        if why := day_problem(entry.expires, today):
            yield ("waivers", position, "expires"), why


def _nobody(who: str, plan: TestPlan, suite: str) -> str:
    """Return that no question is about somebody of that name, or several; empty where one is."""
    wide, labels = {str(Level.EVERYBODY)}, dict[str, str]()
    several: dict[str, dict[str, None]] = {}
    for unit in plan.outline:
        if unit.is_control or unit.suite != suite:
            continue
        category, term = unit.dimensions.get("category", ""), unit.dimensions.get("term", "")
        phrase = within_sentence(unit.names.get("noun_phrase", ""))
        label = "/".join(filter(None, (category, term)))
        labels |= {term: label, label: label, f"{phrase} ": label}
        several.setdefault(term, {})[label] = None
        wide.add(category)
    labels |= {each: each for each in wide}
    if who not in labels:
        meant = labels.get(f"{who} ")
        hint = f"write `{meant}`" if meant else suggestion(who, sorted({*labels.values()}))
        return f"nobody is called {quoted(who)}; {hint}"
    if who not in wide and len(several.get(who, ())) > 1:
        return f"{quoted(who)} is {listed(sorted(several[who]), last='and')}; name one of them so"
    return ""


def ended_notices(policy: Policy, today: dt.date | None) -> Iterator[str]:
    """Yield a sentence for each waiver whose last day is past; `today` None asks for no date."""
    for entry in policy.waivers:
        if today is not None and dt.date.fromisoformat(entry.expires) < today:
            name = _name(entry)
            yield (
                f"the waiver of {harmless(entry.owner)} for `{harmless(name)}` ended on "
                f"{entry.expires}, and its rule decides again: remove the entry, or give a later "
                "day"
            )


def _name(entry: WaiverPolicy) -> str:
    who = [("who", entry.who)] if entry.who else []
    return _named(entry.rule, [*entry.where.items(), *who], entry.suite)


def _named(rule: str, where: Iterable[tuple[str, str]], suite: str | None) -> str:
    parts = [*sorted(where), *([("suite", suite)] if suite else [])]
    return f"{rule} {{{', '.join(f'{part}: {value}' for part, value in parts)}}}" if parts else rule


def _entries(result: RuleResult, policy: Policy) -> list[WaiverPolicy]:
    slice_ = slice_of(result.metric, result.suite, result.where)
    return [entry for entry in policy.waivers if waives(entry, slice_)]


def is_worse(value: float, than: float, metric: Metric, limits: Mapping[str, float]) -> bool:
    """Whether a value is worse than another by a rule's limits, or by the metric without any.

    Between `min` and `max`, worse is what lies farther beyond the limit that `value` breaks.
    """
    if "max_abs" in limits or (not limits and metric.better is Better.TOWARD_ZERO):
        return abs(value) > abs(than)
    falls = metric.better is Better.HIGHER
    if limits:
        falls = "max" not in limits or ("min" in limits and value < limits["min"])
    return value < than if falls else value > than


def with_waiver(result: RuleResult, policy: Policy, day: str) -> RuleResult:
    """Return the result with the waiver of what fails, or whose waiver ended and when.

    Of parity every node that fails needs a waiver of its own. `day` is YYYY-MM-DD, as a waiver's
    last day; empty: no waiver counts.
    """
    if not day or not result.fails_gate:
        return result
    entries = _entries(result, policy)
    if result.parity is None:
        needed = [(entries[0] if entries else None, result.value)]
    else:
        needed = [
            (
                next((e for e in entries if e.who in _names_of(node, result.parity)), None),
                node.estimate,
            )
            for node in result.failing
        ]
    waivers, reasons = [], []
    for entry, value in needed:
        if entry is None:
            reasons.append("")
            continue
        why = _uncovered(entry, result, value, day)
        if why:
            reasons.append(why)
        else:
            waivers.append(
                Waiver(
                    owner=harmless(entry.owner),
                    reason=harmless(entry.reason),
                    up_to=entry.up_to,
                    expires=entry.expires,
                )
            )
    if reasons or not waivers:
        return replace(result, reasons=[*result.reasons, *filter(None, reasons)])
    first = min(waivers, key=lambda waiver: waiver.expires)
    return replace(result, reasons=[*result.reasons, str(first)], waiver=first)


def _names_of(node: NamedNode, parity: ParityResult) -> tuple[str, ...]:
    """Return the names of a node in waivers: its own, or an identity's with its category.

    The name alone is a category's, or everybody's, where one of these is called so, too.
    """
    if node.level is not Level.IDENTITY:
        return (node.name,)
    wide = {str(Level.EVERYBODY), *(one.person[0] for one in parity.identities)}
    return ("/".join(node.who[0]), *(() if node.name in wide else (node.name,)))


def _uncovered(entry: WaiverPolicy, result: RuleResult, value: float | None, day: str) -> str:
    """Return why an entry does not cover a failure; empty where it does."""
    owner, why = harmless(entry.owner), harmless(entry.reason)
    if entry.expires < day:
        return f"the waiver of {owner} ended on {entry.expires} ({why})"
    if lacking := result.doubts.open_evidence:
        return f"the waiver of {owner} does not cover too little evidence: {lacking}"
    if (
        result.parity is None
        and _COMPARED.intersection(result.failed)
        and not covers_a_worsening(entry)
    ):
        return (
            f"the waiver of {owner} covers no regression; to waive a known regression as well, "
            f"write `rule: {entry.rule}{_SINCE}`"
        )
    if result.parity is not None:
        is_beyond = value is None or abs(value) > entry.up_to
    else:
        metric = METRICS[result.metric]
        is_beyond = value is None or is_worse(value, entry.up_to, metric, result.bounds)
    return f"the waiver of {owner} holds up to {entry.up_to:g} only ({why})" * is_beyond


def waiver_notices(results: Sequence[RuleResult], policy: Policy) -> Iterator[str]:
    """Yield a sentence for each entry whose rules pass."""
    for entry in policy.waivers:
        outcomes = {result.outcome for result in results if entry in _entries(result, policy)}
        if outcomes == {Outcome.PASS}:
            name = harmless(_name(entry)).replace("`", "'")
            owner = harmless(entry.owner)
            yield f"the waiver of {owner} for `{name}` is no longer needed, it passes: remove it"
