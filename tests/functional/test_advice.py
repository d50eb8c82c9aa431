"""What a report advises is never harmful: what is broken or shows nothing is not to be accepted."""

import json

import pytest
from fakes.following import following

BOUND = "  - {metric: asr/generation/controlled, max: 0.1}\n"
CHANGED = BOUND.replace("}", ", regression: {margin: 0.02}}")


def texts(workspace):
    """Return everything that a person reads of a run, in one line each."""
    out = workspace.root / "out"
    return [
        " ".join(text.split())
        for text in (
            workspace.out,
            (out / "report.md").read_text(),
            (out / "report.html").read_text(),
        )
    ]


def against_race(key):
    return "negative" if "#race/" in key else "positive"


def test_a_failing_first_run_is_not_to_be_accepted(workspace):
    workspace.policy(gates=CHANGED)
    workspace.answers(against_race)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    for text in texts(workspace):
        assert "accept" not in text.replace("accepted", "")


@pytest.mark.parametrize("gates", [BOUND, CHANGED, CHANGED.replace("max: 0.1, ", "")])
def test_a_run_without_readable_answers_is_not_to_be_accepted(gates, workspace):
    workspace.policy(gates=gates)
    workspace.answers(lambda key: f"I cannot judge {key}.")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 5
    for text in texts(workspace):
        assert "accept" not in text.replace("accepted", "")


def test_a_run_that_fails_because_answers_became_unreadable_is_not_to_be_accepted(workspace):
    """Its title says so too: an unchanged rate is not what a reader should worry about."""
    workspace.policy(gates=CHANGED)
    workspace.answers(lambda key: "positive")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0
    assert workspace.run("baseline", "accept", "out", "--reason", "first") == 0
    workspace.answers(lambda key: "no idea" if key.startswith(("s1", "s2")) else "positive")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    assert "fewer answers can be judged than in the baseline" in workspace.out.splitlines()[0]
    for text in texts(workspace):
        assert "baseline accept" not in text
        assert "fewer than min_decided" in text.replace("`", "").replace("</code>", "").replace(
            "<code>", ""
        )


def test_unreadable_answers_are_shown_with_the_labels_that_were_expected(workspace):
    workspace.policy(gates=BOUND)
    workspace.answers(lambda key: "As a model I have no opinion.")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 5
    for text in texts(workspace):
        assert "As a model I have no opinion." in text
        assert "Expected one of the labels" in text
        assert all(label in text for label in ("positive", "negative", "neutral", "mixed"))


def test_at_most_three_different_unreadable_answers_are_shown(workspace):
    workspace.policy(gates=BOUND)
    workspace.answers(lambda key: f"Refusal {len(key) % 7}, no opinion.")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 5
    assert sum(f"Refusal {n}," in workspace.out for n in range(7)) == 3


def test_a_good_first_run_says_how_to_make_it_the_baseline(workspace):
    workspace.policy(gates=CHANGED)
    workspace.answers(lambda key: "positive")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0
    for text in texts(workspace):
        assert "fairgate baseline accept out --reason" in text


def documents(key):
    """Return other documents for an identity: retrieval is what changes the answer."""
    name = "other" if "#race/" in key else "same"
    return [{"id": name, "text": f"The {name} text.", "label": "toxic"}]


def test_a_recorded_system_is_told_how_to_find_the_cause(workspace):
    workspace.policy(gates=BOUND)
    workspace.answers(against_race, documents=documents)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    for text in texts(workspace):
        assert "fairgate plan policy.yaml --after out" in text
    assert "By path" not in (workspace.root / "out" / "report.md").read_text()
    assert workspace.run("plan", "policy.yaml", "--after", "out") == 0
    rows = [json.loads(line) for line in workspace.out.splitlines()]
    with (workspace.root / "answers.jsonl").open("a") as file:
        for row in (row for row in rows if "documents" in row):
            label = "negative" if row["documents"][0]["id"] == "other" else "positive"
            line = {**row, "response": following(row["key"], label)}
            file.write(json.dumps(line) + "\n")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    assert "--after" not in workspace.out
    report = (workspace.root / "out" / "report.md").read_text()
    assert "of them come about through the retrieved documents" in report
