"""A kind of system is one file and one line; a test adds one without editing the package."""

import json

import pytest
from fakes.policies import parse_policy, schema
from fakes.toy_distribution.fairgate_toy import ParrotPolicy

from fairgate.domain.errors import PolicyError
from fairgate.domain.executions import Chat, Decoding
from fairgate.domain.schema import NamesOutside, SystemModel
from fairgate.systems import catalogue
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.generator import GeneratorPolicy
from fairgate.systems.local import prompt_facts
from fairgate.systems.system_kind import SystemKind

POLICY = """\
version: 1
name: toy
system: {parrot: {answer: positive}}
suites:
  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}
gates:
  - {parity: answers, max: 0.1}
"""


class Installed:
    """An entry point of a distribution."""

    def load(self):
        return ParrotPolicy


def test_what_a_kind_of_a_distribution_says_is_checked_located_and_in_the_schema(monkeypatch):
    assert "parrot" not in json.dumps(schema())
    monkeypatch.setattr(catalogue, "plugins", lambda _: [Installed()])
    assert isinstance(parse_policy(POLICY, "p").policy.system, ParrotPolicy)
    said = r"p:3:19: unknown key `anser` in `system.parrot`.*did you mean `answer`\?"
    with pytest.raises(PolicyError, match=said):
        parse_policy(POLICY.replace("answer:", "anser:"), "p")
    assert "parrot" in json.dumps(schema())


def test_the_keys_that_are_known_beforehand_are_those_of_the_models():
    parts = policy_parts().systems
    assert [part.keys for part in parts] == [part.model().keys for part in parts]


@pytest.mark.parametrize("part", ["accesses", "capabilities", "open"])
def test_a_kind_without_a_part_is_no_kind(part):
    lacking = type("Lacking", (ParrotPolicy,), {part: getattr(SystemKind, part)})
    with pytest.raises(TypeError, match=part):
        lacking(parrot={"answer": "positive"})


def test_a_suite_that_does_not_tell_what_it_reaches_is_no_suite():
    class Silent(NamesOutside):
        """A suite that says nothing of its secrets."""

    with pytest.raises(TypeError, match="accesses"):
        Silent.model_validate({})


def test_the_kind_of_every_model_is_found():
    class Other(SystemModel):
        """Known to nobody."""

    for part in policy_parts().systems:
        made = part.model().model_construct()
        assert kind_of(made) is made
    with pytest.raises(TypeError, match="Other is no kind"):
        kind_of(Other())


def test_the_conversation_of_a_generator_is_under_test_and_its_defaults_change_nothing():
    plain = GeneratorPolicy()
    assert plain.chat == Chat()
    assert plain.chosen_decoding == Decoding(thinking_tokens=4096)
    chosen = GeneratorPolicy(
        system="Be brief.", template_arguments={"enable_thinking": True}, decoding="paper-text",
        thinking_tokens=7,
    )  # fmt: skip
    assert chosen.chat == Chat(system="Be brief.", arguments=(("enable_thinking", True),))
    assert (chosen.chosen_decoding.thinking_tokens, chosen.chosen_decoding.temperature) == (7, 0.1)
    assert prompt_facts(plain) == f"{plain.template}\x001000"
    assert prompt_facts(chosen) != prompt_facts(plain)
