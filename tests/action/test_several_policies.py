"""Several policies in one step: all are judged, the worst decides, and there is one comment."""

import contextlib
import json
from pathlib import Path

import pytest
from action.repositories import POLICY, introduced, worse

from fairgate.domain.outcomes import Outcome
from fairgate.github import report
from fairgate.github.report import PolicyRow, several_head
from fairgate.reports.markdown import length

BOTH = "policies/small.yaml\n  policies/other.yaml\n"
OTHER = POLICY.replace("name: small", "name: other").replace("answers.jsonl", "others.jsonl")


def doubled(states, folder):
    history = states.copy(introduced, folder)
    history.write("policies/other.yaml", OTHER)
    history.write("others.jsonl", history.read("answers.jsonl"))
    with contextlib.chdir(folder):
        history.accept(policy="policies/other.yaml")
    assert (folder / "baselines" / "other.json").is_file()
    history.commit("a second policy")
    history.branch()
    return history


@pytest.fixture
def two(states, history):
    return states.copy(doubled, history.root)


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.INCONCLUSIVE])
def test_the_head_shows_the_worst_wherever_it_stands(outcome):
    one, other = (
        PolicyRow(name=name, mark=each, word="X", lead="", exit_code=code)
        for name, each, code in (("p", Outcome.PASS, 0), ("q", outcome, 5))
    )
    head = several_head([one, other], outcome)
    assert head.startswith(f"### {'❌' if outcome is Outcome.FAIL else '⚠️'} FairGate: 1 of 2")


def test_the_worst_decides_and_one_comment_tells_of_all(two, steps):
    two.answers(worse)
    two.commit()
    done = steps.pull(inputs={"policy": BOTH}, code=1)
    (comment,) = steps.job.hub.ours(7)
    head, _, rest = comment["body"].partition("### ❌ FairGate: answers became worse for race (10)")
    assert "1 of 2 policies did not pass" in head
    row = "| `small` | ❌ FAIL | **race** (10) · +20.0&nbsp;points |"
    assert row in head
    assert "| `other` | ✅ PASS |" in head
    assert "in `small`" in rest
    assert "in `other`" not in rest, "what passed is a line"
    assert "in `other`" in done.summary
    assert (done.outputs["outcome"], done.outputs["exit-code"]) == ("fail", "1")
    results = json.loads(done.outputs["results"])
    assert {name: one["outcome"] for name, one in results.items()} == {
        "small": "fail", "other": "pass",
    }  # fmt: skip
    assert done.outputs["run-folder"] == results["small"]["run-folder"]
    assert all((Path(one["run-folder"]) / "run.json").is_file() for one in results.values())
    # The same comment is kept, whatever the order of the list.
    steps.job.pull_again(two, FAIRGATE_POLICY="policies/other.yaml\npolicies/small.yaml")
    assert len(steps.job.hub.ours(7)) == 1


@pytest.mark.whole
def test_all_that_pass_are_told_in_a_line_each(two, steps):
    two.write("notes.txt", "nothing")
    two.commit()
    steps.pull(inputs={"policy": BOTH, "comment": "always"}, code=0)
    (comment,) = steps.job.hub.ours(7)
    assert "2 policies pass" in comment["body"]
    assert len(comment["body"].splitlines()) < 12


def test_what_no_list_of_policies_is_is_refused(two, job):
    two.commit()
    two.merge()
    for policies, said in (
        ("policies/*.yaml", "could take its own policy"),
        ("policies/small.yaml\npolicies/small.yaml", "twice"),
        ("policies/small.yaml\npolicies/./small.yaml", "two policies are called"),
        (" \n\n", "policy is empty"),
        ("policies/small.yaml\n../small.yaml", "inside the checkout"),
    ):
        assert job.pull_again(two, FAIRGATE_POLICY=policies) == 2
        assert said in job.out + job.err


@pytest.mark.whole
def test_the_reports_share_the_room_of_one_comment(two, steps, monkeypatch):
    monkeypatch.setattr(report, "COMMENT_LIMIT", 5_600)
    two.answers(worse)
    two.write("others.jsonl", two.read("answers.jsonl"))
    two.commit()
    steps.pull(inputs={"policy": BOTH}, code=1)
    (comment,) = steps.job.hub.ours(7)
    assert "2 of 2 policies did not pass" in comment["body"]
    for name in ("small", "other"):
        assert f"answers became worse for race (10), in `{name}`" in comment["body"]
    assert comment["body"].count("<details>") == comment["body"].count("</details>")
    assert length(comment["body"].partition("\n")[2]) <= 5_600
