"""Which changes of a policy make it easier to pass: what a reviewer of the change must see.

Nothing here judges the change; it is listed in words, with both values.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from fairgate.policy.gates import MOST_UNREADABLE, UNREADABLE, GatePolicy
from fairgate.policy.schema import Policy

_LOWER_IS_STRICTER = ("max", "max_abs")
_STRICTNESS = ("significant", "estimate", "interval")
_SUITE_FIELDS = frozenset({"id", "kind"})


def loosened(before: Policy, after: Policy) -> list[str]:
    """Return a sentence for each bound, rule or threshold that `after` holds less strictly."""
    return [
        *_rules(before, after),
        *_replaced_default(before, after),
        *_thresholds(before, after),
        *_corrections(before, after),
        *_system(before, after),
        *_suites(before, after),
        *_judge(before, after),
        *_quarantine(before, after),
    ]


def _rules(before: Policy, after: Policy) -> Iterator[str]:
    remaining: dict[str, list[GatePolicy]] = defaultdict(list)
    for gate in after.gates:
        remaining[_place(gate)].append(gate)
    for gate in before.gates:
        candidates = remaining[_place(gate)]
        if not candidates:
            yield f"rule removed: {_place(gate)}"
            continue
        now = candidates.pop(0)
        for change in (*_rule(gate, now), *_stops(before, gate, after, now)):
            yield f"{_place(gate)}: {change}"


def _replaced_default(before: Policy, after: Policy) -> Iterator[str]:
    """Report a new rule about unreadable answers that takes a stricter default rule's place."""
    for suite in after.suites:
        then, now = ([g for g in p.gates if _is_unreadable(g, suite.id)] for p in (before, after))
        as_strict = any(
            gate.max is not None
            and gate.max <= MOST_UNREADABLE
            and not (gate.advisory or gate.for_each)
            for gate in now
        )
        if now and not then and not as_strict:
            yield (
                f"{UNREADABLE} of suite {suite.id}: the default limit of {MOST_UNREADABLE:g} is "
                "replaced by a less strict rule"
            )


def _is_unreadable(gate: GatePolicy, suite: str) -> bool:
    is_of_all = not gate.report and not gate.where
    return gate.metric == UNREADABLE and gate.suite in (None, suite) and is_of_all


def _place(gate: GatePolicy) -> str:
    where = [f"{name}={value}" for name, value in sorted(gate.where.items())]
    where += [f"suite={gate.suite}"] if gate.suite else []
    where += [f"for each {gate.for_each}"] if gate.for_each else []
    return f"{gate.metric} ({', '.join(where)})" if where else gate.metric


def _rule(before: GatePolicy, after: GatePolicy) -> Iterator[str]:
    for name in _LOWER_IS_STRICTER:
        yield from _bound(name, getattr(before, name), getattr(after, name), sign=1)
    yield from _bound("min", before.min, after.min, sign=-1)
    then, now = before.regression, after.regression
    if then is not None and now is None:
        yield "comparison with the baseline removed"
    if then is not None and now is not None:
        yield from _bound("margin", then.margin, now.margin, sign=1)
        yield from _bound("budget", then.budget, now.budget, sign=1)
        yield from _bound("detect", then.detect, now.detect, sign=1)
        yield from _bound("sd", then.sd, now.sd, sign=-1)
        if now.strict and not then.strict:
            yield "strict switched on: a change within the margin no longer counts as one"
    if after.report and not before.report:
        yield "only reported: the value has no limit any more"
    if after.advisory and not before.advisory:
        yield "made advisory: it no longer fails the build"
    if _STRICTNESS.index(after.evidence) < _STRICTNESS.index(before.evidence):
        yield f"evidence lowered from {before.evidence} to {after.evidence}"


def _stops(before: Policy, then: GatePolicy, after: Policy, now: GatePolicy) -> Iterator[str]:
    """Report where a rule's own `on_inconclusive` is loosened; the policy's is reported once."""
    if then.on_inconclusive is None and now.on_inconclusive is None:
        return
    if _when_open(before, then) == "fail" and _when_open(after, now) == "warn":
        yield "an inconclusive result no longer fails the build"


def _when_open(policy: Policy, gate: GatePolicy) -> str:
    """Return what an inconclusive result of a rule does; an open `interval` bound stops a build."""
    is_bound = any(limit is not None for limit in (gate.max, gate.min, gate.max_abs))
    default = "fail" if is_bound and gate.evidence == "interval" else policy.on_inconclusive
    return gate.on_inconclusive or default


