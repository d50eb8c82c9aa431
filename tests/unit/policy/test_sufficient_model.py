"""A policy is read with the parts that it names, and means what it means with all of them."""

from pathlib import Path

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError
from fairgate.policy.assembled import PolicyParts, policy_model, sufficient_model
from fairgate.policy.parse import parse_policy as parse_with
from fairgate.policy.yaml_text import load_yaml
from fairgate.systems.catalogue import policy_parts

REPOSITORY = Path(__file__).parents[3]
SHIPPED = sorted(REPOSITORY.glob("policies/*.yaml"))
POLICY = """\
version: 1
name: p
system: {recorded: a.jsonl}
suites: [{id: s, task: sentiment, sources: demo-reviews}]
gates: [{metric: asr/generation, max: 0.5}]
"""


def unread():
    raise AssertionError("a part was read that the policy does not name")


def parts_with(*keys):
    """The parts, of which only the kind of system with these keys can be read."""
    whole = policy_parts()
    systems = (one if one.keys == keys else type(one)(one.keys, unread) for one in whole.systems)
    return PolicyParts(systems=list(systems), judge=unread)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_policy_means_the_same(path):
    data = load_yaml(path.read_text(), str(path)).data
    few, whole = sufficient_model(policy_parts(), data), policy_model(policy_parts())
    assert few.model_validate(data).model_dump() == whole.model_validate(data).model_dump()


def test_only_what_is_named_is_read():
    assert parse_with(POLICY, "p", parts_with("recorded")).policy.name == "p"
    judged = POLICY + "judge: {id: j, generators: [{model: demo-slm}]}\n"
    for text, keys in ((POLICY, "http"), (judged, "recorded")):
        with pytest.raises(AssertionError, match="a part was read"):
            parse_with(text, "p", parts_with(keys))


def test_kinds_of_suites_that_are_not_named_are_no_part():
    few = sufficient_model(policy_parts(), load_yaml(POLICY, "p").data)
    assert "BbqSuitePolicy" not in str(few.model_json_schema())
    both = POLICY.replace("demo-reviews}]", "demo-reviews}, {id: b, kind: bbq, items: demo-bbq}]")
    found = sufficient_model(policy_parts(), load_yaml(both, "p").data)
    assert {"BbqSuitePolicy", "SuitePolicy"} <= set(found.model_json_schema()["$defs"])


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("recorded: a.jsonl", "recorded: a.jsonl, http: {url: 'http://a.b'}", "has keys of 2 kinds of systems"),
        ("recorded: a.jsonl", "recorder: a.jsonl", "for `recorder`, did you mean `recorded`?"),
        ("recorded: a.jsonl", "recorded: a.jsonl, document_characters: 5", "it belongs in `generator`"),
        ("system: {recorded: a.jsonl}", "system: [1]", "expected a mapping"),
        ("task: sentiment,", "kind: bqb,", "found 'bqb' (text), expected `metamorphic` or `bbq`"),
        ("task: sentiment,", "kind: [bbq],", "found a list of 1 entry, expected `metamorphic` or `bbq`"),
        ("{id: s, task: sentiment, sources: demo-reviews}", "7", "suites[0]: found 7"),
        ("[{id: s, task: sentiment, sources: demo-reviews}]", "{}", "suites: found an empty mapping"),
        ("task: sentiment,", "task: sentiment, collections: [a],", "it is one of kind `bbq`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_all_parts_in_mind(was, now, said):
    with pytest.raises(PolicyError) as found:
        parse_policy(POLICY.replace(was, now), "p")
    assert said in str(found.value)
