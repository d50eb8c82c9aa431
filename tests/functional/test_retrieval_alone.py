"""A policy without a generator, an index of words, and an embedder that only measures."""

import json

import pytest

from fairgate.cli import main
from fairgate.domain.errors import ExitCode

POLICY = """\
version: 1
name: p
system:
  retriever: {retriever}
{generator}suites:
  - {{id: s, sources: demo-reviews, limit: 6, perturbations: [gender]}}
gates:
{gates}"""
OVERLAP = "  - {metric: retrieval/overlap, min: 0.01, regression: {margin: 0.9}}\n"
RRS = "  - {metric: rrs/mean, regression: {margin: 0.05}}\n"


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))

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


@pytest.mark.parametrize("index", ["flat", "bm25"])
def test_documents_are_compared_without_a_generator(gate, index):
    retriever = f"{{corpus: demo, index: {index}, top_k: 4}}"
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


@pytest.mark.parametrize("metric", ["asr/generation/net", "unreadable/net", "asr/generation"])
def test_rules_about_answers_have_no_value_where_nothing_answers(gate, metric):
    code, _, text = gate("{corpus: demo, top_k: 4}", gates=f"  - {{metric: {metric}, max: 0.2}}\n")
    assert code == ExitCode.NO_VERDICT
    assert "only for documents" in text
    first = " ".join(text[text.index("too little evidence") :].split())
    assert f" {metric} in suite s could not be evaluated: the suite asks for no answers" in first


def test_doctor_does_not_speak_of_answers_where_nothing_answers(gate):
    code, _, text = gate("{corpus: demo, index: bm25, top_k: 4}", command="doctor")
    assert code == ExitCode.PASS, text
    assert "answers: no: nothing answers, documents alone are compared" in text
    assert "documents: 4" in text
    assert not [line for line in text.splitlines() if line.startswith(("  answer ", "  read as"))]
    assert "attribution" not in text


def test_the_first_sentence_says_how_much_less_often_documents_stay(gate):
    bound = "  - {metric: retrieval/overlap/net, min: 0.9}\n"
    code, record, text = gate("{corpus: demo, top_k: 4}", gates=bound)
    assert code == ExitCode.GATE_FAILED, text
    points = f"{abs(value(record, 'retrieval/overlap/net')) * 100:.1f} points"
    often = "less" if value(record, "retrieval/overlap/net") < 0 else "more"
    said = " ".join(text.split())
    assert (
        f"the same documents are found {often} often than with neutral wording, by {points}" in said
    )


def test_a_system_of_nothing_and_questions_that_nobody_answers_are_refused(gate, tmp_path):
    (tmp_path / "q.yaml").write_text(
        "version: 1\nname: p\nsystem: {retriever: {corpus: demo}}\n"
        "suites: [{id: q, kind: bbq, items: demo-items, settings: [none]}]\n"
        "gates: [{metric: diff-bias/ambiguous, max_abs: 0.2}]\n"
    )
    assert main(["check", "q.yaml"]) == ExitCode.USAGE
    (tmp_path / "q.yaml").write_text(
        "version: 1\nname: p\nsystem: {embedder: minilm}\n"
        "suites: [{id: s, sources: demo-reviews}]\ngates: [{metric: retrieval/overlap, min: 0.1}]\n"
    )
    assert main(["check", "q.yaml"]) == ExitCode.USAGE


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

    accepted("{corpus: demo}")
    assert rrs_rule("{corpus: demo}")["outcome"] == "pass"
    rule = rrs_rule(f"{{corpus: demo, embedder: {other}}}")
    assert rule["outcome"] == "not-evaluated"
    assert "distances of two embedders do not compare" in rule["reasons"][0]
    # The embedder that only measures is the same: both runs are in its space.
    assert (
        rrs_rule(f"{{corpus: demo, embedder: {other}, measure_with: minilm}}")["outcome"]
        != "not-evaluated"
    )
    accepted("{corpus: demo, measure_with: minilm}")
    assert rrs_rule("{corpus: demo, index: bm25}")["outcome"] != "not-evaluated"
