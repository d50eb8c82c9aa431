"""What each rule asked, by which limit, and what was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fairgate.domain.parity import SCORE, Against, Level, rule_name
from fairgate.features.record import words
from fairgate.features.record.figures import size_text
from fairgate.features.record.history import History
from fairgate.features.record.model import Claim, Difference, Selection, Unit, Waived
from fairgate.features.record.run import Identity, Measured, Named, Rule, Run, Scan, Selected
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.parity import OVERLAP, RULES, OutcomeColumn

_MOST_LISTED = 3

FOUR_FIFTHS = 0.8
"""Impact ratios below it are marked, because people ask for that; nothing fails by it."""


def claims_of(run: Run, history: History) -> Iterator[Claim]:
    """Yield what each rule asked and what came of it, in the order of the run."""
    scans: defaultdict[tuple[str, str], list[Scan]] = defaultdict(list)
    for scan in run.parity:
        scans[scan.suite, rule_name(scan.outcome, scan.against)].append(scan)
    measured = {
        (each.metric, each.suite, tuple(sorted(each.where.items()))): each
        for each in run.measurements
    }
    for rule in run.rules:
        own = scans[rule.suite, rule.metric]
        entry, written = history.limit(rule)
        limits = dict(rule.bounds)
        if own:
            claim = _parity_claim(run, rule, own.pop(0))
        else:
            where = tuple(sorted(rule.where.items()))
            claim = _metric_claim(run, rule, measured.get((rule.metric, rule.suite, where)))
            # What compares with an accepted run is no bound, nor told before there is one.
            for name, change in (("regression", rule.change), ("budget", rule.since_anchor)):
                most = change.margin if change else (entry or {}).get(name)
                if isinstance(most, int | float) and not isinstance(most, bool):
                    limits[name] = most
        waived = rule.waived
        yield Claim(
            rule=rule.metric,
            suite=rule.suite,
            where=rule.where,
            limits=limits,
            is_standard=None if entry is None else not entry.keys() & rule.bounds.keys(),
            limit_set=written,
            outcome=rule.outcome,
            binding=not (rule.advisory or rule.reported),
            reasons=rule.reasons,
            waived=None
            if waived is None
            else Waived(**waived.model_dump(), written=history.waiver(rule, waived)),
            **claim,
        )


def _parity_claim(run: Run, rule: Rule, scan: Scan) -> dict[str, Any]:
    """Return the members that a question about an outcome adds to its claim."""
    outcome = RULES[rule.metric][0]
    unit, scale = _unit(run, scan, outcome.columns[0].column)
    limit = next(iter(rule.bounds.values()), None)
    people = len({each.who for each in scan.identities})
    counts = {
        "sources": scan.sources, "identities": people, "control prompts": scan.control_prompts
    }  # fmt: skip
    reach = {level: least for level, least in scan.reach.items() if least is not None}
    return {
        "question": f"{scan.outcome}: {words.QUESTIONS[scan.against]}",
        "unit": unit,
        "scale": scale,
        "standard": outcome.max if scan.is_now else outcome.regression,
        "counts": counts if scan.sources else {},
        "named": [difference_of(run, scan, each) for each in scan.named],
        "test": words.TESTS[scan.against],
        "level": scan.alpha,
        "p": None if rule.outcome == "not-evaluated" else scan.p,
        "reach": reach,
        "missed": _missed(rule, scan, reach, limit),
        "decides": _decides(rule, scan, unit, limit),
    }


def _metric_claim(run: Run, rule: Rule, measured: Measured | None) -> dict[str, Any]:
    """Return the members that a rule about a metric adds to its claim."""
    metric = METRICS.get(rule.metric)
    first = rule.change or rule.since_anchor
    unit: Unit = "points" if metric and metric.is_rate else "value"
    counts = {"cases": measured.decided, "not decided": measured.inconclusive} if measured else {}
    scale = "not known: FairGate has no such metric"
    if metric is not None:
        ends = f"{size_text(metric.least, unit)} to {size_text(metric.greatest, unit)}"
        scale = f"{'points: hundredths' if metric.is_rate else 'its own unit'}, {ends}"
        scale += f"; {metric.better} is better"
    return {
        "question": f"{metric.title if metric else rule.metric}: is it within the limit?",
        "unit": unit,
        "scale": scale,
        "counts": counts,
        "value": rule.value,
        "interval": rule.interval,
        "base": first.base if first else None,
        "test": f"{first.method}, against the accepted run" if first else words.NO_TEST,
        "level": run.regression_level if first else None,
        "p": first.p_corrected if first else None,
        "missed": "none: only a scan has a reach",
        "decides": "; ".join(rule.reasons),
    }


def _unit(run: Run, scan: Scan, column: str) -> tuple[Unit, str]:
    """Return the unit of a column's figures, and in words what it is and its scale."""
    if scan.outcome == SCORE:
        oracle = run.fingerprint.get(scan.suite, {}).get("oracle", "")
        ends = re.search(r"score \d+ ([-+.\d]+) to ([-+.\d]+)", oracle)
        scale = f"{ends[1]} to {ends[2]}" if ends else "not known: no policy or table states one"
        return "score", f"score, as the answers give it; scale {scale}"
    noun = words.COUNTED.get(column, ("answers", ""))[0]
    return "points", f"points: hundredths of {noun}, -100 to 100"


