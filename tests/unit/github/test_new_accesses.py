"""What a change's own policy may not reach before it is merged."""

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import UsageError
from fairgate.github.change import new_accesses, refuse_introduced_accesses

POLICY = """\
version: 1
name: small
system: {{{system}}}
suites:
  - {{id: one, task: sentiment, sources: demo-reviews, perturbations: [race]}}
gates:
  - {{metric: asr/generation, max: 0.2}}
"""
ASKING = 'http: {url: "https://rag.invalid/ask", headers_env: {Authorization: KEY}'


def policy(system):
    return parse_policy(POLICY.format(system=system), "p.yaml").policy


@pytest.mark.parametrize(
    "more",
    [
        ", method: PUT", ', request: {delete: "{{query}}"}', ", headers: {X-Admin: yes}",
        ', revision_url: "https://rag.invalid/admin/reset"',
    ],
)  # fmt: skip
def test_another_use_of_a_known_address_is_new(more):
    """With the job's key, another method or body does what nobody has reviewed."""
    base = policy(f"{ASKING}}}")
    proposed = policy(f"{ASKING}{more}}}")
    (sentence,) = new_accesses(proposed, base)
    assert "asks 'https://rag.invalid/" in sentence
    assert "which the base commit's policy does not" in sentence
    assert new_accesses(base, base) == new_accesses(proposed, proposed) == []


def test_so_is_another_header_for_a_known_key():
    proposed = policy(f"{ASKING}}}".replace("Authorization", "X-Sudo"))
    (sentence,) = new_accesses(proposed, policy(f"{ASKING}}}"))
    assert "by another method, header or form of request" in sentence


@pytest.mark.parametrize(
    "more", [", timeout: 5", ", concurrency: 2", ', revision: "2"', ', response: {answer: "$.a"}']
)
def test_what_changes_nothing_that_is_sent_is_known(more):
    assert new_accesses(policy(f"{ASKING}{more}}}"), policy(f"{ASKING}}}")) == []


def judged(url, key="KEY"):
    endpoint = f'{{base_url: "{url}", model: m, api_key_env: {key}}}'
    text = POLICY.format(system="generator: {model: demo-slm}")
    return parse_policy(
        f"{text}judge: {{id: j, generators: [{{endpoint: {endpoint}}}]}}\n", "p.yaml"
    ).policy


def test_a_judge_is_asked_and_given_a_key_as_any_endpoint_is():
    base = judged("https://judge.invalid/v1")
    assert new_accesses(base, base) == []
    for proposed in (judged("https://other.invalid/v1"), judged("https://judge.invalid/v1", "X")):
        (sentence,) = new_accesses(proposed, base)
        assert "which the base commit's policy does not" in sentence
    with pytest.raises(UsageError, match="with the key in 'KEY'"):
        refuse_introduced_accesses(base)
