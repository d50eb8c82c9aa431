"""What an entry about an outcome may say, and what is told where it says something else."""

import pytest
from fakes.planted import Bench, policy_of
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError
from fairgate.gate.rule_problems import parity_problems, rule_problems, unknown_names
from fairgate.metrics.parity import OUTCOMES
from fairgate.policy.schema import ALL, GatePolicy, ParityPolicy

POLICY = """\
version: 1
name: p
system: {recorded: a.jsonl}
suites: [{id: s, task: sentiment, sources: demo-reviews}]
gates:
"""


def told(entry):
    """Return what is wrong with a policy of one entry, without its line."""
    try:
        parse_policy(POLICY + f"  - {{{entry}}}\n", "p.yaml")
    except PolicyError as error:
        return [one.message for one in error.problems]
    return []


@pytest.mark.parametrize(
    "entry",
    [
        "parity: all",
        "parity: answers, max: 0.05, regression: 0.02, budget: 0.04, must_see: 0.15",
        "parity: answers, max: 0",
        "parity: answers, suite: s, where: {category: gender}, advisory: true",
    ],
)
def test_what_may_be_asked(entry):
    assert told(entry) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("parity: answers, max: 5%", "gates[0].max: found '5%' (text), expected a number of at least 0; rates are fractions: write 0.05"),
        ("parity: answers, max: -0.1", "gates[0].max: found -0.1, expected a number of at least 0"),
        ("parity: answers, max: .inf", "gates[0].max: found inf, expected a number of at least 0"),
        ("parity: answers, must_see: 0", "gates[0].must_see: found 0, expected a number above 0"),
        ("parity: answers, regression: {margin: 0.02}", "gates[0].regression: found a mapping, expected a number of at least 0"),
        ("parity: answers, regression: 0.1, budget: 0.05", "gates[0]: `budget` 0.05 is below `regression` 0.1; the change since the anchor holds that since the baseline, so give at least as much"),
        ("parity: 3", "gates[0].parity: found 3, expected text; put it in quotes"),
        ("parity: answers, suite: t", "no suite has the id 't'; known: `s`"),
        ("max: 0.1", "gates[0]: `metric` is missing; add it: Id of a metric, see `fairgate metrics list`"),
    ],
)  # fmt: skip
def test_one_slip_gives_one_sentence(entry, message):
    assert told(entry) == [message]


@pytest.mark.parametrize("key", ["max", "regression", "budget", "must_see"])
@pytest.mark.parametrize(("limit", "fraction"), [("1", "0.01"), ("5", "0.05"), ("15", "0.15")])
def test_a_limit_that_no_share_reaches_is_refused_and_is_perhaps_a_percentage(key, limit, fraction):
    (message,) = told(f"parity: answers, {key}: {limit}")
    assert message.startswith(f"shares never differ by more than 1, so {limit} cannot fail")
    assert message.endswith(f"write {fraction}")
    assert told(f"parity: answers, {key}: 0.999") == []


def test_an_entry_is_about_an_outcome_or_a_metric_and_has_the_keys_of_one():
    """Every key of one kind is unknown to the other, and never its own suggestion."""
    kinds = {"parity: answers": ParityPolicy, "metric: asr/generation, max: 0.1": GatePolicy}
    values = {
        "evidence": "significant",
        "report": "true",
        "parity": "all",
        "metric": "asr/generation",
    }
    for entry, kind in kinds.items():
        for other in kinds.values():
            for key in other.model_fields.keys() - kind.model_fields.keys():
                if key == "parity":  # the entry is one about an outcome then
                    continue
                messages = told(f"{entry}, {key}: {values.get(key, '0.1')}")
                (message,) = [one for one in messages if "unknown key" in one]
                assert message.startswith(f"unknown key `{key}` in `gates[0]`; "), message
                assert f"`{key}`" not in message.partition(";")[2]


def test_both_keys_are_told_as_one_too_many():
    (message,) = told("parity: answers, metric: asr/generation")
    assert message.startswith("unknown key `metric` in `gates[0]`")


@pytest.mark.parametrize("gone", ["for_each: term", "detect: 0.05", "strict: true", "sd: 0.1"])
def test_keys_that_went_are_unknown(gone):
    for entry in ("parity: answers", "metric: asr/generation, max: 0.1"):
        assert any(
            f"unknown key `{gone.partition(':')[0]}`" in one for one in told(f"{entry}, {gone}")
        )


