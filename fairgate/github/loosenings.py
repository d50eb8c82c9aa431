"""What a change holds less strictly than the base: rules, settings, references, waivers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import Outcome, RuleResult, Slice, slice_of
from fairgate.domain.schema import Strict
from fairgate.domain.wording import harmless
from fairgate.gate.baseline import Reference
from fairgate.gate.gate import GateResult
from fairgate.gate.rules import Rule, expand_rules
from fairgate.gate.waivers import is_worse, waives
from fairgate.github.sides import Side, differ
from fairgate.policy.schema import Policy

_STRICTNESS = ("significant", "estimate", "interval")
_GONE, _WHOLE = 2.0, 1.0
"""How much is loosened: all of a rule; as much as a limit can be, or what cannot be weighed."""
_Found = tuple[float, str]
"""How much, and the sentence; a limit that is moved counts by its share of the metric's range."""


_OfRule = tuple[float, str, frozenset[str]]
"""The same of a rule, and which of its checks it is about."""
_ANY: frozenset[str] = frozenset()
_BOUND = frozenset({"bound", "identity"})
_CHANGE = frozenset({"regression", "budget", "unreadable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosening:
    """Something that a change holds less strictly than the base."""

    size: float
    sentence: str
    slices: frozenset[Slice] = frozenset()
    """The rules that it is about, where it is about single ones."""
    suite: str | None = None
    """The suite whose rules it is about, where it is; else it is about all of them."""
    checks: frozenset[str] = frozenset()
    """Which of a rule's checks it is about; empty: all of them."""
    of_evidence: bool = False
    """Whether it is about how much evidence there must be."""

    def may_explain(self, rule: RuleResult) -> bool:
        """Return whether a rule may fail before it and pass after."""
        if self.checks and rule.failed and self.checks.isdisjoint(rule.failed):
            return False
        if self.slices:
            return slice_of(rule.metric, rule.suite, rule.where) in self.slices
        return self.suite in (None, rule.suite)


def worst_first(
    loosened: Iterable[Loosening], base: GateResult | None, proposed: GateResult | None
) -> list[Loosening]:
    """Return those first that let pass what stops the build by the base, then the largest.

    Of these the ones about a single rule come before those about a suite, or everything. A side
    that was not judged is None: without the base's result only the size is known.
    """
    stopped = [] if base is None else [rule for rule in base.rules if _stops_build(rule)]
    left = [] if proposed is None else [rule for rule in proposed.rules if _stops_build(rule)]
    slices = {slice_of(rule.metric, rule.suite, rule.where) for rule in left}
    passed = [r for r in stopped if slice_of(r.metric, r.suite, r.where) not in slices]
    lacked = base is not None and bool(base.evidence.problems or base.incompatible)
    lacked &= proposed is None or not (proposed.evidence.problems or proposed.incompatible)

    def key(loosening: Loosening) -> tuple[int, float]:
        explains = any(loosening.may_explain(rule) for rule in passed)
        if (loosening.slices and explains) or (loosening.of_evidence and lacked):
            return 0, -loosening.size
        return 1 if explains or (lacked and not loosening.slices) else 2, -loosening.size

    return sorted(loosened, key=key)


def _stops_build(rule: RuleResult) -> bool:
    is_open = rule.outcome is not Outcome.PASS and not (rule.warns or rule.is_reported)
    return is_open and not (rule.advisory or rule.waiver or rule.is_first_run)


def loosened(before: Policy, after: Policy, plans: tuple[TestPlan, TestPlan]) -> list[Loosening]:
    """Return the rules and settings that are less strict in `after`, the largest difference first.

    `plans` are theirs, in the same order.

    Compared are the rules as they decide: expanded, with the default ones, whatever lines of the
    policies they come from. A rule is held where the other policy has one for the same slice that
    is nowhere weaker; so no table of answers fails the one policy and passes the other unlisted.
    """
    then, now = (expand_rules(p, plan) for p, plan in zip((before, after), plans, strict=True))
    of_policy = (
        *_corrections(before, then, after, now),
        *_thresholds(before, after),
        *_parts("system", before.system, after.system),
        *_parts("reference", before.reference, after.reference),
        *_parts("judge", before.judge, after.judge),
    )
    evidence = _evidence(before, after)
    loosenings = [
        *_rules(before, then, after, now),
        *(Loosening(size=size, sentence=sentence) for size, sentence in of_policy),
        *(Loosening(size=size, sentence=text, of_evidence=True) for size, text in evidence),
        *_suites(before, after),
        *_quarantine(before, after),
        *_waivers(before, then, after, now),
    ]
    return sorted(loosenings, key=lambda loosening: -loosening.size)


def _rules(
    before: Policy, then: Sequence[Rule], after: Policy, now: Sequence[Rule]
) -> Iterator[Loosening]:
    """Yield what is weaker than before of each line of the policy, once for all of its slices."""
    held: dict[Hashable, list[Rule]] = defaultdict(list)
    for rule in now:
        held[_slice(rule)].append(rule)
    suites = {suite.id for suite in after.suites}
    slices: dict[int, list[Rule]] = defaultdict(list)
    weaker: dict[tuple[int, _OfRule], list[Rule]] = defaultdict(list)
    for rule in (rule for rule in then if rule.suite in suites):
        slices[rule.position].append(rule)
        changes = [[*_weaker(before, rule, after, other)] for other in held[_slice(rule)]]
        gone: list[_OfRule] = [(_GONE, "rule removed", _ANY)]
        for change_of_rule in min(
            changes, default=gone, key=lambda many: sum(size for size, *_ in many)
        ):
            weaker[rule.position, change_of_rule].append(rule)
    for (position, (size, change, checks)), rules in weaker.items():
        line = rules[0]
        if len(rules) == len(slices[position]):
            where = {"for each": line.gate.for_each} if line.gate.for_each else {}
            label = _place(line, line.gate.suite, line.gate.where, where)
            about, sentence = frozenset(map(_slice, rules)), f"{label}: {change}"
            yield Loosening(size=size, sentence=sentence, slices=about, checks=checks)
        else:
            for rule in rules:
                label = _place(rule, rule.suite, rule.where)
                about, sentence = frozenset({_slice(rule)}), f"{label}: {change}"
                yield Loosening(size=size, sentence=sentence, slices=about, checks=checks)


def _slice(rule: Rule) -> Slice:
    return slice_of(rule.metric.id, rule.suite, rule.where)


def _place(
    rule: Rule,
    suite: str | None,
    where: Mapping[str, str],
    more: Mapping[str, str | None] | None = None,
) -> str:
    places = [f"{name}={value}" for name, value in sorted(where.items())]
    places += [f"suite={suite}"] if suite else []
    places += [f"{name} {value}" for name, value in (more or {}).items()]
    places += ["by default"] if rule.by_default else []
    return f"{rule.gate.metric} ({', '.join(places)})" if places else rule.gate.metric


def _weaker(before: Policy, then: Rule, after: Policy, now: Rule) -> Iterator[_OfRule]:
    """Yield everything that a rule holds less strictly than another one for the same slice."""
    old, new = then.gate, now.gate
    reach = then.metric.greatest - then.metric.least
    for size, sentence in _limits(old, new, {"max": 1, "max_abs": 1, "min": -1}, reach):
        yield size, sentence, _BOUND
    for size, sentence in _change(then, now, reach):
        yield size, sentence, _CHANGE
    if new.report and not old.report:
        yield _GONE, "only reported: the value has no limit any more", _ANY
    if now.advisory and not then.advisory:
        yield _GONE, "made advisory: it no longer fails the build", _ANY
    if _STRICTNESS.index(new.evidence) < _STRICTNESS.index(old.evidence):
        yield _WHOLE, f"evidence lowered from {old.evidence} to {new.evidence}", _BOUND
    # That of the policy is told once, for all rules.
    own = old.on_inconclusive is not None or new.on_inconclusive is not None
    if own and any(
        _stops(before, then, is_bound=is_bound) and not _stops(after, now, is_bound=is_bound)
        for is_bound in (False, True)
    ):
        yield _WHOLE, "an inconclusive result no longer fails the build", _ANY


def _stops(policy: Policy, rule: Rule, *, is_bound: bool) -> bool:
    """Return whether an open result of a rule's bound, or of its comparison, stops the build."""
    default = "fail" if is_bound and rule.gate.evidence == "interval" else policy.on_inconclusive
    return (rule.gate.on_inconclusive or default) == "fail"


def _change(then: Rule, now: Rule, reach: float) -> Iterator[_Found]:
    old, new = then.gate.regression, now.gate.regression
    if old is None:
        return
    if new is None:
        yield _GONE, "comparison with the baseline removed"
        return
    yield from _limits(old, new, {"margin": 1, "budget": 1, "detect": 1, "sd": -1}, reach)
    if new.strict and not old.strict:
        yield _WHOLE, "strict switched on: a change within the margin no longer counts as one"


def _limits(
    before: object, after: object, signs: Mapping[str, int], reach: float = 1.0
) -> Iterator[_Found]:
    """Yield the limits that are removed, or moved in the direction that their sign says."""
    for name, sign in signs.items():
        then: float | None = getattr(before, name)
        now: float | None = getattr(after, name)
        if then is not None and now is None:
            yield _GONE, f"{name} {then:g} removed"
        elif then is not None and now is not None and sign * (now - then) > 0:
            word = "raised" if sign > 0 else "lowered"
            yield min(_WHOLE, abs(now - then) / reach), f"{name} {word} from {then!r} to {now!r}"


def _thresholds(before: Policy, after: Policy) -> Iterator[_Found]:
    if before.name != after.name:
        names = f"from {before.name} to {after.name}"
        yield _GONE, f"name changed {names}: another baseline is compared with"
    if before.seed != after.seed:
        drawn = "what is drawn at random is another"
        yield _WHOLE, f"seed changed from {before.seed} to {after.seed}: {drawn}"
    for size, change in _limits(before, after, {"confidence": -1}):
        yield size, f"{change}: intervals are narrower, so fewer results stay open"
    yield from _limits(before, after, {"confidence": 1})
    if before.on_inconclusive == "fail" and after.on_inconclusive == "warn":
        yield _WHOLE, "on_inconclusive changed from fail to warn"


def _evidence(before: Policy, after: Policy) -> Iterator[_Found]:
    yield from _limits(before, after, {"max_invalid": 1, "min_decided": -1, "min_overlap": -1})
    if before.constant_answers == "refuse" and after.constant_answers == "allow":
        shows = "answers that show nothing may pass"
        yield _WHOLE, f"constant_answers changed from refuse to allow: {shows}"


def _corrections(
    before: Policy, then: Sequence[Rule], after: Policy, now: Sequence[Rule]
) -> Iterator[_Found]:
    """Report where a comparison may get less of the level that all of them share.

    It never does where all are among those of before, with parts in the same proportions.
    """
    if before.correction == "none" and after.correction == "holm":
        yield _WHOLE, "correction for several rules switched on: each rule rejects less easily"
    elif before.correction == "holm" and after.correction == "none":
        yield _WHOLE, "correction for several rules switched off: fewer results stay open"
    elif after.correction == "holm":
        old, new = _parts_of_level(then), _parts_of_level(now)
        if not new.keys() <= old.keys():
            why = "more comparisons are corrected for together: each rule rejects less easily"
            yield _WHOLE, why
        elif len({round(part / old[test], 9) for test, part in new.items()}) > 1:
            why = "the correction is shared out otherwise: some rules reject less easily"
            yield _WHOLE, why


def _parts_of_level(rules: Sequence[Rule]) -> dict[Hashable, float]:
    """Return every test that is corrected for with its part of the level, as `compare` has it."""
    lines: dict[Hashable, list[Hashable]] = defaultdict(list)
    for rule in rules:
        line, what = (rule.position, rule.suite), _slice(rule)
        if rule.metric.compares_terms and not rule.gate.report:
            lines[line].append(what)
        for reference in Reference:
            if reference.asked(rule.gate) is not None:
                lines[reference, line].append((reference, what))
                column = (reference, rule.suite, rule.metric.column)
                lines[column] = [column]
    shares: dict[Hashable, float] = {}
    for tests in lines.values():
        for test in tests:
            again = next(n for n in count() if (test, n) not in shares)
            shares[test, again] = 1 / len(tests)
    return shares


def _suites(before: Policy, after: Policy) -> Iterator[Loosening]:
    """Name every change of what is tested: whether it is easier cannot be seen from the policy."""
    now = {suite.id: suite for suite in after.suites}
    for suite in before.suites:
        if suite.id not in now:
            sentence = f"suite removed: {suite.id}"
            yield Loosening(size=_GONE, sentence=sentence, suite=suite.id)
        for size, sentence in _parts(f"suite {suite.id}", suite, now.get(suite.id, suite)):
            yield Loosening(size=size, sentence=sentence, suite=suite.id)


def _parts(name: str, before: Strict | str | None, after: Strict | str | None) -> Iterator[_Found]:
    """Name every change of a part: another system may pass, another judge may call fewer biased."""
    then, now = (
        part.model_dump(mode="json") if isinstance(part, Strict) else {part: True} if part else {}
        for part in (before, after)
    )
    for key in dict.fromkeys((*then, *now)):
        if now.get(key) != then.get(key):
            change = f"from {_shown(then.get(key))} to {_shown(now.get(key))}"
            yield _WHOLE, f"{name}: {key} changed {change}"


def _quarantine(before: Policy, after: Policy) -> Iterator[Loosening]:
    then = {(entry.suite, entry.case): entry.until for entry in before.quarantine}
    for entry in after.quarantine:
        until = then.get((entry.suite, entry.case))
        sentence = f"case quarantined: {entry.case} until {entry.until}"
        if until is not None:
            sentence = f"quarantine of {entry.case} extended from {until} to {entry.until}"
        if until is None or entry.until > until:
            yield Loosening(size=_WHOLE, sentence=sentence, suite=entry.suite)


def _waivers(
    before: Policy, then: Sequence[Rule], after: Policy, now: Sequence[Rule]
) -> Iterator[Loosening]:
    """Yield every rule that is waived now and was not, not for so long, so far or so widely."""
    old, new = (
        {_slice(r): (e, r) for r in rules for e in of if waives(e, _slice(r))}
        for of, rules in ((before.waivers, then), (after.waivers, now))
    )
    for where_waived, (entry, rule) in new.items():
        earlier = old[where_waived][0] if where_waived in old else None
        wider = []
        if earlier is None:
            wider.append(f"waived until {entry.expires}")
        else:
            if entry.expires > earlier.expires:
                wider.append(f"waived until {entry.expires}, before until {earlier.expires}")
            if is_worse(entry.up_to, earlier.up_to, rule.metric, rule.gate.limits):
                wider.append(f"waived up to {entry.up_to:g}, before up to {earlier.up_to:g}")
            if entry.regression and not earlier.regression:
                wider.append("the waiver covers regressions too")
        for what in wider:
            sentence = f"{_place(rule, rule.suite, rule.where)}: {what}"
            yield Loosening(size=_GONE, sentence=sentence, slices=frozenset({where_waived}))


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def weakened(before: Side, after: Side | None) -> list[Loosening]:
    """Return everything that the change holds less strictly, its baselines first."""
    if after is None:
        sentence = "the policy is removed, with all of its rules"
        return [Loosening(size=_GONE, sentence=sentence)]
    plans = before.loaded.plan, after.loaded.plan
    sentences = []
    then, now = before.references, after.references
    if then.baseline is not None and now.baseline is None:
        sentences.append("the baseline is removed: nothing is compared any more")
    if then.anchor is not None and now.anchor_path and differ(then.anchor, now.anchor):
        if now.anchor is None:
            sentences.append("the anchor is removed: no budget is compared any more")
        else:
            sentences.append(
                f"another anchor is pinned, of {harmless(now.anchor.date)} instead of "
                f"{harmless(then.anchor.date)}: every budget starts anew "
                f"({harmless(now.anchor.reason)})"
            )
    references = (Loosening(size=_GONE, sentence=sentence) for sentence in sentences)
    return [*references, *loosened(before.loaded.policy, after.loaded.policy, plans)]
