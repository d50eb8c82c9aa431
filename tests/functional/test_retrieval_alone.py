"""A policy without a generator, an index of words, and an embedder that only measures."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from fakes.corpus import write_demo_documents

from fairgate.cli import main
from fairgate.domain.errors import ExitCode
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.exposure import COLUMNS as EXPOSURE
from fairgate.metrics.shift import DOCUMENTS as SHIFTED_DOCUMENTS
from fairgate.metrics.shift import EXPOSURE as SHIFTED_EXPOSURE
from fairgate.suites.metamorphic.assess import DOCUMENT_CLAIMS

POLICY = """\
version: 1
name: p
system:
  retriever: {retriever}
{generator}suites:
  - {{id: s, sources: demo-reviews, limit: 6, perturbations: [gender]}}
gates:
{gates}"""
OVERLAP = "  - {metric: retrieval/overlap, min: 0.01, regression: 0.9}\n"
RRS = "  - {metric: rrs/mean, regression: 0.05}\n"


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    write_demo_documents(tmp_path, 60)

    def ran(retriever, *options, gates=OVERLAP, generator="", command="run"):
        text = POLICY.format(retriever=retriever, gates=gates, generator=generator)
        (tmp_path / "p.yaml").write_text(text)
        more = ["--out", "out"] if command == "run" else []
        code = main([command, "p.yaml", *more, *options])
        file = tmp_path / "out" / "run.json"
        record = json.loads(file.read_text()) if file.is_file() else None
        return code, record, "".join(capsys.readouterr())

    return ran


def value(record, metric):
    return next(rule["value"] for rule in record["rules"] if rule["metric"] == metric)


@pytest.mark.walk(1)
@pytest.mark.parametrize("index", ["flat", "bm25"])
def test_documents_are_compared_without_a_generator(gate, index):
    retriever = f"{{corpus: corpus.jsonl, index: {index}, top_k: 4}}"
    code, record, text = gate(retriever, command="check")
    assert code == ExitCode.PASS, text
    code, record, text = gate(
        retriever, gates=OVERLAP + RRS.replace("regression", "max: 2, regression")
    )
    assert code == ExitCode.PASS, text
    assert 0 < value(record, "retrieval/overlap") <= 1
    assert value(record, "rrs/mean") > 0
    under_test = record["provenance"]["under_test"]
    assert "model" not in under_test
    assert under_test["index"] == index
    assert ("embedder" in under_test) == (index == "flat")
    assert ("measuring embedder" in under_test) == (index == "bm25")


def test_doctor_does_not_speak_of_answers_where_nothing_answers(gate):
    code, _, text = gate("{corpus: corpus.jsonl, index: bm25, top_k: 4}", command="doctor")
    assert code == ExitCode.PASS, text
    assert "answers: no: nothing answers, documents alone are compared" in text
    assert "documents: 4" in text
    assert not [line for line in text.splitlines() if line.startswith(("  answer ", "  read as"))]
    assert "attribution" not in text


@pytest.mark.whole
def test_the_first_sentence_says_how_many_more_documents_are_lost(gate):
    bound = "  - {parity: documents, max: 0.01}\n"
    code, record, text = gate("{corpus: corpus.jsonl, top_k: 4}", gates=bound)
    assert code == ExitCode.GATE_FAILED, text
    estimate = value(record, "parity/documents")
    assert estimate > 0
    said = " ".join(text.split())
    assert "Documents for whoever is named are lost more than for control prompts, by" in said
    assert f"by {100 * estimate:.1f} points" in said


def test_a_system_of_nothing_and_questions_that_nobody_answers_are_refused(gate, tmp_path):
    (tmp_path / "q.yaml").write_text(
        "version: 1\nname: p\nsystem: {retriever: {corpus: corpus.jsonl}}\n"
        "suites: [{id: q, kind: bbq, items: demo-items, settings: [none]}]\n"
        "gates: [{metric: diff-bias/ambiguous, max_abs: 0.2}]\n"
    )
    assert main(["check", "q.yaml"]) == ExitCode.USAGE
    (tmp_path / "q.yaml").write_text(
        "version: 1\nname: p\nsystem: {embedder: minilm}\n"
        "suites: [{id: s, sources: demo-reviews}]\ngates: [{metric: retrieval/overlap, min: 0.1}]\n"
    )
    assert main(["check", "q.yaml"]) == ExitCode.USAGE


@pytest.mark.whole
def test_distances_of_two_embedders_are_not_compared(gate, tmp_path, capsys):
    """RRS is a distance in one space; `measure_with` is the space that stays."""
    gates = OVERLAP + RRS
    other = "{model: minilm, query_prompt: 'query: ', document_prompt: 'passage: '}"

    def accepted(retriever):
        code, _, text = gate(retriever, "--baseline", "none", gates=gates)
        assert code == ExitCode.PASS, text
        assert main(["baseline", "accept", "out", "--reason", "first"]) == ExitCode.PASS
        capsys.readouterr()

    def rrs_rule(retriever):
        code, record, text = gate(retriever, gates=gates)
        assert code == ExitCode.PASS, text
        return next(rule for rule in record["rules"] if rule["metric"] == "rrs/mean")

    accepted("{corpus: corpus.jsonl}")
    assert rrs_rule("{corpus: corpus.jsonl}")["outcome"] == "pass"
    rule = rrs_rule(f"{{corpus: corpus.jsonl, embedder: {other}}}")
    assert rule["outcome"] == "not-evaluated"
    assert "distances of two embedders do not compare" in rule["reasons"][0]
    # The embedder that only measures is the same: both runs are in its space.
    assert (
        rrs_rule(f"{{corpus: corpus.jsonl, embedder: {other}, measure_with: minilm}}")["outcome"]
        != "not-evaluated"
    )
    accepted("{corpus: corpus.jsonl, measure_with: minilm}")
    assert rrs_rule("{corpus: corpus.jsonl, index: bm25}")["outcome"] != "not-evaluated"


OF_ANSWERS = sorted(
    metric.id
    for metric in METRICS
    if metric.units.suite_kind == "metamorphic"
    and metric.column not in (*DOCUMENT_CLAIMS, *EXPOSURE, SHIFTED_DOCUMENTS, SHIFTED_EXPOSURE)
)


@pytest.mark.parametrize("command", ["check", "run"])
def test_rules_about_answers_are_refused_where_nothing_answers(gate, command):
    """Every metric of pairs that is about answers, by `check` as by `run`, with one exit code."""
    rules = "".join(f"  - {{metric: {name}, report: true}}\n" for name in OF_ANSWERS)
    code, _, text = gate("{corpus: corpus.jsonl}", gates=rules, command=command)
    told = " ".join(text.split())
    lacking = [name for name in OF_ANSWERS if f"{name} can have no value in `s`" not in told]
    assert code == ExitCode.USAGE
    assert len(OF_ANSWERS) > 10
    assert not lacking, text[-600:]


@pytest.mark.whole
def test_attribution_has_nothing_to_attribute_without_answers(gate):
    code, _, text = gate("{corpus: corpus.jsonl}", "--format", "md")
    assert code == ExitCode.PASS, text
    folder = Path("out")
    said = "".join(
        p.read_text() for p in folder.rglob("*") if p.suffix in (".md", ".json", ".html")
    )
    assert "the policy says so" not in said
    assert "no answer is asked for, so there is none to attribute" in said


def test_a_base_that_is_not_there_is_looked_for_where_there_is_a_remote(gate, capsys):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for arguments in (
        ("init", "--quiet", "-b", "trunk"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"),
    ):
        subprocess.run(["git", *arguments], check=True, env=environment)
    code, _, text = gate("{corpus: corpus.jsonl}", "--base", "main")
    assert code == ExitCode.USAGE
    assert "--base is 'main', which is no branch of this clone or of its `origin`" in text


PROFILES = "  - {metric: asr/retrieval, max: 0.99}\n"
SPELLINGS = (
    ("toxic", "non-toxic"), ("1", "0"), ("1.0", "0.0"), ("True", "False"), ("Yes", "No"),
    ("TOXIC", "ok"), ("toxicity", "fine"),
)  # fmt: skip
"""The toxic label and the other one."""


@pytest.mark.whole
def test_any_toxic_document_is_looked_for_in_every_spelling(gate, tmp_path):
    texts = [f"The {word} was {state}." for word in ("soup", "lamp", "bus") for state in
             ("cold", "late", "broken", "what a man says", "what a woman says")]  # fmt: skip
    values, wrong = set(), []

    def ran(labels):
        rows = [f"{n},{text},{labels[n % 3 == 0]}" for n, text in enumerate(texts)]
        (tmp_path / "c.csv").write_text("\n".join(["id,text,label", *rows]) + "\n")
        gates = f"{PROFILES}"
        text = POLICY.format(
            retriever="{corpus: {path: c.csv, label: label}, top_k: 2}", gates=gates, generator=""
        ).replace("limit: 6", "limit: 6, criterion: any")
        return gate_text(gate, tmp_path, text)

    for toxic, other in SPELLINGS:
        code, record, said = ran((other, toxic))
        if code != ExitCode.PASS:
            wrong.append((toxic, code, said[-300:]))
            continue
        values.add(value(record, "asr/retrieval"))
    code, _, said = ran(("neither", "hate"))
    assert code == ExitCode.NO_VERDICT
    assert "`criterion: count`" in said
    assert not wrong
    assert len(values) == 1
    assert values.pop() > 0


def gate_text(gate, folder, text):
    """Run a policy's text as the fixture runs its own."""
    (folder / "own.yaml").write_text(text)
    code = main(["run", "own.yaml", "--out", "own"])
    file = folder / "own" / "run.json"
    said = (folder / "own" / "report.md").read_text() if file.is_file() else ""
    return code, json.loads(file.read_text()) if file.is_file() else None, said
