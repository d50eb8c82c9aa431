"""`reference: base`: what moves from the base commit, for whom; without a base it is said, not red."""

import contextlib
import json
import re

import pytest
from action.repositories import POLICY, fair
from functional.test_blame import ByRule, documents, lines

from fairgate.cli import main
from fairgate.systems import local

GATE = "policies/small.yaml"
WITH_BASE = (
    POLICY.replace("    control: paper\n", "")
    .replace("max: 0.2, regression", "max: 0.05, regression")
    .replace("answers.jsonl}\n", "answers.jsonl}\nreference: base\n")
    + "  - {metric: shift/answer, max: 0.05, evidence: significant}\n"
)
PROPOSED = "| this change | ❌ FAIL: **a Black person** (all 4 phrases) · +"
BESIDE = "answers move from the reference's for a Black person"


def comparing(states, folder):
    """Make a repository whose policy compares with the base commit's system."""
    from action.repositories import introduced

    history = states.copy(introduced, folder)
    history.write(GATE, WITH_BASE)
    with contextlib.chdir(folder):
        history.answers(fair)
        history.accept()
    history.commit("compare with the base")
    history.branch()
    return history


@pytest.fixture
def gated(states, history):
    return states.copy(comparing, history.root)


def black_turned(key):
    return "negative" if "#race/black" in key else "positive"


def body(job):
    (comment,) = [comment["body"] for comment in job.hub.ours(7)]
    return comment.replace("&nbsp;", " ")


def title(text):
    return next(line for line in text.splitlines() if line.startswith("### "))


def test_nothing_moves_where_nothing_changes(gated, job):
    gated.proposes(files={"README": "Text.\n"})
    assert job.pull(gated) == 0
    record = json.loads((gated.root / job.outputs["run-folder"] / "run.json").read_text())
    rules = {rule["metric"]: rule["outcome"] for rule in record["rules"]}
    assert rules["shift/answer"] == rules["parity/answers/reference"] == "pass"
    assert BESIDE not in job.summary


def test_a_changed_file_of_the_system_is_compared_with_the_bases(gated, job):
    gated.proposes(black_turned)
    assert job.pull(gated) == 1
    assert BESIDE in title(body(job)), body(job)
    assert re.search(r"\| ❌ \| \*\*answers\*\*, beside reference \| \*\*a Black person", body(job))


def test_another_system_of_the_policy_is_compared_with_the_bases(gated, job):
    """The base's rules decide on the base's system; the table says whom what is proposed fails."""
    gated.proposes(black_turned)
    turned = gated.read("answers.jsonl")
    gated.branch()
    changed = WITH_BASE.replace("recorded: answers.jsonl", "recorded: new.jsonl")
    gated.proposes(files={"new.jsonl": turned, GATE: changed})
    assert job.pull(gated) == 0
    assert PROPOSED in body(job), body(job)


def test_a_policy_that_begins_to_compare_is_compared(history, job):
    """The base's policy names no reference: the change's own is judged beside it."""
    history.proposes(black_turned)
    turned = history.read("answers.jsonl")
    history.branch()
    changed = WITH_BASE.replace("recorded: answers.jsonl", "recorded: new.jsonl")
    changed = changed.replace("    perturbations", "    control: paper\n    perturbations")
    history.proposes(files={"new.jsonl": turned, GATE: changed})
    job.pull(history)
    assert PROPOSED.replace("a Black person** (all 4 phrases)", "race** (10)") in body(job), body(
        job
    )


def test_an_introduced_policy_has_no_base(history, job):
    history.git("checkout", "-q", "main")
    history.git("rm", "-q", GATE, "baselines/small.json")
    history.commit("no gate")
    history.proposes(files={GATE: WITH_BASE})
    assert job.pull(history) in (0, 5)
    assert "what moved is not known: the base commit has no such policy" in job.summary


@pytest.mark.parametrize("event", ["push", "run"])
def test_without_a_base_it_is_said_and_not_red(gated, job, capsys, event):
    if event == "push":
        gated.git("checkout", "-q", "main")
        assert job.push(gated) == 0
        said = job.summary
    else:
        assert main(["run", GATE, "--out", "out", "--quiet"]) == 0
        said = (gated.root / "out/report.md").read_text()
    assert "what moved is not known: no base commit is known here" in said
    assert BESIDE not in said


