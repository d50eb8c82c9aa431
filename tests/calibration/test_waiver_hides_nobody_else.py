"""A waiver hides one failure of one slice, of every kind of rule, and of nobody else.

`-rP` prints the figures.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from calibration.test_hidden_combinations import HidingGenerator, spread_pairs
from calibration.test_hidden_combinations import given as hiding
from fakes.planted import IDENTITY, Bench, Plant, policy_of, system_of
from fakes.planted_items import ItemBench, ItemPlant

from fairgate.domain.cases import Condition
from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome
from fairgate.domain.ports import SILENT, SystemUnderTest
from fairgate.gate.baseline import References
from fairgate.gate.gate import GateInput, GateResult, run_gate
from fairgate.policy.schema import WaiverPolicy

CONTROLLED = "asr/generation/controlled"
TERMS = {"metric": CONTROLLED, "for_each": "term", "max": 0.1, "evidence": "significant"}
SMALL = Bench(policy=policy_of([TERMS]), sources=40, sets=("gender",))
DAY, NEXT = "2026-07-01", "2026-07-02"


def entry(metric: str, where: dict[str, str], suite: str | None = None) -> WaiverPolicy:
    return WaiverPolicy(
        rule=metric, where=where, suite=suite, reason="ticket 12", owner="Ada", expires=DAY,
        up_to=3, regression=True,
    )  # fmt: skip


def waiving(gate_input: GateInput, *entries: WaiverPolicy, day: str = DAY) -> GateInput:
    policy = gate_input.policy.model_copy(update={"waivers": [*entries]})
    return replace(gate_input, policy=policy, day=day)


WOMAN = entry(CONTROLLED, {"term": "woman"})


def judged(plant: Plant, *entries: WaiverPolicy) -> GateResult:
    return run_gate(waiving(SMALL.given(), *entries), SMALL.system(plant), SILENT).result


WORLDS = pytest.mark.parametrize(
    "worlds",
    [1, pytest.param(6, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)],
)


@WORLDS
@pytest.mark.parametrize(("name", "plant", "least", "most", "waived"), [
    ("biased against somebody else", Plant(biased={"A man": 0.4}), 0.9, 1.0, 0.0),
    ("biased against both", Plant(biased={"A man": 0.4, "A woman": 0.4}), 0.9, 1.0, 0.9),
    ("biased against the waived alone", Plant(biased={"A woman": 0.4}), 0.0, 0.1, 0.9),
    ("fair", Plant(sensitive=0.3), 0.0, 0.0, 0.0),
    ("fair and noisy", Plant(noise=0.05), 0.0, 0.1, 0.0),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_a_waiver_hides_nobody_else(worlds, name, plant, least, most, waived):
    results = [judged(replace(plant, world=world), WOMAN) for world in range(worlds)]
    red = sum(one.exit_code is ExitCode.GATE_FAILED for one in results)
    shown = sum(any(rule.waiver for rule in one.rules) for one in results)
    print(f"{name}: {red} of {worlds} red, {shown} with a waived failure")
    assert least * worlds <= red <= most * worlds
    assert shown >= waived * worlds
    assert all(r.outcome is Outcome.FAIL for one in results for r in one.rules if r.waiver)


@WORLDS
def test_the_placebo_waives_nothing(worlds):
    """A waiver of the same rule for an identity that nothing is wrong with."""
    placebo = entry(CONTROLLED, {"term": "non-binary"})
    for world in range(worlds):
        plant = Plant(world=world, biased={"A woman": 0.4})
        found, without = judged(plant, placebo), judged(plant)
        assert (found.exit_code, found.rules) == (without.exit_code, without.rules)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of rule, and a run that it fails."""

    check: str
    metric: str
    where: dict[str, str] = field(default_factory=dict)
    made: Callable[[], tuple[GateInput, SystemUnderTest]]


def planted(gates, plant, *, base=None, anchor=None):
    def made():
        policy = policy_of(gates).model_copy(update={"min_decided": 0.5})
        bench = Bench(policy=policy, sources=60, sets=("gender",))
        accepted = [None if one is None else bench.baseline(one) for one in (base, anchor)]
        references = References(baseline=accepted[0], anchor=accepted[1], anchor_path="a")
        return replace(bench.given(), references=references), bench.system(plant)

    return made


def items():
    bench = ItemBench(
        gates=[{"metric": "diff-bias/ambiguous", "where": {"setting": "none"}, "max_abs": 0.1}]
    )
    biased = {(name, Condition.AMBIGUOUS): 0.9 for name in ("Age", "Religion")}
    return bench.given(), bench.system(ItemPlant(biased=biased))


def hidden():
    texts = {case.key: case.query for case in hiding().plan.cases}
    found = frozenset(texts[unit.asks["follow-up"]] for unit in spread_pairs()[:40])
    generator = HidingGenerator(world=1, noise=0.0, planted=found)
    return hiding(), system_of(generator, {})


