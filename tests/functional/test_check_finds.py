"""`fairgate check` finds what can be found without running, all at once."""

from __future__ import annotations

import json

import pytest

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.runtime import Runtime
from fairgate.systems.recorded import Recorded, RecordedPolicy

POLICY = """\
version: 1
name: mine
system:
  retriever: {{corpus: {corpus}, embedder: {embedder}}}
  generator: {{model: {model}}}
suites:
  - {{id: s, task: sentiment, sources: {sources}, perturbations: [gender]}}
gates:
  - {{metric: {metric}, max: {bound}}}
"""
FINE = {
    "corpus": "corpus.jsonl", "embedder": "minilm", "model": "demo-slm", "sources": "sources.jsonl",
    "metric": "asr/generation/controlled", "bound": 0.2,
}  # fmt: skip


@pytest.fixture
def place(workspace):
    workspace.sources(4)
    rows = [{"id": n, "text": f"A document {n}.", "label": "toxic"} for n in range(3)]
    (workspace.root / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return workspace


def checked(place, **changes):
    (place.root / "p.yaml").write_text(POLICY.format(**{**FINE, **changes}))
    return place.run("check", "p.yaml")


def model(place, name, *files):
    folder = place.root / name
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_text("{}")


def test_a_valid_policy_says_what_its_corpus_holds(place):
    assert checked(place) == 0
    assert "corpus 'corpus.jsonl': 3 documents, 3 with a label" in place.out


def test_everything_wrong_is_told_at_once_with_its_place(place):
    model(place, "models/empty")
    model(place, "models/no-tokenizer", "model.onnx")
    (place.root / "corpus.jsonl").write_text("")
    code = checked(
        place, model="./models/empty", embedder="./models/no-tokenizer", sources="none.jsonl",
        metric="asr/genaration",
    )  # fmt: skip
    assert code == 2
    for line, said in ((5, "no *.onnx"), (4, "no tokenizer.json"), (4, "corpus.jsonl"),
                       (7, "none.jsonl"), (9, "unknown metric 'asr/genaration'")):  # fmt: skip
        assert any(f"p.yaml:{line}:" in one and said in one for one in place.err.splitlines()), said


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_folder_of_models_that_lacks_one_is_no_id_of_the_hub(place, command):
    model(place, "models/my-model", "model.onnx", "tokenizer.json")
    checked(place, model="models/my-modle")
    assert place.run(command, "p.yaml") in (2, 4)
    assert "there is no folder 'models/my-modle'; did you mean `./models/my-model`?" in place.err
    assert "fairgate export" in place.err


def test_an_id_of_the_hub_is_not_looked_up(place):
    assert checked(place, model="some-org/some-model") == 0


@pytest.mark.parametrize(
    ("rows", "code", "said"),
    [
        ([], 2, "corpus.jsonl"),
        ([{"id": 1, "text": "Unlabelled."}], 0, "1 document, none with a label"),
        ([{"id": 1, "text": "One."}, {"id": 1, "text": "Two."}], 2, "was used on line 1 already"),
    ],
)
def test_the_corpus_is_read(place, rows, code, said):
    (place.root / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert checked(place) == code
    assert said in place.out + place.err


def test_unknown_metrics_are_told_beside_malformed_values(place):
    assert checked(place, metric="asr/generatoin", bound="much") == 2
    assert "unknown metric 'asr/generatoin'; did you mean" in place.err
    assert "'much'" in place.err


def test_check_says_which_questions_a_recording_answers(workspace):
    workspace.sources(4)
    workspace.policy()
    keys = [case["key"] for case in workspace.plan()]
    answered = keys[:-7]
    rows = [{"key": key, "response": "positive"} for key in (*answered, "s0#gender/womn")]
    (workspace.root / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert workspace.run("check", "policy.yaml") == 0
    assert f"answers: {len(answered)} of {len(keys)} questions answered" in workspace.out
    assert f"first missing: '{keys[-7]}'" in workspace.out
    assert "1 line answers no question, first 's0#gender/womn' (did you mean" in workspace.out
    (workspace.root / "answers.jsonl").write_text("")
    assert workspace.run("check", "policy.yaml") == 0
    assert f"answers: 0 of {len(keys)} questions answered" in workspace.out
    (workspace.root / "answers.jsonl").write_text("{")
    assert workspace.run("check", "policy.yaml") == 2
    assert "answers.jsonl:1" in workspace.err


def test_a_question_about_an_answer_counts_once_there_is_the_answer(tmp_path):
    def case(key, embeds=None):
        return Case(
            key=key, suite="s", query="q", instruction="", labels=(), cluster=key, embeds=embeds
        )

    plan = TestPlan(cases=[case("a"), case("b"), case("b#again", "b")], units=())
    path = tmp_path / "answers.jsonl"
    for answered, said in (("a", "1 of 2"), ("ab", "2 of 3")):
        rows = [{"key": key, "response": "yes"} for key in answered]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        policy = RecordedPolicy(recorded=str(path))
        (found,) = Recorded().examined(policy, plan, Runtime())
        assert f"answers: {said} questions answered" in found.sentence
