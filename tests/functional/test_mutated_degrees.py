"""Variants of a run with degrees: another answer brings its own."""

import math
from pathlib import Path

import pytest
from calibration.kill_score import MutantSearch, kill_score
from calibration.mutants import MutationKind

POLICY = """\
version: 1
name: small
system: {recorded: answers.jsonl}
suites:
  - id: reviews
    task:
      id: review
      instruction: Is the review negative or positive?
      labels: [negative, positive]
    read: [labels, degrees]
    sources: sources.jsonl
    perturbations: [gender]
gates:
  - {parity: answers}
"""


def recorded(row):
    """Answer by the number of the source alone, sure of it by .9 of .95."""
    is_better = int(row["key"][1:].split("#")[0]) % 4 > 0
    label, other = ("positive", "negative") if is_better else ("negative", "positive")
    degrees = {label: round(math.log(0.9), 4), other: round(math.log(0.05), 4)}
    return {"response": label, "degrees": degrees}


@pytest.fixture
def mutated(workspace):
    (workspace.root / "policy.yaml").write_text(POLICY)
    workspace.respond(recorded)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0, workspace.said

    def score(*kinds):
        search = MutantSearch(kinds=kinds, stated=0.5, seeds=2)
        return kill_score(Path("policy.yaml"), Path("out"), search, baseline="none")

    return score


def smallest(score, reach):
    return [
        each["smallest"] and each["smallest"]["strength"]
        for each in score["found"]
        if each["mutant"]["reach"] == reach
    ]


@pytest.mark.whole
def test_a_rule_in_degrees_sees_other_answers(mutated):
    found = smallest(mutated(MutationKind.ANSWERS), "term")
    assert len(found) == 3
    assert all(strength is not None and strength <= 0.5 for strength in found)
