"""What a change holds less strictly than the base: rules, settings, references, waivers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Evidence, Outcome, RuleResult, Slice, slice_of
from fairgate.domain.parity import PARITY, Against
from fairgate.domain.schema import Strict
from fairgate.domain.wording import harmless
from fairgate.gate.decide import decide
from fairgate.gate.gate import GateResult, GateRun, result_of
from fairgate.gate.rules import ParityRule, Rule, expand_rules, outcomes_of, parity_rules
from fairgate.gate.waivers import covers_a_worsening, is_worse, waives
from fairgate.github.leaves import leaf_changes, leaves_of
from fairgate.github.sides import Side, differ
from fairgate.policy.schema import Policy, WaiverPolicy
from fairgate.suites.suite import Suite

_ENOUGH = Evidence(planned=0, decided=0, invalid=0, missing=(), problems=())
_STRICTNESS = ("significant", "estimate")
_GONE, _WHOLE = 2.0, 1.0
"""How much is loosened: all of a rule; as much as a limit can be, or what cannot be weighed."""
_Found = tuple[float, str]
"""How much, and the sentence; a limit that is moved counts by its share of the metric's range."""


_OF_POLICY = frozenset({
    "version", "redact",  # they decide nothing
    "name", "seed", "regression_level", "constant_answers", "min_decided", "max_invalid",
    "min_overlap", "gates", "suites", "system", "reference", "judge", "waivers",
})  # fmt: skip
_SLICE_OF_GATE = frozenset({"metric", "parity", "suite", "where"})
_OF_GATE = _SLICE_OF_GATE | {
    "max", "min", "max_abs", "regression", "budget", "must_see", "evidence", "advisory", "report"
}  # fmt: skip
_FOR_READERS = frozenset({"reason", "owner"})
_SLICE_OF_WAIVER = frozenset({"rule", "who", "suite", "where"})
_OF_WAIVER = _SLICE_OF_WAIVER | _FOR_READERS | {"expires", "up_to"}
"""Keys that are weighed below, each in its way; any other key is listed when it changes."""
_ASKED = ("name", "seed", "suites", "system", "reference", "judge")
"""Keys that say what is asked; all others say how the answers are judged."""
_OfRule = tuple[float, str, frozenset[str]]
"""The same of a rule, and which of its checks it is about."""
_ANY: frozenset[str] = frozenset()
_BOUND = frozenset({"bound", "parity"})
_CHANGE = frozenset({"regression", "budget", "unreadable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosening:
    """A rule or setting that a change holds less strictly than the base."""

    size: float
    sentence: str
    slices: frozenset[Slice] = frozenset()
    """Slices of the rules that are loosened; empty: not of single rules."""
    position: int | None = None
    """Position of the rules' line in the base's policy, where they have a line there."""
    suite: str | None = None
    """The suite whose rules are loosened; None: of all suites."""
    checks: frozenset[str] = frozenset()
    """Which of a rule's checks it is about; empty: all of them."""
    of_evidence: bool = False
    """Whether it is about how much evidence there must be."""

    def may_explain(self, rule: RuleResult) -> bool:
        """Return whether a rule may fail before it and pass after."""
        if self.checks and rule.failed and self.checks.isdisjoint(rule.failed):
            return False
        if self.position not in (None, rule.position):
            return False
        if self.slices:
            return _slice_of(rule) in self.slices
        return self.suite in (None, rule.suite)


def judged_by_base(base: GateResult, run: GateRun) -> GateResult:
    """Judge a change's own run by all that the base's policy says of answers, and its baseline."""
    asked = {name: getattr(run.gate_input.policy, name) for name in _ASKED}
    policy = base.gate_input.policy.model_copy(update=asked)
    then = base.gate_input
    gate_input = replace(
        run.gate_input, policy=policy, accepted_runs=then.accepted_runs, day=then.day
    )
    return result_of(gate_input, run.tables, run.result.assessed, verdict_with=())


def worst_first(
    loosened: Iterable[Loosening],
    base: GateResult | None,
    proposed: GateResult | None,
    crossed: GateResult | None = None,
) -> list[Loosening]:
    """Return those first that let pass what stops the build by the base, then the largest.

    Of these, loosenings of a single rule come first, then those about how much is decided, then
    those about a suite, or everything. What single rules stop is looked for in `crossed`, the
    proposed run as `judged_by_base` judges it: the base's own system may pass. A side that was not
    judged is None: without the base's result only the size is known.
    """
    still_stopped = (
        set() if proposed is None else {_slice_of(r) for r in proposed.rules if _stops_build(r)}
    )

    def passed(judged: GateResult | None) -> list[RuleResult]:
        stopped = () if judged is None else filter(_stops_build, judged.rules)
        return [rule for rule in stopped if _slice_of(rule) not in still_stopped]

    def lacked(judged: GateResult | None) -> bool:
        return judged is not None and bool(judged.evidence.problems or judged.incompatible)

    by_rule = passed(crossed or base)
    by_any = [*by_rule, *passed(base)]
    no_evidence = not lacked(proposed) and (lacked(base) or lacked(crossed))

    def key(loosening: Loosening) -> tuple[int, float]:
        of_rules = by_rule if loosening.slices else by_any
        explains = any(loosening.may_explain(rule) for rule in of_rules)
        ranks = (
            loosening.slices and explains,
            loosening.of_evidence and no_evidence,
            explains or (no_evidence and not loosening.slices),
            True,
        )
        return next(rank for rank, holds in enumerate(ranks) if holds), -loosening.size

    return sorted(loosened, key=key)


def _slice_of(rule: RuleResult) -> Slice:
    return slice_of(rule.metric, rule.suite, rule.where)


def _stops_build(rule: RuleResult) -> bool:
    """Return whether the gate's own decision is no pass where a rule is the only one.

    A value that is missing stops it as evidence that is lacking.
    """
    _, code = decide([rule], _ENOUGH, ())
    is_missing = rule.outcome in (Outcome.NOT_EVALUATED, Outcome.INCONCLUSIVE)
    is_missing &= rule.is_binding and not rule.is_first_run
    return is_missing or code is not ExitCode.PASS


AnyRule = Rule | ParityRule


def loosened(
    before: Policy,
    after: Policy,
    plans: tuple[TestPlan, TestPlan],
    suites: tuple[Mapping[str, Suite], Mapping[str, Suite]],
) -> list[Loosening]:
    """Return the rules and settings that are less strict in `after`, the largest difference first.

    `plans` and `suites` are theirs, in the same order.

    Compared are the rules as they decide: expanded, with the default ones, whatever lines of the
    policies they come from. A rule is held where the other policy has one for the same slice that
    is nowhere weaker; so no table of answers fails the one policy and passes the other unlisted.
    """
    then, now = (
        _expanded(policy, plan, own)
        for policy, plan, own in zip((before, after), plans, suites, strict=True)
    )
    of_policy = (
        *_shared_level(then, now, suites),
        *_thresholds(before, after),
        *_parts("system", before.system, after.system),
        *_parts("reference", before.reference, after.reference),
        *_parts("judge", before.judge, after.judge),
    )
    evidence = _evidence(before, after)
    loosenings = [
        *_rules(then, after, now),
        *(Loosening(size=size, sentence=sentence) for size, sentence in of_policy),
        *(Loosening(size=size, sentence=text, of_evidence=True) for size, text in evidence),
        *_suites(before, after),
        *_waivers(before, then, after, now),
    ]
    return sorted(loosenings, key=lambda loosening: -loosening.size)


def _expanded(policy: Policy, plan: TestPlan, suites: Mapping[str, Suite]) -> list[AnyRule]:
    return [*expand_rules(policy, plan), *parity_rules(policy, suites)]


def _rules(then: Sequence[AnyRule], after: Policy, now: Sequence[AnyRule]) -> Iterator[Loosening]:
    """Yield what is weaker than before of each line of the policy, once for all of its slices."""
    rules_of_slice: dict[Hashable, list[AnyRule]] = defaultdict(list)
    for rule in now:
        rules_of_slice[rule.slice].append(rule)
    suites = {suite.id for suite in after.suites}
    slices: dict[int, list[AnyRule]] = defaultdict(list)
    weaker: dict[tuple[int, _OfRule], list[AnyRule]] = defaultdict(list)
    for rule in (rule for rule in then if rule.suite in suites):
        slices[rule.position].append(rule)
        changes = [[*_weaker(rule, other)] for other in rules_of_slice[rule.slice]]
        gone: list[_OfRule] = [(_GONE, _removed(rule), _ANY)]
        for change_of_rule in min(
            changes, default=gone, key=lambda many: sum(size for size, *_ in many)
        ):
            weaker[rule.position, change_of_rule].append(rule)
    for (position, (size, change, checks)), rules in weaker.items():
        line = rules[0]
        about = {_rule_label(_line(line), line.gate.suite, line.gate.where): rules}
        if len(rules) < len(slices[position]):
            about = {_rule_label(_name(r), r.suite, r.gate.where): [r] for r in rules}
        for label, of_label in about.items():
            yield Loosening(
                size=size,
                sentence=f"{label}: {change}",
                slices=frozenset(rule.slice for rule in of_label),
                position=position,
                checks=checks,
            )


def _name(rule: AnyRule) -> str:
    return rule.name if isinstance(rule, ParityRule) else rule.metric.id


def _line(rule: AnyRule) -> str:
    """Return the name of a rule's line in the policy: `parity: all` is several rules."""
    return f"parity: {rule.gate.parity}" if isinstance(rule, ParityRule) else _name(rule)


def _removed(rule: AnyRule) -> str:
    is_budget = isinstance(rule, ParityRule) and rule.against is Against.ANCHOR
    if is_budget:
        return f"budget {rule.gate.budget:g} removed"
    held_to = leaves_of(rule.gate, without=_SLICE_OF_GATE, with_defaults=False)
    return f"rule removed: {held_to}" if held_to else "rule removed"


def _rule_label(name: str, suite: str | None, where: Mapping[str, str]) -> str:
    conditions = [f"{key}={value}" for key, value in sorted(where.items())]
    conditions += [f"suite={suite}"] if suite else []
    return f"{name} ({', '.join(conditions)})" if conditions else name


def _weaker(then: AnyRule, now: AnyRule) -> Iterator[_OfRule]:
    """Yield everything that a rule holds less strictly than another one for the same slice."""
    is_advisory = now.gate.advisory
    if isinstance(then, ParityRule) and isinstance(now, ParityRule):
        checks = _CHANGE if then.against in (Against.BASELINE, Against.ANCHOR) else _BOUND
        for size, sentence in _moved(then.bounds, now.bounds, dict.fromkeys(then.bounds, 1)):
            yield size, sentence, checks
        if then.against is Against.CONTROL:
            for size, sentence in _limits(then.gate, now.gate, {"must_see": 1}):
                yield size, sentence, _ANY
    elif isinstance(then, Rule) and isinstance(now, Rule):
        old, new = then.gate, now.gate
        reach = then.metric.greatest - then.metric.least
        for size, sentence in _limits(old, new, {"max": 1, "max_abs": 1, "min": -1}, reach):
            yield size, sentence, _BOUND
        for size, sentence in _limits(old, new, {"regression": 1, "budget": 1}, reach):
            yield size, sentence, _CHANGE
        if new.report and not old.report:
            yield _GONE, "only reported: the value has no limit any more", _ANY
        if _STRICTNESS.index(new.evidence) < _STRICTNESS.index(old.evidence):
            yield _WHOLE, f"evidence lowered from {old.evidence} to {new.evidence}", _BOUND
        is_advisory = now.advisory and not then.advisory
    if is_advisory and not then.gate.advisory:
        yield _GONE, "made advisory: it no longer fails the build", _ANY
    for size, sentence in _unweighed(then.gate, now.gate, _OF_GATE):
        yield size, sentence, _ANY


def _limits(
    before: object, after: object, signs: Mapping[str, int], reach: float = 1.0
) -> Iterator[_Found]:
    """Yield the limits that are removed, or moved in the direction that their sign says."""
    then, now = ({name: getattr(part, name) for name in signs} for part in (before, after))
    yield from _moved(then, now, signs, reach)


def _moved(
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    signs: Mapping[str, int],
    reach: float = 1.0,
) -> Iterator[_Found]:
    for name, sign in signs.items():
        then, now = before.get(name), after.get(name)
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
    for size, change in _limits(before, after, {"regression_level": -1}):
        yield size, f"{change}: somebody is named less easily"
    yield from _unweighed(before, after, _OF_POLICY)


def _shared_level(
    then: Sequence[AnyRule],
    now: Sequence[AnyRule],
    suites: tuple[Mapping[str, Suite], Mapping[str, Suite]],
) -> Iterator[_Found]:
    """Tell where more is asked of what shares one level, as all questions of a kind do."""
    (old, tests), (new, more_tests) = map(_families, (then, now), suites)
    if len(new) > len(old):
        number = f"{len(new)} questions, before {len(old)}"
        yield 0.0, f"more questions share one level ({number}): somebody is named less easily"
    if more_tests > tests:
        number = f"{more_tests}, before {tests}"
        yield 0.0, f"more rules that compare share one level ({number}): one is broken less easily"


def _families(
    rules: Sequence[AnyRule], suites: Mapping[str, Suite]
) -> tuple[frozenset[Slice], int]:
    """Return the questions about parity, asked for or not, and how many rules compare."""
    asked = {r.slice for r in rules if isinstance(r, ParityRule) and r.against is Against.CONTROL}
    asked |= {
        slice_of(f"{PARITY}{outcome.id}", name, {})
        for name, suite in suites.items()
        for outcome in outcomes_of(suite)
    }
    gates = [rule.gate for rule in rules if isinstance(rule, Rule)]
    return frozenset(asked), sum(g.regression is not None or g.budget is not None for g in gates)


def _evidence(before: Policy, after: Policy) -> Iterator[_Found]:
    yield from _limits(before, after, {"max_invalid": 1, "min_decided": -1, "min_overlap": -1})
    if before.constant_answers == "refuse" and after.constant_answers == "allow":
        shows = "answers that show nothing may pass"
        yield _WHOLE, f"constant_answers changed from refuse to allow: {shows}"


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
    for change in leaf_changes(before, after):
        yield _WHOLE, f"{name}: {change}"


def _unweighed(before: Strict, after: Strict, weighed: frozenset[str]) -> Iterator[_Found]:
    """Name every change of a key that nothing here weighs, such as a new one of a policy."""
    parts, excluded_keys = (before, after), set(weighed)
    then, now = (
        part.model_dump(mode="json", by_alias=True, exclude=excluded_keys) for part in parts
    )
    for change in leaf_changes(then, now):
        yield _WHOLE, change


def _waivers(
    before: Policy, then: Sequence[AnyRule], after: Policy, now: Sequence[AnyRule]
) -> Iterator[Loosening]:
    """Yield every rule that is waived now and was not, not for so long, so far or so widely."""
    old, new = (
        {(r.slice, e.who): (e, r) for r in rules for e in waivers if waives(e, r.slice)}
        for waivers, rules in ((before.waivers, then), (after.waivers, now))
    )
    for key, (entry, rule) in new.items():
        label = _rule_label(_name(rule), rule.suite, rule.gate.where)
        label += f" for {harmless(entry.who)}" if entry.who else ""
        for wider in _wider(old[key][0] if key in old else None, entry, rule):
            sentence = f"{label}: {wider}"
            yield Loosening(size=_GONE, sentence=sentence, slices=frozenset({rule.slice}))


def _wider(earlier: WaiverPolicy | None, entry: WaiverPolicy, rule: AnyRule) -> Iterator[str]:
    if earlier is None:
        yield f"waived: {leaves_of(entry, without=_SLICE_OF_WAIVER | _FOR_READERS)}"
        return
    if entry.expires > earlier.expires:
        yield f"waived until {entry.expires}, before until {earlier.expires}"
    is_further = (
        entry.up_to > earlier.up_to
        if isinstance(rule, ParityRule)
        else is_worse(entry.up_to, earlier.up_to, rule.metric, rule.gate.limits)
    )
    if is_further:
        yield f"waived up to {entry.up_to:g}, before up to {earlier.up_to:g}"
    if covers_a_worsening(entry) and not covers_a_worsening(earlier):
        yield "the waiver covers regressions too"
    for _, sentence in _unweighed(earlier, entry, _OF_WAIVER):
        yield sentence


def weakened(before: Side, after: Side | None) -> list[Loosening]:
    """Return everything that the change holds less strictly, its baselines first."""
    if after is None:
        sentence = "the policy is removed, with all of its rules"
        return [Loosening(size=_GONE, sentence=sentence)]
    plans = before.loaded.plan, after.loaded.plan
    suites = before.loaded.suites, after.loaded.suites
    sentences = []
    then, now = before.accepted_runs, after.accepted_runs
    if then.baseline is not None and now.baseline is None:
        sentences.append("the baseline is removed: nothing is compared any more")
    if then.anchor is not None and now.anchor_path and differ(then.anchor, now.anchor):
        if now.anchor is None:
            sentences.append("the anchor is removed: no budget is compared any more")
        else:
            sentences.append(
                f"another anchor is pinned, of {harmless(now.anchor.date)} instead of "
                f"{harmless(then.anchor.date)}: every budget starts again "
                f"({harmless(now.anchor.reason)})"
            )
    references = (Loosening(size=_GONE, sentence=sentence) for sentence in sentences)
    return [*references, *loosened(before.loaded.policy, after.loaded.policy, plans, suites)]