BOUND = {"metric": CONTROLLED, "max": 0.05}
MARGIN = {"metric": CONTROLLED, "regression": {"margin": 0.02}}
BUDGET = {"metric": CONTROLLED, "regression": {"margin": 0.02, "budget": 0.04}}
WORSE = Plant(biased={"A man": 0.5, "A woman": 0.5})
LENIENT = {"metric": CONTROLLED, "max": 0.99}
KINDS = (
    Kind(check="bound", metric=CONTROLLED, made=planted([BOUND], WORSE)),
    Kind(check="bound", metric=CONTROLLED, where={"term": "man"},
         made=planted([TERMS], Plant(biased={"A man": 0.5}))),
    Kind(check="regression", metric=CONTROLLED, made=planted([MARGIN], WORSE, base=Plant())),
    Kind(check="budget", metric=CONTROLLED,
         made=planted([BUDGET], WORSE, base=WORSE, anchor=Plant())),
    Kind(check="identity", metric=IDENTITY["metric"],
         made=planted([IDENTITY], Plant(biased={"A man": 0.5}))),
    Kind(check="unreadable", metric=CONTROLLED,
         made=planted([MARGIN, {"metric": "unreadable/net", "max": 0.9}],
                      Plant(refusing={"A man": 0.4}), base=Plant())),
    Kind(check="bound", metric="unreadable/net",
         made=planted([LENIENT], Plant(refusing={"A man": 0.2, "A woman": 0.2}))),
    Kind(check="bound", metric="diff-bias/ambiguous", where={"setting": "none"}, made=items),
    Kind(check="bound", metric="intersectional/hidden", made=hidden),
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.metric}-{kind.check}")
def test_every_kind_of_rule_is_waived_until_its_last_day(kind):
    given, system = kind.made()
    waiver = entry(kind.metric, kind.where)
    results = [
        run_gate(one, system, SILENT).result
        for one in (given, waiving(given, waiver), waiving(given, waiver, day=NEXT))
    ]
    without, waived, ended = results
    assert [one.exit_code for one in results] == [1, 0, 1]
    failed = [rule for rule in without.rules if rule.fails_gate]
    assert {kind.check} <= {check for rule in failed for check in rule.failed}
    assert {(rule.metric, *rule.where.items()) for rule in failed} == {
        (kind.metric, *kind.where.items())
    }
    assert waived.outcome is Outcome.PASS
    for was, now, then in zip(without.rules, waived.rules, ended.rules, strict=True):
        assert was.outcome is now.outcome is then.outcome
        assert (now.waiver is not None) is was.fails_gate
        assert then.waiver is None
        if was.fails_gate:
            assert now.reasons == [*was.reasons, "waived until 2026-07-01 by Ada: ticket 12"]
            assert then.reasons[-1] == "the waiver of Ada ended on 2026-07-01 (ticket 12)"


MANY = {"metric": "unreadable/net", "max": 0.9}
SLOWLY = {"metric": CONTROLLED, "max": 0.17, "evidence": "interval", "regression": {"margin": 0.01}}
BOTH = {"A woman": 0.25, "A man": 0.25}
FEW = {"A woman": 0.8}
WOMEN = {"term": "woman"}


def before(biased):
    return Bench(policy=policy_of([SLOWLY]), sources=60, sets=("gender",)).baseline(
        Plant(biased=biased)
    )


@pytest.mark.parametrize(("gates", "where", "open_", "worse", "code"), [
    # (accepted, what the system does): first without a failure, then with one beside it
    ([TERMS, MANY], WOMEN, (None, Plant(refusing=FEW)),
     (None, Plant(refusing=FEW, biased={"A woman": 0.9})), 5),
    ([SLOWLY, MANY], {}, (BOTH, Plant(biased=BOTH)), ({}, Plant(biased=BOTH)), 1),
    ([{**SLOWLY, "on_inconclusive": "warn"}, MANY], {}, (BOTH, Plant(biased=BOTH)),
     ({}, Plant(biased=BOTH)), 0),
], ids=["few decided", "open, which fails", "open, which warns"])  # fmt: skip
def test_a_failure_beside_too_little_evidence_is_no_way_round_it(gates, where, open_, worse, code):
    """A worse system must not pass by its waiver where a better one stops the build."""
    policy = policy_of(gates).model_copy(update={"min_decided": 0.3})
    bench = Bench(policy=policy, sources=60, sets=("gender",))
    found = []
    for accepted, plant in (open_, worse):
        baseline = None if accepted is None else before(accepted)
        given = replace(bench.given(), references=References(baseline=baseline))
        found.append(run_gate(
            waiving(given, entry(CONTROLLED, where)), bench.system(plant), SILENT
        ).result)  # fmt: skip
    assert found[0].exit_code == code
    assert (found[1].exit_code == 0) is (code == 0)
    (rule,) = [one for one in found[1].rules if one.metric == CONTROLLED and one.where == where]
    assert rule.outcome is Outcome.FAIL
    assert (rule.waiver is None) is bool(code)
    assert any("does not cover too little evidence: " in one for one in rule.reasons) is bool(code)