def _missed(rule: Rule, scan: Scan, reach: Mapping[str, float], limit: float | None) -> str:
    """Say what the reach means beside the limit."""
    if not reach:
        if scan.sources and not scan.unjudged and rule.outcome != "not-evaluated":
            return "not known: within no source is there a difference that could be noise"
        why = scan.unjudged or "; ".join(rule.reasons)
        return f"not known: {why}"
    wide = [level for level, least in reach.items() if limit is not None and least > limit]
    if not limit:
        return "the limit is 0: what is smaller than the reach can pass unseen"
    if not wide:
        return "each is below the limit"
    who = ", ".join(level if level == Level.EVERYBODY else f"one {level}" for level in wide)
    return f"a difference of the size of the limit is missed more than twice in ten for {who}"


def _decides(rule: Rule, scan: Scan, unit: Unit, limit: float | None) -> str:
    """Say what made a question pass or fail, or neither."""
    if rule.outcome in ("not-evaluated", "inconclusive") or limit is None:
        return "; ".join(rule.reasons)
    key = next(iter(rule.bounds))

    def is_beyond(estimate: float) -> bool:
        return (abs(estimate) if scan.is_now else estimate) > limit

    named = [
        f"{_person(node)} {size_text(node.estimate, unit)} is "
        f"{'above' if is_beyond(node.estimate) else 'within'} it"
        for node in scan.named
    ]
    text = f"`{key}` applies to those whom the scan names: {', '.join(named) or 'nobody'}"
    by_itself = {node.who[0] for node in scan.named if node.level == Level.IDENTITY and node.who}
    unnamed = {
        each.who: f"{each.who} {size_text(each.estimate, unit)}"
        for each in sorted(scan.identities, key=lambda each: -abs(each.estimate))
        if is_beyond(each.estimate) and each.who not in by_itself
    }
    if unnamed:
        listed_first = ", ".join([*unnamed.values()][:_MOST_LISTED])
        more = f" and {len(unnamed) - _MOST_LISTED} more" * (len(unnamed) > _MOST_LISTED)
        text += (
            f". Larger than it, and not named: {listed_first}{more}; beyond who is named, the scan "
            "does not tell them from chance and wording"
        )
    return text


def difference_of(run: Run, scan: Scan, each: Named | Identity) -> Difference:
    """Return somebody beside what they are compared with."""
    outcome = RULES[rule_name(scan.outcome, scan.against)][0]
    column = outcome.by_column.get(each.column)
    unit, scale = _unit(run, scan, each.column)
    node = each if isinstance(each, Named) else None
    event = f"{outcome.noun} {column.event}" if column else each.column
    if scan.against is not Against.CONTROL:
        event += f", beside the {scan.against}"

    def mean(value: float | None) -> float | None:
        return None if value is None or column is None else _as_counted(value, column)

    return Difference(
        suite=scan.suite,
        who=_person(each),
        outcome=event,
        unit=unit,
        scale=scale,
        estimate=each.estimate,
        interval=_ends((each.low, each.high)),
        level=round(1 - scan.alpha, 6),
        mean=mean(each.rate),
        beside=scan.beside,
        beside_mean=mean(each.control),
        before=mean(node.before) if node else None,
        beside_before=mean(node.control_before) if node else None,
        p=node.p if node else None,
        phrases=node.by_phrase if node else {},
    )


def _as_counted(value: float, column: OutcomeColumn) -> float:
    """Return a mean in the column's own sense: a score as it was given, documents as lost."""
    return round(1 + value, 6) if column.column == OVERLAP else column.shown(value)


def _person(node: Named | Identity) -> str:
    if isinstance(node, Identity):
        return node.who
    if node.level is Level.IDENTITY and node.who:
        return node.who[0]
    return str(node.level) + f" ({', '.join(node.who)})" * (node.level is Level.CATEGORY)


def selections_of(run: Run) -> Iterator[Selection]:
    """Yield how often each identity is selected, beside the highest of its category."""
    rates: defaultdict[tuple[str, str], list[Selected]] = defaultdict(list)
    for each in run.selection:
        rates[each.suite, each.who.partition("/")[0]].append(each)
    for each in run.selection:
        peers = rates[each.suite, each.who.partition("/")[0]]
        most = max(peer.rate for peer in peers)
        yield Selection(
            **each.model_dump(),
            selected=round(each.rate * each.sources, 2),
            below_four_fifths=each.ratio is not None and each.ratio < FOUR_FIFTHS,
            highest=[peer.who for peer in peers if peer.rate == most],
            level=run.confidence,
        )


def _ends(ends: tuple[float | None, float | None]) -> tuple[float, float] | None:
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
