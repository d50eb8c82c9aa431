"""What is listed of a changed policy are its leaf keys, each with what separates both values."""

import json
import re

import pytest
from fakes.policies import parse_policy, plan_of, suites_of
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.schema import ScorePolicy
from fairgate.github import loosenings
from fairgate.github.leaves import leaf_changes, leaves_of
from fairgate.policy.schema import (
    GatePolicy,
    Policy,
    WaiverPolicy,
)

TEXT = """\
version: 1
name: p
system:
  generator: {model: demo-slm, prompt: "{task}{documents}{text}", template_arguments: {a: 1}}
  retriever: {corpus: demo, top_k: 4}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, perturbations: [race, gender], attributes: [a],
     turns: [hello]}
  - {id: b, kind: bbq, items: demo-bbq, collections: [demo-stances]}
gates:
  - {metric: asr/generation, max: 0.2}
judge: {id: j, record: r.json, generators: [{model: demo-slm}]}
"""
DATA = parse_policy(TEXT, "p.yaml").policy.model_dump(mode="json")
OTHERS = {str: "another", int: 7, float: 0.125, bool: None, type(None): "another"}


def leaves(part, path=()):
    children = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in children:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def replaced(part, path, value):
    if not path:
        return value
    copy = dict(part) if isinstance(part, dict) else list(part)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


HOLDING = [path for path, value in leaves(DATA) if value not in ([], {})]


@pytest.mark.parametrize("path", HOLDING, ids=lambda path: ".".join(map(str, path)))
def test_the_leaf_that_differs_is_named_alone_with_both_values(path):
    """Of every key that a policy can have, however deep."""
    old = dict(leaves(DATA))[path]
    new = not old if isinstance(old, bool) else OTHERS.get(type(old), "another")
    (said,) = leaf_changes(DATA, replaced(DATA, path, new))
    at = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)[1:]
    start, _, end = said.rpartition(" to ")
    assert start.startswith(f"{at} changed from {json.dumps(old)[:60]}")
    assert end == json.dumps(new)


LONG = "You answer a customer of the shop in one word. " * 40


@pytest.mark.parametrize("place", [0, 17, 900, len(LONG) - 1])
def test_of_long_texts_the_part_is_shown_that_differs(place):
    (said,) = leaf_changes({"prompt": LONG}, {"prompt": f"{LONG[:place]}NEVER{LONG[place:]}"})
    old, new = said.removeprefix("prompt changed from ").split(" to ", 1)
    assert "NEVER" in new.replace(" ", "")
    assert "NEVER" not in old
    assert len(said) < 300


def test_what_a_list_gets_or_loses_is_all_that_changes_of_it():
    old, new = {"sets": ["race", "gender", "age"]}, {"sets": ["age"]}
    assert [*leaf_changes(old, new)] == [
        'sets[0] changed from "race" to nothing', 'sets[1] changed from "gender" to nothing'
    ]  # fmt: skip
    assert [*leaf_changes(new, {"sets": ["name", "age"]})] == [
        'sets[0] changed from nothing to "name"'
    ]


def test_a_key_of_the_user_is_no_path():
    (said,) = leaf_changes({"body": {}}, {"body": {"a.b\n::error::": None}})
    assert said == 'body."a.b\\n::error::" changed from nothing to null'


scalars = st.none() | st.booleans() | st.integers(0, 3) | st.text("ab.\n", max_size=3)
parts = st.recursive(
    scalars,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from("abc"), part),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from("xyz"), parts), st.dictionaries(st.sampled_from("xyz"), parts)
)
def test_no_difference_is_unsaid_and_no_container_is_shown(then, now):
    said = [*leaf_changes(then, now)]
    # 1 and True are equal, and are no equal JSON.
    assert bool(said) == (repr(sorted(then.items())) != repr(sorted(now.items()))) or then == now
    shown = [one.partition(" changed from ")[2] for one in said]
    assert not any(re.search(r"[{\[](?![}\]])", values) for values in shown)


class Later(GatePolicy):
    seen: float | None = None


class LaterWaiver(WaiverPolicy):
    of: str = "pairs"


class LaterPolicy(Policy):
    rounds: int = 1


JUDGED = """\
version: 1
name: p
system: {recorded: a.jsonl}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [gender]}
gates:
  - {metric: asr/generation, max: 0.2, regression: 0.02}
waivers:
  - {rule: asr/generation, expires: "2026-01-01", reason: r, owner: o, up_to: 0.5}
"""
POLICY, PLAN, SUITES = parse_policy(JUDGED, "p.yaml").policy, plan_of(JUDGED), suites_of(JUDGED)


def later(kind, part, **more):
    return kind.model_construct(
        **{name: getattr(part, name) for name in type(part).model_fields}, **more
    )


def with_entry(name, kind, **more):
    (entry,) = getattr(POLICY, name)
    return POLICY.model_copy(update={name: [later(kind, entry, **more)]})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (with_entry("gates", Later, seen=0.1), with_entry("gates", Later, seen=0.4),
         "asr/generation: seen changed from 0.1 to 0.4"),
        (with_entry("waivers", LaterWaiver), with_entry("waivers", LaterWaiver, of="x"),
         'asr/generation (suite=s): of changed from "pairs" to "x"'),
        (later(LaterPolicy, POLICY), later(LaterPolicy, POLICY, rounds=9), "rounds changed from 1 to 9"),
    ],
)  # fmt: skip
def test_a_key_that_nothing_weighs_yet_is_listed(before, after, said):
    found = loosenings.loosened(before, after, (PLAN, PLAN), (SUITES, SUITES))
    assert [one.sentence for one in found] == [said]


def test_keys_are_named_as_policies_write_them():
    policies = (ScorePolicy.model_validate({"from": low, "to": 10}) for low in (1, 2))
    assert [*leaf_changes(*policies)] == ["from changed from 1.0 to 2.0"]
    assert "from 1.0" in leaves_of(ScorePolicy.model_validate({"from": 1, "to": 10}))