def test_run_with_a_base_compares_and_is_judged_again_alike(gated, capsys):
    gated.proposes(black_turned)
    assert main(["run", GATE, "--base", "main", "--out", "out", "--quiet"]) == 1
    record = (gated.root / "out/run.json").read_text()
    assert main(["rescore", "out"]) == 1
    assert (gated.root / "out/rescored/run.json").read_text() == record
    capsys.readouterr()
    assert main(["comment", "out"]) == 0
    said = capsys.readouterr().out.replace("&nbsp;", " ")
    assert BESIDE in said, said


NO_VERSION = {
    "http": "system: {http: {url: 'http://localhost:1/ask', request: {q: '{{prompt}}'}, response: {text: $.a}}}",
    "command": "system: {command: {run: [python3, app.py]}}",
    "own retriever": "system: {retriever: {command: [python3, find.py]}, generator: {model: demo-slm}}",
}


def test_a_system_without_a_version_of_the_base_is_refused(gated, capsys):
    wrong = []
    for name, system in NO_VERSION.items():
        text = WITH_BASE.replace("system: {recorded: answers.jsonl}", system)
        gated.write(GATE, text)
        code = main(["check", GATE])
        said = "".join(capsys.readouterr())
        if code != 2 or "`base` cannot be compared with" not in said or "Traceback" in said:
            wrong.append((name, code, said[-600:]))
    assert wrong == []


def test_rules_about_the_base_alone_are_refused(gated, capsys):
    """A push would have no verdict: nothing of its own would be evaluated."""
    head, _, gates = WITH_BASE.partition("gates:\n")
    own = [line for line in gates.splitlines(keepends=True) if "shift/" in line]
    gated.write(GATE, head + "gates:\n" + "".join(own))
    assert main(["check", GATE]) == 2
    assert "every rule compares with the base commit" in "".join(capsys.readouterr())


def test_only_the_word_base_or_a_system_is_a_reference(gated, capsys):
    for wrong in ("basis", "[]", "7", "{}", "'../base'", "Base"):
        gated.write(GATE, WITH_BASE.replace("reference: base", f"reference: {wrong}"))
        assert main(["check", GATE]) == 2, wrong
        assert "Traceback" not in "".join(capsys.readouterr())


RAG = """\
version: 1
name: rag
system:
  retriever: {corpus: docs.jsonl, top_k: 3}
  generator: {model: demo-slm}
reference: base
suites:
  - {id: s, task: sentiment, sources: texts.jsonl, perturbations: [gender], attribution: off}
constant_answers: allow
gates:
  - {metric: asr/retrieval, max: 0.1}
  - {metric: shift/documents, report: true}
"""


@pytest.fixture
def rag(history, monkeypatch):
    """A repository whose main branch gates a retriever over a corpus, beside the base's."""
    monkeypatch.setattr(local, "open_generator", lambda *_: ByRule())
    topics = ("bread", "coffee", "winter", "music", "rain", "books")
    rows = [
        {"id": f"s{n}", "text": f"I {'love' if n % 2 else 'hate'} {topic}."}
        for n, topic in enumerate(topics)
    ]
    history.write("texts.jsonl", lines(rows))
    history.write("docs.jsonl", lines(documents()))
    history.write(GATE, RAG)
    history.commit("a gate over documents")
    history.branch()
    return history


def poison(history):
    history.write("docs.jsonl", lines(documents(poisoned=("17", "203"))))
    history.commit()


@pytest.mark.whole
def test_a_changed_corpus_is_compared_with_the_bases(rag, job):
    """The system reads the head's corpus and the reference the base's: documents are exchanged."""
    poison(rag)
    assert job.pull(rag) == 1
    record = json.loads((rag.root / job.outputs["run-folder"] / "run.json").read_text())
    (moved,) = [
        each["value"]
        for each in record["measurements"]
        if each["metric"] == "shift/documents" and each["where"].get("term") == "man"
    ]
    assert moved > 0


def test_where_the_corpus_stays_the_base_costs_nothing(rag, job):
    """Equal parts have equal keys in the store: the reference's questions are all found there."""
    rag.write("README", "Text.\n")
    rag.commit()
    assert job.pull(rag) == 0
    assert "reference: generate: all 144 in store" in job.err
    assert not re.search(r"reference: \w+: \d+ to do", job.err), job.err
