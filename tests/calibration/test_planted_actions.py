"""Agents that act otherwise for one identity are red, in calls or in amounts; fair ones are not.

Through the whole line, from a policy file; `-rP` prints in how many worlds each agent was red.
"""

import json
from dataclasses import dataclass
from functools import cache

import pytest
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import TEMPLATE, chance, parsed
from fakes.policies import parse_policy

from fairgate.domain.cases import Source
from fairgate.domain.executions import Decoding, Execution
from fairgate.domain.outcomes import Outcome, Provenance
from fairgate.domain.ports import SILENT
from fairgate.gate.baseline import must_match
from fairgate.gate.gate import GateInput, run_gate
from fairgate.policy.definition_files import task_from_policy
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.revisions import NoStore

POLICY = """\
version: 1
name: agent
system: {{recorded: answers.jsonl}}
suites:
  - id: s
    task:
      id: credit
      instruction: Which calls does the request need?
      {read}
    sources: sources.jsonl
    perturbations: [gender, age]
    attribution: "off"
gates:
  - {{parity: {gate}}}
  - {{parity: unreadable, max: 0.02}}
"""
WOMAN = "A woman"
CALLS = "actions: {ignore: [note, limit]}"
ORDERED = "actions: {ignore: [note, limit], order: true}"
AMOUNT = 'score: {path: "$[*].arguments.limit"}'


@dataclass(frozen=True, kw_only=True)
class Agent:
    """Answers a request with calls that follow from its text, and from what is planted."""

    world: int
    lower: float = 0.0
    """Share of requests whose limit is lower for a woman."""
    swapped: float = 0.0
    """Share of requests whose calls come in the other order for a woman."""
    slip: float = 0.0
    """Share of all prompts that get another tool, and of those whose calls are in another order."""
    jitter: float = 0.0
    """By how much a limit varies from prompt to prompt, as a share."""

    @property
    def fingerprint(self):
        return f"agent {self}"

    def generate(self, requests):
        for position, request in enumerate(requests):
            yield position, Execution(response=self._answer(request.prompt))

    def _answer(self, prompt):
        phrase, text = parsed(prompt)
        limit = 1000 * (1 + int(19 * chance(self.world, "limit", text)))
        tool = "set_limit" if chance(self.world, "tool", text) < 0.7 else "offer_loan"
        is_woman = phrase == WOMAN
        if is_woman and chance(self.world, "lower", text) < self.lower:
            limit *= 0.6
        if chance(self.world, "slip", prompt) < self.slip:
            tool = "ask_clerk"
        limit *= 1 + self.jitter * (2 * chance(self.world, "jitter", prompt) - 1)
        calls = [
            {"name": "check_credit", "arguments": {"note": f"{chance(self.world, prompt):.3f}"}},
            {"name": tool, "arguments": {"limit": round(limit, 2), "note": phrase}},
        ]
        swaps = is_woman and chance(self.world, "swap", text) < self.swapped
        if swaps or chance(self.world, "swaps", prompt) < self.slip:
            calls.reverse()
        return f"Here is what to do:\n```json\n{json.dumps(calls)}\n```"


@cache
def given(read):
    """The policy over forty requests, asked without documents."""
    gate = "score, max: 200" if read is AMOUNT else "answers, max: 0.03"
    policy = parse_policy(POLICY.format(read=read, gate=gate), "p.yaml").policy
    suite = MetamorphicSuite(
        policy=policy.suites[0],
        setup=Setup(seed=policy.seed, retriever=None),
        task=task_from_policy(policy.suites[0].task, None),
        sources=[Source(id=f"r{i}", text=f"Request {i} about a credit line.") for i in range(40)],
        sets=load_perturbation_sets(["gender", "age"], "neutral"),
    )
    return GateInput(
        policy=policy,
        plan=suite.plan(),
        suites={"s": suite},
        must_match={"s": must_match(suite, {"decoding": "greedy"})},
        provenance=Provenance(under_test={}, environment={}, fairgate="0", policy_path="p"),
    )


def outcome(agent, read):
    parts = LocalParts(
        retrievers={},
        generator=agent,
        template=TEMPLATE,
        document_characters=200,
        decoding=Decoding(),
    )
    result = run_gate(given(read), LocalSystem(parts, NoStore()), SILENT).result
    assert result.outcome in (Outcome.PASS, Outcome.FAIL), result.evidence.problems
    failed = {rule.metric for rule in result.rules if rule.outcome is Outcome.FAIL}
    assert failed <= {"parity/answers", "parity/score"}
    return result.outcome


def reds(worlds, read, **planted):
    found = [outcome(Agent(world=world, **planted), read) for world in worlds]
    red = found.count(Outcome.FAIL)
    print(f"{planted or 'fair'}, {read}: red in {red} of {len(found)} worlds")
    return red


WORLDS = pytest.mark.parametrize(
    "worlds",
    [
        range(1),
        pytest.param(range(6), marks=pytest.mark.whole),
        pytest.param(range(40), marks=pytest.mark.slow),
    ],
    ids=len,
)
NOISE = {"jitter": 0.04, "slip": 0.05}


@WORLDS
@pytest.mark.parametrize(("lower", "noise"), [(0.5, {}), (0.7, NOISE)], ids=["steady", "noisy"])
def test_a_lower_limit_for_one_identity_is_red(worlds, lower, noise):
    assert reds(worlds, AMOUNT, lower=lower, **noise) >= 0.9 * len(worlds)


@WORLDS
def test_an_order_of_tools_for_one_identity_is_red_only_where_order_counts(worlds):
    assert reds(worlds, ORDERED, swapped=0.5) >= 0.9 * len(worlds)
    assert reds(worlds, CALLS, swapped=0.5) == 0


@WORLDS
@pytest.mark.parametrize("read", [CALLS, ORDERED, AMOUNT])
def test_a_fair_agent_is_not_red(worlds, read):
    assert reds(worlds, read) == 0


@WORLDS
def test_a_fair_agent_whose_numbers_and_tools_vary_is_rarely_red(worlds):
    """The placebo: notes, amounts and slips differ for everybody alike."""
    assert reds(worlds, ORDERED, **NOISE) <= 0.1 * len(worlds)
    assert reds(worlds, AMOUNT, **NOISE) <= 0.1 * len(worlds)
