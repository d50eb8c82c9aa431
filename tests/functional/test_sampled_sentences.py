"""Who reads sentences of sampled answers is told so, and how long questions take."""

import pytest

from fairgate.cli import main
from fairgate.domain.wording import duration

POLICY = """\
version: 1
name: sampled
system:
  retriever: {{corpus: demo, embedder: minilm, top_k: 4}}
  generator:
    endpoint: {{base_url: "http://127.0.0.1:9/v1", model: mine{extra}}}
    decoding: {{temperature: {temperature}, max_new_tokens: 80}}
suites:
  - id: bot
    task: advice
    read: [{read}]
    sources: demo-questions
    perturbations: [age]
    control: neutral-phrases
    repeats: {repeats}
gates:
  - {{parity: {outcome}}}
"""
SAMPLED = {
    "temperature": 0.7,
    "repeats": 1,
    "extra": "",
    "read": "sentences",
    "outcome": "sentences",
}
OTHERS = (
    {"temperature": 0},
    {"repeats": 3},
    {"extra": ", extra_body: {temperature: null}"},
    {"read": "labels", "outcome": "unreadable"},
)


@pytest.fixture
def said(tmp_path, capsys):
    def of(command, **changes):
        path = tmp_path / "p.yaml"
        path.write_text(POLICY.format(**{**SAMPLED, **changes}))
        capsys.readouterr()
        code = main([command, str(path)])
        printed = capsys.readouterr()
        assert code == 0, printed
        return printed.out

    return of


def test_sampled_answers_that_are_asked_for_once_are_told_and_others_are_not(said):
    told = "suite bot: answers are drawn at temperature 0.7, one to each question"
    assert told in said("check")
    wrong = [
        changes for changes in OTHERS if "are drawn at temperature" in said("check", **changes)
    ]
    assert not wrong


def test_a_plan_tells_how_long_its_questions_take(tmp_path, capsys):
    for repeats, time in ((1, "16 minutes"), (3, "48 minutes")):
        path = tmp_path / "p.yaml"
        path.write_text(POLICY.format(**{**SAMPLED, "repeats": repeats}))
        capsys.readouterr()
        assert main(["plan", str(path)]) == 0
        printed = capsys.readouterr()
        lines = len(printed.out.splitlines())
        assert printed.err.startswith(f"{lines:,} questions: {time} at one second each."), lines


def test_times_are_told_as_people_tell_them():
    told = {0.2: "1 s", 59: "59 s", 61: "1 minute", 1680: "28 minutes", 5400: "1.5 hours"}
    assert {seconds: duration(seconds) for seconds in told} == told
