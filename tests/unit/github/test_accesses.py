"""What a policy reaches outside, and what a change's own may not reach before it is merged."""

import inspect
from dataclasses import replace

import pytest
from fakes.policies import parse_policy

from fairgate.domain.schema import NOT_SENT, Access, Strict
from fairgate.github.accesses import accesses, introduced_accesses, new_accesses
from fairgate.suites.question_items.policy import BbqSuitePolicy, EndpointPolicy
from fairgate.systems.command import CommandPart
from fairgate.systems.generator import EndpointGeneratorPolicy, EndpointPart
from fairgate.systems.http import HttpPart
from fairgate.systems.own_retriever import (
    CommandSearch,
    HttpSearch,
    OwnRetrieverPolicy,
    PythonSearch,
)
from fairgate.systems.python import PythonPart
from fairgate.systems.serving import ServePart

POLICY = """\
version: 1
name: p
system: {system}
suites:
  - {{id: s, task: sentiment, sources: demo-reviews}}
gates:
  - {{metric: unreadable/net, max: 0.02}}
"""
HTTPS = "https://example.org/"
SYSTEMS = {
    "generator: {model: demo-slm}": [],
    "recorded: a.jsonl": [],
    "generator: {endpoint: {base_url: 'https://example.org/', model: m, api_key_env: K}}": [Access("asks", HTTPS, "K")],
    "generator: {endpoint: {base_url: 'https://example.org/', model: m}}": [Access("asks", HTTPS)],
    "http: {url: 'https://example.org/', headers_env: {A: K, B: L}}": [
        Access("asks", HTTPS, "K"), Access("asks", HTTPS, "L"),
    ],
    "http: {url: 'https://example.org/'}": [Access("asks", HTTPS)],
    "http: {url: 'https://example.org/'}, serve: {command: [./serve, '1'], ready_url: 'https://example.org/r', env: [K]}": [
        Access("asks", HTTPS), Access("starts", "./serve 1", "K"), Access("asks", f"{HTTPS}r"),
    ],
    "generator: {model: demo-slm}, serve: {command: [./serve], ready_url: 'https://example.org/r'}": [
        Access("starts", "./serve"), Access("asks", f"{HTTPS}r"),
    ],
    "command: [./ask.sh, two words]": [Access("starts", "./ask.sh 'two words'")],
    "command: {run: [./ask.sh], env: [K]}": [Access("starts", "./ask.sh", "K")],
    "python: 'm:f'": [Access("imports", "m:f")],
}  # fmt: skip


def policy(system):
    return parse_policy(POLICY.format(system=f"{{{system}}}"), "p.yaml").policy


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_says_what_it_reaches(system):
    found = [replace(access, way="") for access in accesses(policy(system))]
    assert found == SYSTEMS[system]
    assert new_accesses(policy(system), policy(system)) == []
    assert len(new_accesses(policy(system), None)) == len(SYSTEMS[system])


def test_another_secret_program_or_place_is_new():
    base = policy("command: {run: [./ask.sh], env: [K]}")
    for other, words in {
        "command: {run: [./ask.sh], env: [K, DEPLOY_KEY]}": "starts './ask.sh' with the key in 'DEPLOY_KEY'",
        "command: {run: [./other.sh], env: [K]}": "starts './other.sh' with the key in 'K'",
        "http: {url: 'https://evil.org/', headers_env: {A: K}}": "asks 'https://evil.org/' with the key in 'K'",
        "python: 'm:f'": "imports 'm:f'",
    }.items():
        (sentence,) = new_accesses(policy(other), base)
        assert sentence == f"{words}, which the base commit's policy does not"


ASKING = 'http: {url: "https://rag.invalid/ask", headers_env: {Authorization: KEY}'


@pytest.mark.parametrize(
    "proposed",
    [
        f"{ASKING}, method: GET}}", f'{ASKING}, request: {{delete: "{{{{query}}}}"}}}}',
        f"{ASKING}}}".replace("Authorization", "X-Sudo"),
    ],
)  # fmt: skip
def test_another_use_of_a_known_address_or_key_is_new(proposed):
    """With the job's key, another method, header or body does what nobody has reviewed."""
    base, other = policy(f"{ASKING}}}"), policy(proposed)
    (sentence,) = new_accesses(other, base)
    assert "asks 'https://rag.invalid/" in sentence
    assert "which the base commit's policy does not" in sentence
    assert "by another request, model or pace" in sentence
    assert new_accesses(base, base) == new_accesses(other, other) == []


