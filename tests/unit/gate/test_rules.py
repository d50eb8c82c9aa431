"""Which rules a policy gives: of no gates the standard ones, of two entries the more particular."""

from types import SimpleNamespace

import pytest
from fakes.planted import Bench, policy_of
from fakes.policies import parse_policy

from fairgate.domain.parity import Against
from fairgate.gate.rules import (
    expand_rules,
    idle_notices,
    outcomes_of,
    parity_rules,
    standard_gates,
)
from fairgate.metrics.parity import OUTCOMES
from fairgate.policy.schema import ALL

LABELS = "{id: s, task: sentiment, sources: demo-reviews}"
ITEMS = "{id: b, kind: bbq, items: demo-bbq, settings: [none]}"
RETRIEVED = ITEMS.replace("[none]", "[none, full], collections: [demo]")


def policy_with(*suites):
    text = (
        "version: 1\nname: p\nsystem: {retriever: {corpus: demo}, generator: {model: demo-slm}}\n"
    )
    return parse_policy(f"{text}suites: [{', '.join(suites)}]\n", "p.yaml").policy


def test_a_policy_without_gates_asks_for_parity_of_everything():
    (gate,) = standard_gates(policy_with(LABELS))
    assert (gate.parity, gate.max, gate.regression, gate.suite) == (ALL, None, None, None)
    assert len(standard_gates(policy_with(LABELS, LABELS.replace("id: s", "id: t")))) == 1


@pytest.mark.parametrize("items", [ITEMS, RETRIEVED])
def test_question_items_have_diff_bias_and_accuracies(items):
    policy = policy_with(items)
    gates = standard_gates(policy)
    settings = policy.suites[0].settings
    assert {(gate.metric, gate.where.get("setting")) for gate in gates} == {
        (f"{metric}/{context}", setting if len(settings) > 1 else None)
        for metric in ("diff-bias", "accuracy")
        for context in ("ambiguous", "disambiguated")
        for setting in settings
    }
    for gate in gates:
        assert gate.regression > 0
        is_bias = gate.metric.startswith("diff-bias")
        assert gate.evidence == ("significant" if is_bias else "estimate")
        assert (gate.max_abs is not None) == is_bias
        assert gate.suite is None


def test_both_kinds_of_suites_have_their_own():
    gates = standard_gates(policy_with(LABELS, ITEMS))
    assert gates[0].parity == ALL
    assert {gate.suite for gate in gates[1:]} == {"b"}
    # They are as valid as written ones.
    for gate in gates:
        assert type(gate).model_validate(gate.model_dump(exclude_unset=True)) == gate


# Of several entries about one outcome.


def suite_of(name, columns=("controlled", "unreadable")):
    return SimpleNamespace(
        id=name, kind="metamorphic", has_control_arm=True, columns=columns, lacks=lambda _: ""
    )


def questions(entries, suites=("s", "t"), **policy):
    """Return, by suite and outcome, the places of the entries that count now."""
    given = policy_of(entries).model_copy(update=policy)
    found = {}
    for rule in parity_rules(given, {name: suite_of(name) for name in suites}):
        if rule.against is Against.CONTROL:
            found.setdefault((rule.suite, rule.outcome.id), []).append(rule.position)
    return found


ENTRIES = {
    "all": {"parity": "all"},
    "answers": {"parity": "answers"},
    "all of s": {"parity": "all", "suite": "s"},
    "answers of s": {"parity": "answers", "suite": "s"},
}


@pytest.mark.parametrize(
    ("names", "of_s", "of_t"),
    [
        (["all"], ("all", "all"), ("all", "all")),
        (["answers"], ("answers", None), ("answers", None)),
        (["all", "answers"], ("answers", "all"), ("answers", "all")),
        (["answers", "all"], ("answers", "all"), ("answers", "all")),
        (["all", "all of s"], ("all of s", "all of s"), ("all", "all")),
        (["all of s", "answers"], ("answers", "all of s"), ("answers", None)),
        (["answers", "answers of s"], ("answers of s", None), ("answers", None)),
        ([*ENTRIES], ("answers of s", "all of s"), ("answers", "all")),
    ],
)
def test_the_more_particular_entry_takes_the_place_of_the_other(names, of_s, of_t):
    found = questions([ENTRIES[name] for name in names])
    expected = {
        (suite, outcome): [names.index(name)]
        for suite, own in (("s", of_s), ("t", of_t))
        for outcome, name in zip(("answers", "unreadable"), own, strict=True)
        if name is not None
    }
    assert found == expected


