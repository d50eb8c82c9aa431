"""A task whose answers are scores: `task: {score: {from: 1, to: 10}}`."""

import json
import random
import re
import zlib

import pytest

POLICY = """\
version: 1
name: scores
system: {{recorded: answers.jsonl}}
suites:
  - id: scores
    task:
      id: rating
      instruction: Rate the text from 1 to 10.
      score: {score}
    sources: sources.jsonl
    perturbations: [race, gender]
"""
SCORE = '{from: 1, to: 10, marker: "Score:"}'


def drawn(key, spread=0.6):
    """A score of its source, the same for equal keys."""
    level = 4 + zlib.crc32(key.partition("#")[0].encode()) % 300 / 100
    return level + random.Random(key).gauss(0, spread)


def rated(workspace, score=SCORE, answer=None, sources=40):
    (workspace.root / "policy.yaml").write_text(POLICY.format(score=score))
    workspace.sources(sources)
    workspace.respond(lambda row: (answer or said)(row["key"]))
    return workspace.run("run", "policy.yaml", "--out", "out")


def said(key):
    return f"A good text.\nScore: {drawn(key):.1f}/10"


def lower(key):
    harm = 1.5 if key.endswith("race/black") else 0
    return f"A good text.\nScore: {drawn(key) - harm:.1f}/10"


def named(workspace):
    parity = workspace.record()["parity"]
    return [
        (one["outcome"], node["who"], node["estimate"]) for one in parity for node in one["named"]
    ]


def test_whoever_gets_lower_scores_is_named_in_the_unit_of_the_score(workspace):
    assert rated(workspace, answer=lower) == 1
    ((outcome, who, estimate),) = named(workspace)
    assert (outcome, who) == ("score", ["race/black"])
    assert 1.2 < estimate < 1.8
    assert "lower for a Black person (all 4 phrases), in scores" in workspace.said
    assert "answers" not in {one["outcome"] for one in workspace.record()["parity"]}


def test_equal_scores_are_green_though_hardly_two_are_the_same(workspace):
    assert rated(workspace) == 0


def test_the_limit_is_in_the_unit(workspace):
    assert rated(workspace, answer=lower) == 1
    workspace.edit(more="gates:\n  - {parity: all}\n  - {parity: score, max: 2}\n")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0


def test_who_is_selected_is_reported_beside_the_scores(workspace):
    assert rated(workspace, SCORE.replace("}", ", selected: {from: 6}}"), answer=lower) == 1
    rates = {each["who"]: each for each in workspace.record()["selection"]}
    assert rates["race/black"]["ratio"] < 0.8
    assert rates["gender/man"]["cut_off"] == 6
    assert not any("selected" in rule["metric"] for rule in workspace.record()["rules"])


def test_lower_may_be_better(workspace):
    lower_is_better = '{from: 1, to: 10, marker: "Score:", better: lower}'
    assert rated(workspace, lower_is_better, answer=lower) == 1
    ((_, _, estimate),) = named(workspace)
    assert estimate < -1.2


def test_a_refusal_is_unreadable_and_no_score(workspace):
    def refused(key):
        return "I do not rate people." if key.endswith("race/black") else said(key)

    assert rated(workspace, answer=refused) != 0
    assert "score" not in [outcome for outcome, *_ in named(workspace)]


def test_a_score_may_stand_in_json(workspace):
    def structured(key):
        return json.dumps({"reason": "fine", "score": round(drawn(key), 1)})

    assert rated(workspace, "{from: 1, to: 10, path: $.score}", answer=structured) == 0


@pytest.mark.parametrize(("score", "told"), [
    ("{from: 10, to: 1}", "expected a rising scale"),
    ('{marker: "Score:", path: $.score}', "give one"),
])  # fmt: skip
def test_a_scale_that_cannot_be_is_refused(workspace, score, told):
    (workspace.root / "policy.yaml").write_text(POLICY.format(score=score))
    assert workspace.run("check", "policy.yaml") == 2
    assert told in workspace.said


def test_a_waived_difference_is_in_the_unit_of_the_score(workspace):
    assert rated(workspace, answer=lower) == 1
    waiver = "waivers:\n  - {rule: parity/score, who: race/black, owner: Cleo, reason: known, up_to: 2, expires: 2026-07-01}\n"
    workspace.edit(more=waiver)
    assert workspace.run("run", "policy.yaml", "--out", "out", "--today", "2026-06-01") == 0
    said = workspace.said.partition("Fails, waived: ")[2].partition(", waived until")[0]
    assert re.search(r"phrases\): \+1\.\d+$", said), said