@pytest.mark.parametrize("more", [", timeout: 5", ', revision: "2"', ', response: {answer: "$.a"}'])
def test_what_changes_nothing_that_is_sent_is_known(more):
    assert new_accesses(policy(f"{ASKING}{more}}}"), policy(f"{ASKING}}}")) == []


def judged(url, key="KEY"):
    endpoint = f'{{base_url: "{url}", model: m, api_key_env: {key}}}'
    text = POLICY.format(system="{generator: {model: demo-slm}}")
    return parse_policy(
        f"{text}judge: {{id: j, generators: [{{endpoint: {endpoint}}}]}}\n", "p.yaml"
    ).policy


def test_a_judge_is_asked_and_given_a_key_as_any_endpoint_is():
    base = judged("https://judge.invalid/v1")
    assert new_accesses(base, base) == []
    for proposed in (judged("https://other.invalid/v1"), judged("https://judge.invalid/v1", "X")):
        (sentence,) = new_accesses(proposed, base)
        assert "which the base commit's policy does not" in sentence
    assert any("with the key in 'KEY'" in sentence for sentence in introduced_accesses(base))


PARTS = (
    EndpointPart(base_url=HTTPS, model="m", api_key_env="K"),
    HttpPart(url=HTTPS, headers_env={"A": "K"}),
    HttpSearch(url=HTTPS, headers_env={"A": "K"}),
    CommandPart(run=["./ask"], env=["K"]),
    CommandSearch(run=["./find"], env=["K"]),
    PythonPart(call="m:f"),
    PythonSearch(call="m:f"),
    ServePart(command=["./serve"], ready_url=HTTPS, env=["K"]),
    EndpointPolicy(endpoint=HTTPS, model="m", api_key_env="K"),
)
"""One of every part of a policy that is asked, started or imported."""


def subclasses(model):
    for each in model.__subclasses__():
        yield each
        yield from subclasses(each)


def test_every_part_that_reaches_something_is_walked():
    reaching = {
        each
        for each in subclasses(Strict)
        if each.__module__.startswith("fairgate.")
        and isinstance(getattr(each, "accesses", None), property)
        and not inspect.isabstract(each)
        # These name what their parts reach, and are no base of another.
        and each not in {EndpointGeneratorPolicy, OwnRetrieverPolicy}
    }
    bases = {base for each in reaching for base in each.__mro__[1:]}
    assert reaching - bases == {type(part) for part in PARTS} - {EndpointPart, EndpointPolicy}


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value, "x"]
    if isinstance(value, dict):
        return {**value, "X": "Y"}
    return f"{value or ''}x"


def reached(part):
    if isinstance(part, EndpointPart):
        return {*EndpointGeneratorPolicy.model_construct(endpoint=part).accesses}
    if isinstance(part, EndpointPolicy):
        return {*BbqSuitePolicy.model_construct(retrievers=[part]).accesses()}
    return {*part.accesses}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_every_field_is_part_of_the_access_but_those_that_are_not_sent():
    wrong = []
    for part in PARTS:
        for name in type(part).model_fields:
            changed = part.model_copy(update={name: other(getattr(part, name))})
            if (reached(changed) == reached(part)) is not (name in NOT_SENT):
                wrong.append((type(part).__name__, name))
    assert wrong == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_bases_system_as_a_reference_reaches_nothing_that_the_base_does_not(system):
    """A change that compares with the base adds no access; a system of its own is one all the same."""
    base, own = policy(system), "generator: {model: demo-slm}"
    text = (
        POLICY.format(system=f"{{{own}}}\nreference: base")
        + "  - {metric: shift/answer, max: 0.1}\n"
    )
    proposed = parse_policy(text, "p.yaml").policy
    assert proposed.compares_with_base
    assert [*accesses(proposed)] == []
    assert new_accesses(proposed, base) == []
    other = f"{{{system}}}"
    named = parse_policy(text.replace("reference: base", f"reference: {other}"), "p.yaml").policy
    assert len(new_accesses(named, policy(own))) == len(SYSTEMS[system])