@pytest.mark.parametrize("first", ENTRIES)
@pytest.mark.parametrize("second", ENTRIES)
def test_an_entry_about_a_slice_never_takes_the_place_of_one_about_everybody(first, second):
    """A limit for one category beside `all` does not leave the others without any."""
    where = {"where": {"category": "gender"}}
    whole, part = ENTRIES[first], {**ENTRIES[second], **where}
    found = questions([whole, part])
    for key, places in questions([whole]).items():
        assert set(places) <= set(found[key])
    for key in questions([part]):
        assert 1 in found[key]


def test_questions_about_an_anchor_or_a_reference_are_asked_where_there_is_one():
    suites = {"s": suite_of("s", ("controlled", "shift/answer"))}

    def asked(entry, **policy):
        given = policy_of([entry]).model_copy(update=policy)
        return [rule.against for rule in parity_rules(given, suites)]

    plain = [Against.CONTROL, Against.BASELINE]
    assert asked({"parity": "all"}) == plain
    assert asked({"parity": "all", "budget": 0.1}) == [*plain, Against.ANCHOR]
    assert asked({"parity": "all"}, reference="base") == [*plain, Against.REFERENCE]


def test_limits_are_the_outcomes_unless_an_entry_gives_its_own():
    names = {Against.BASELINE: "regression", Against.ANCHOR: "budget"}
    for entry in (
        {"parity": "answers", "budget": 0.2},
        {"parity": "answers", "max": 0.3, "regression": 0.1},
    ):
        given = policy_of([entry])
        for rule in parity_rules(given, {"s": suite_of("s")}):
            key = names.get(rule.against, "max")
            standard = {
                "max": OUTCOMES["answers"].max,
                "regression": OUTCOMES["answers"].regression,
            }
            assert rule.bounds == {key: entry.get(key, standard.get(key))}
            since = "" if rule.against is Against.CONTROL else f"/{rule.against}"
            assert rule.name == f"parity/answers{since}"


def test_outcomes_are_those_whose_columns_a_suite_has_beside_control_prompts():
    every = suite_of("s", ("controlled", "score", "unreadable", "overlap", "answer/strange"))
    assert [outcome.id for outcome in outcomes_of(every)] == [*OUTCOMES.ids]
    assert outcomes_of(SimpleNamespace(**{**vars(every), "has_control_arm": False})) == []
    assert outcomes_of(SimpleNamespace(**{**vars(every), "kind": "bbq"})) == []
    lacking = SimpleNamespace(**{**vars(every), "lacks": lambda name: "no" * (name == "overlap")})
    assert "documents" not in [outcome.id for outcome in outcomes_of(lacking)]


def test_metrics_give_a_rule_for_each_suite_that_has_their_slice():
    gates = [
        {"metric": "asr/generation", "max": 0.2},
        {"metric": "asr/generation", "max": 0.2, "where": {"category": "gender"}},
        {"metric": "asr/generation", "max": 0.2, "where": {"category": "age"}},
        {"metric": "accuracy/ambiguous", "min": 0.6},
        {"parity": "answers"},
    ]
    given = Bench(policy=policy_of(gates), sources=2, sets=("gender",)).given()
    rules = expand_rules(given.policy, given.plan)
    assert [(rule.position, dict(rule.where)) for rule in rules] == [
        (0, {}), (1, {"category": "gender"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("gates", "is_idle"),
    [
        ([{"parity": "all"}], False),
        ([{"parity": "all", "advisory": True}], True),
        ([{"metric": "asr/generation", "report": True}], True),
        ([{"metric": "asr/generation", "report": True}, {"parity": "answers"}], False),
    ],
)
def test_a_gate_that_nothing_can_fail_is_said(gates, is_idle):
    assert bool(idle_notices(policy_of(gates))) == is_idle
