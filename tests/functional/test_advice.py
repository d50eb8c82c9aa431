"""What a report advises is never harmful: what is broken or shows nothing is not to be accepted."""

import re

import pytest
from fakes.following import following

BOUND = "  - {metric: asr/generation, max: 0.1}\n"
CHANGED = BOUND.replace("}", ", regression: 0.02}")


def texts(workspace):
    pages = [(workspace.root / "out" / f"report.{kind}").read_text() for kind in ("md", "html")]
    return [" ".join(text.split()) for text in (workspace.out, *pages)]


def against_race(key):
    return "negative" if "#race/" in key else "positive"


@pytest.mark.parametrize(("gates", "answer", "code"), [
    (CHANGED, against_race, 1),
    *((g, "I cannot judge {}.".format, 5) for g in (BOUND, CHANGED, CHANGED.replace("max: 0.1, ", ""))),
])  # fmt: skip
def test_a_run_that_fails_or_shows_nothing_is_not_to_be_accepted(workspace, gates, answer, code):
    assert workspace.gate(answer, gates=gates) == code
    for text in texts(workspace):
        assert "accept" not in text.replace("accepted", "")


def test_a_run_that_fails_because_answers_became_unreadable_is_not_to_be_accepted(workspace):
    assert workspace.gate("positive", gates=CHANGED) == 0
    workspace.accept()
    answer = lambda key: "no idea" if key.startswith(("s1", "s2")) else "positive"  # noqa: E731
    assert workspace.gate(answer) == 1
    for text in texts(workspace):
        assert "baseline accept" not in text
        assert "fewer than min_decided" in re.sub("`|</?code>", "", text)


def test_unreadable_answers_are_shown_with_the_labels_that_were_expected(workspace):
    assert workspace.gate(lambda key: "As a model I have no opinion.", gates=BOUND) == 5
    for text in texts(workspace):
        assert "As a model I have no opinion." in text
        assert "Expected one of the labels" in text
        assert all(label in text for label in ("positive", "negative", "neutral", "mixed"))


def test_at_most_three_different_unreadable_answers_are_shown(workspace):
    assert workspace.gate(lambda key: f"Refusal {len(key) % 7}, no opinion.", gates=BOUND) == 5
    text = " ".join(workspace.out.split())
    assert sum(f"Refusal {n}," in text for n in range(7)) == 3


def test_a_good_first_run_says_how_to_make_it_the_baseline(workspace):
    assert workspace.gate("positive", gates=CHANGED) == 0
    for text in texts(workspace):
        assert "fairgate baseline accept out --reason" in text


def documents(key):
    """Return other documents for an identity: retrieval is what changes the answer."""
    name = "other" if "#race/" in key else "same"
    return [{"id": name, "text": f"The {name} text.", "label": "toxic"}]


def test_a_recorded_system_is_told_how_to_find_the_cause(workspace):
    assert workspace.gate(against_race, documents, gates=BOUND) == 1
    for text in texts(workspace):
        assert "fairgate plan policy.yaml --after out" in text
    assert "By path" not in (workspace.root / "out" / "report.md").read_text()
    found = {m["metric"]: m for m in workspace.record()["measurements"]}
    assert "beside the documents of the other" in found["attribution/retrieval"]["note"]

    def crossed(row):
        if "documents" not in row:
            return None
        label = "negative" if row["documents"][0]["id"] == "other" else "positive"
        return {**row, "response": following(row["key"], label)}

    assert any("@documents=" in row["key"] for row in workspace.respond(crossed, "--after", "out"))
    assert workspace.gate() == 1
    assert "--after" not in workspace.out
    report = (workspace.root / "out" / "report.md").read_text()
    assert "of them come about through the retrieved documents" in report
    (attribution,) = workspace.record()["attribution"]
    assert attribution["parts"]["retrieval"]["share"] == 1.0
