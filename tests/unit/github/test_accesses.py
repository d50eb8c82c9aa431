"""What a policy reaches outside, whatever it is that reaches there."""

from dataclasses import replace

import pytest
from fakes.policies import parse_policy

from fairgate.domain.schema import Access
from fairgate.github.change import accesses, new_accesses

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
    "http: {url: 'https://example.org/', headers_env: {A: K, B: L}, revision_url: 'https://example.org/r'}": [
        Access("asks", HTTPS, "K"), Access("asks", HTTPS, "L"),
        Access("asks", f"{HTTPS}r", "K"), Access("asks", f"{HTTPS}r", "L"),
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