def _bound(name: str, then: float | None, now: float | None, *, sign: int) -> Iterator[str]:
    if then is None:
        return
    if now is None:
        yield f"{name} {then:g} removed"
    elif sign * (now - then) > 0:
        yield f"{name} {'raised' if sign > 0 else 'lowered'} from {then:g} to {now:g}"


def _thresholds(before: Policy, after: Policy) -> Iterator[str]:
    if before.name != after.name:
        yield (
            f"name changed from {before.name} to {after.name}: another baseline is compared with, "
            "or none"
        )
    if before.seed != after.seed:
        yield f"seed changed from {before.seed} to {after.seed}: what is drawn at random is another"
    yield from _bound("confidence", before.confidence, after.confidence, sign=1)
    if after.confidence < before.confidence:
        yield (
            f"confidence lowered from {before.confidence:g} to {after.confidence:g}: intervals are "
            "narrower, so fewer results stay open"
        )
    yield from _bound("max_invalid", before.max_invalid, after.max_invalid, sign=1)
    yield from _bound("min_decided", before.min_decided, after.min_decided, sign=-1)
    yield from _bound("min_overlap", before.min_overlap, after.min_overlap, sign=-1)
    if before.constant_answers == "refuse" and after.constant_answers == "allow":
        yield "constant_answers changed from refuse to allow: answers that show nothing may pass"
    if before.on_inconclusive == "fail" and after.on_inconclusive == "warn":
        yield "on_inconclusive changed from fail to warn"


def _corrections(before: Policy, after: Policy) -> Iterator[str]:
    if before.correction == "none" and after.correction == "holm":
        yield "correction for several rules switched on: each rule rejects less easily"
    elif before.correction == "holm" and after.correction == "none":
        yield "correction for several rules switched off: fewer results stay open"
    elif after.correction == "holm" and _tests(after) > _tests(before):
        yield "more comparisons are corrected for together: each rule rejects less easily"


def _tests(policy: Policy) -> int:
    """Count what is corrected for together, as far as the policy alone says.

    These are comparisons with baseline and anchor, and those between identities.
    """
    return sum(
        (1 if gate.suite else len(policy.suites)) * _tests_of(gate)
        for gate in policy.gates
        if not gate.report
    )


def _tests_of(gate: GatePolicy) -> int:
    from fairgate.metrics.catalogue import BY_ID

    known = BY_ID.get(gate.metric)
    if known is not None and known.compares_terms:
        return 1
    if gate.regression is None:
        return 0
    return 1 if gate.regression.budget is None else 2


def _system(before: Policy, after: Policy) -> Iterator[str]:
    """Name every change of the system under test: another one may pass where this one fails."""
    then, now = before.system.model_dump(mode="json"), after.system.model_dump(mode="json")
    for name in dict.fromkeys((*then, *now)):
        if now.get(name) != then.get(name):
            change = f"from {_shown(then.get(name))} to {_shown(now.get(name))}"
            yield f"system: {name} changed {change}"


def _suites(before: Policy, after: Policy) -> Iterator[str]:
    """Name every change of what is tested: whether it is easier cannot be seen from the policy."""
    now = {suite.id: suite.model_dump(mode="json") for suite in after.suites}
    for suite in before.suites:
        if suite.id not in now:
            yield f"suite removed: {suite.id}"
            continue
        for name, then in suite.model_dump(mode="json").items():
            if name not in _SUITE_FIELDS and now[suite.id].get(name) != then:
                yield (
                    f"suite {suite.id}: {name} changed from {_shown(then)} to "
                    f"{_shown(now[suite.id].get(name))}"
                )


def _judge(before: Policy, after: Policy) -> Iterator[str]:
    """Name every change of the judge: another one, or another floor, may call fewer biased."""
    then, now = (
        {} if one.judge is None else one.judge.model_dump(mode="json") for one in (before, after)
    )
    for name in dict.fromkeys((*then, *now)):
        if now.get(name) != then.get(name):
            change = f"from {_shown(then.get(name))} to {_shown(now.get(name))}"
            yield f"judge: {name} changed {change}"


def _quarantine(before: Policy, after: Policy) -> Iterator[str]:
    then = {(entry.suite, entry.case): entry.until for entry in before.quarantine}
    for entry in after.quarantine:
        until = then.get((entry.suite, entry.case))
        if until is None:
            yield f"case quarantined: {entry.case} until {entry.until}"
        elif entry.until > until:
            yield f"quarantine of {entry.case} extended from {until} to {entry.until}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
