"""A change that swaps the files behind unchanged rules is seen; one of what is tested is not news."""

import contextlib
import re
import shutil

import pytest
from action.repositories import POLICY, fair, introduced

from fairgate.io.named_files import find

SET = """\
id: religion
terms:
  - {term: hindu, noun_phrase: A Hindu person}
  - {term: sikh, noun_phrase: A Sikh person}
"""
TASK = """\
id: mood
instruction: Say whether the text is positive or negative.
labels: [positive, negative]
"""


def comments(job):
    return [comment["body"] for comment in job.hub.ours(7)]


def naming(states, folder):
    """Make one whose policy names a file of every kind that a recorded system has."""
    history = states.copy(introduced, folder)
    history.write("terms.yaml", SET)
    history.write("task.yaml", TASK)
    text = POLICY.replace("gender]", "terms.yaml]").replace("task: sentiment", "task: task.yaml")
    history.write("policies/small.yaml", text)
    with contextlib.chdir(folder):
        history.answers(fair)
        history.accept()
    history.commit("name files")
    history.branch()
    return history


@pytest.fixture
def gated(states, history):
    return states.copy(naming, history.root)


EDITS = {
    "terms.yaml": lambda h: SET.replace("Hindu person", "Hindu woman"),
    "task.yaml": lambda h: TASK + "reading: said\n",
    "sources.jsonl": lambda h: (
        h.read("sources.jsonl") + '{"id": "s10", "text": "Text number 10 is fine."}\n'
    ),
}


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("role", "file"),
    [("perturbation set", "terms.yaml"), ("task", "task.yaml"), ("sources", "sources.jsonl")],
)
def test_a_change_of_what_is_asked_is_shown(gated, job, role, file):
    then = gated.read("answers.jsonl")
    gated.write(file, EDITS[file](gated))
    gated.answers(fair)
    gated.write("answers.jsonl", then + gated.read("answers.jsonl"))
    gated.commit()
    assert job.pull(gated) == 0
    (body,) = comments(job)
    listed = rf"\A(<!--.*-->\n<sub>Commit .*</sub>\n\n)?\*\*This change edits\*\* .*{role} `{file}`.*\n\n#"
    assert re.search(listed, body)
    assert re.search(listed, job.summary)
    assert "| the base commit | ✅ PASS | **decides** |" in body
    assert "| this change | ✅ PASS | for comparison |" in body


def test_new_answers_are_what_is_tested(gated, job):
    gated.write("answers.jsonl", gated.read("answers.jsonl") + "\n")
    gated.commit()
    assert job.pull(gated) == 0
    assert comments(job) == []
    edited = "**This change edits** recorded answers (under test) `answers.jsonl`\n\n#"
    assert job.summary.startswith(edited)


def test_removed_cases_are_shown_even_if_few(history, job, monkeypatch):
    """Two sources are reworded, so they are new cases."""
    history.branch()
    text = history.read("sources.jsonl")
    history.write("sources.jsonl", text.replace("0 is fine.", "0 is fine!"))
    history.answers(fair)
    history.commit()
    assert job.pull(history) == 0
    assert len(comments(job)) == 1


def test_a_gate_that_stops_has_an_error_annotation(history, job):
    """Too few answers to say anything: every rule passes or is open, the build is stopped."""
    history.proposes(lambda key: None if key.startswith(("s0", "s1")) else "positive")
    assert job.pull(history) == 5
    errors = [line for line in job.out.splitlines() if line.startswith("::error ")]
    assert len(errors) == 1
    assert "file=policies/small.yaml" in errors[0]
    assert "decided" in errors[0]
    assert job.outputs["outcome"] == "inconclusive"
    assert "too little evidence for a verdict" in job.summary
    assert len(comments(job)) == 1


def test_a_baseline_that_no_longer_fits_has_an_error_annotation(history, job):
    history.sources(5)
    history.answers(fair)
    history.commit()
    history.proposes()
    assert job.pull(history) == 3
    assert [line[:8] for line in job.out.splitlines() if line.startswith("::error")] == ["::error "]


@pytest.mark.whole
def test_another_measuring_model_is_seen(job, history):
    """With another embedder the recorded documents have another RRS, whatever they are."""
    shutil.copytree(find("models", "minilm", history.root), history.root / "encoder")
    text = POLICY.replace(
        "answers.jsonl}",
        'answers.jsonl, embedder: {model: encoder, query_prompt: "", document_prompt: ""}}',
    )
    history.write("policies/small.yaml", text)
    history.accept()
    history.commit("measured by a model of the repository")
    history.proposes()
    assert job.pull(history) == 0
    assert comments(job) == []
    history.git("checkout", "-q", "topic")
    weights = (history.root / "encoder" / "model.onnx").read_bytes()
    (history.root / "encoder" / "model.onnx").write_bytes(weights + b"\0")
    history.commit()
    assert job.pull(history) == 0
    assert "**This change edits** measuring embedder `encoder/model.onnx`" in comments(job)[0]