def test_a_policy_may_name_no_gates_and_has_the_level_of_unchanged_runs():
    policy = parse_policy(POLICY.replace("gates:\n", ""), "p.yaml").policy
    assert (policy.gates, policy.level, policy.regression_level) == ([], 0.05, 0.01)
    assert not policy.has_budget


def test_entries_are_told_apart_with_their_places():
    text = POLICY + "".join(
        f"  - {{{entry}}}\n"
        for entry in (
            "metric: asr/generation, max: 0.1",
            "parity: answers, budget: 0.1",
            "parity: all",
        )
    )
    policy = parse_policy(text, "p.yaml").policy
    assert [place for place, _ in policy.parities] == [1, 2]
    assert [place for place, _ in policy.bounds] == [0]
    assert policy.has_budget


# What the suites can answer.


def test_outcomes_and_metrics_that_do_not_exist_are_told_with_what_is_near():
    entries = [{"parity": "answer"}, {"metric": "asr/generatoin"}, {"parity": ALL}, {"parity": 3}]
    found = dict(unknown_names(entries))
    assert found == {
        ("gates", 0, "parity"): "unknown outcome 'answer'; did you mean `answers`?",
        ("gates", 1, "metric"): "unknown metric 'asr/generatoin'; did you mean `asr/generation`?",
    }


def asked(gates, **suite):
    given = Bench(policy=policy_of(gates, **suite), sources=2, sets=("gender",)).given()
    return dict(parity_problems(given.policy, given.suites, given.plan))


def test_every_outcome_is_answered_or_told_what_the_suites_have():
    found = asked([{"parity": outcome} for outcome in (*OUTCOMES.ids, ALL)])
    lacking = {place for _, place, _ in found}
    assert {OUTCOMES.ids[place] for place in lacking} == {"score", "sentences"}
    assert "no suite reads sentences" in found["gates", OUTCOMES.ids.index("sentences"), "parity"]


def test_without_control_prompts_there_is_nothing_to_compare_with():
    found = asked([{"parity": "answers"}, {"parity": ALL}], control="none")
    assert found.keys() == {("gates", 0, "parity"), ("gates", 1, "parity")}
    assert all("no suite asks control prompts" in message for message in found.values())


@pytest.mark.parametrize(
    ("where", "place", "message"),
    [
        ({"category": "gendr"}, ("where", "category"), "suite 's' asks about no category 'gendr'; did you mean `gender`?"),
        ({"term": "gay"}, ("where", "term"), "suite 's' asks about no term 'gay'; known: `man`, `non-binary` and `woman`"),
        ({"band": "low"}, ("where", "band"), "'band' is no dimension of suite 's'; it has `relation`, `category` and `term`"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("outcome", ["answers", ALL])
def test_a_slice_that_nobody_is_in_is_told(where, place, message, outcome):
    found = asked([{"parity": outcome, "where": where}])
    assert found == {("gates", 0, *place): message}


def test_every_slice_that_there_is_may_be_asked_and_crossed_ones_that_are_empty_not():
    given = Bench(policy=policy_of(), sources=2, sets=("gender", "age")).given()
    people = {(unit.dimensions["category"], unit.dimensions["term"]) for unit in given.plan.units}
    people -= {who for who in people if "neutral" in who[0]}
    wrong = []
    for category in ("gender", "age"):
        for _, term in people:
            where = {"category": category, "term": term}
            policy = policy_of([{"parity": "answers", "where": where}])
            found = [*parity_problems(policy, given.suites, given.plan)]
            if bool(found) == ((category, term) in people):
                wrong.append((where, found))
    assert not wrong


def test_what_metrics_cannot_be_asked_is_told_at_its_place():
    text = POLICY + "  - {metric: attribution/retrieval, regression: 0.02}\n"
    policy = parse_policy(text, "p.yaml").policy
    plan = Bench(policy=policy_of(), sources=2, sets=("gender",)).given().plan
    found = dict(rule_problems(policy, plan))
    assert "cannot be compared with a baseline" in found["gates", 0, "regression"]
