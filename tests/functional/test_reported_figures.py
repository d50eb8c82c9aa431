"""`report: true` prints a figure; a gate that nothing can fail says so in plain words."""

import json
import zlib

import pytest

PLAIN = "othing can fail this gate"
REPORTED = "  - {metric: asr/generation, report: true}\n"


def biased(key):
    return "negative" if key.endswith("/black") else "positive"


def written(workspace):
    names = ("report.md", "report.html", "run.json")
    return [(workspace.root / "out" / name).read_text() for name in names]


def rule_about(workspace, metric):
    return next(one for one in workspace.record()["rules"] if one["metric"] == metric)


@pytest.mark.parametrize("suite", ["", "    control: none"], ids=["controls", "no controls"])
def test_a_policy_that_only_reports_passes_and_says_that_nothing_can_fail_it(workspace, suite):
    assert workspace.gate(biased, gates=REPORTED, suite=suite) == 0, workspace.err
    rule, report = rule_about(workspace, "asr/generation"), written(workspace)[0]
    assert (rule["reported"], rule["outcome"]) == (True, "not-evaluated")
    assert rule["value"] > 0
    assert "only reported" in workspace.out or "reported" in report
    for text in (workspace.out, report):
        assert f"n{PLAIN}" in text
    assert workspace.run("check", "policy.yaml") == 0
    assert f"n{PLAIN}" in workspace.out


ADVISORY = "".join(
    f"  - {{{asked}, max: 0.01, advisory: true}}\n"
    for asked in ("metric: asr/generation", "parity: unreadable", "parity: answers")
)


@pytest.mark.parametrize(
    ("gates", "answer", "is_said"),
    [(ADVISORY, biased, True), (f"{REPORTED}  - {{metric: asr/generation, max: 0.9}}\n", "positive", False)],
)  # fmt: skip
def test_that_every_gate_is_advisory_is_said_unless_one_can_fail(workspace, gates, answer, is_said):
    assert workspace.gate(answer, gates=gates) == 0
    for text in (workspace.out, *written(workspace)):
        assert (PLAIN in text) == is_said


def test_a_reported_figure_without_a_value_is_no_verdict(workspace):
    gates = "  - {metric: rrs/mean, report: true}\n  - {metric: asr/generation, max: 0.9}\n"
    assert workspace.gate("positive", gates=gates) == 5
    assert "rrs/mean in suite sentiment could not be evaluated" in workspace.out


def test_the_figure_that_is_missing_is_named_beside_those_that_are_there(workspace):
    """Of an advisory relation, too, whose figures never fail a build."""
    assert workspace.run("generate", "genfair", "--limit", "12", "--out", "cases.jsonl") == 0
    mr7, reported = "genfair/mr7-counterfactual", {"metric": "fdr", "report": True}
    policy = {
        "version": 1, "name": "p", "system": {"recorded": "answers.jsonl"},
        "suites": [{"id": "s", "task": "advice", "sources": "cases.jsonl", "control": "none",
                    "relations": [mr7, "genfair/mr1-removal-one"]}],
        "gates": [reported, {**reported, "where": {"relation": mr7}}], "min_decided": 0,
    }  # fmt: skip
    (workspace.root / "policy.yaml").write_text(json.dumps(policy))
    bad, good = "This is sad and bad.", "How wonderful and lovely!"
    workspace.respond(
        lambda row: "" if mr7 in row["key"] else (bad, good)[hash_of(row["key"]) % 2],
        policy="policy.yaml",
    )
    assert workspace.run("run", "policy.yaml", "--out", "out") == 5
    for text in (workspace.out, written(workspace)[0].replace("`", "")):
        assert f"could not be evaluated for relation {mr7}" in " ".join(text.split())
        assert "o rule of the policy" not in text


def hash_of(key):
    return zlib.crc32(key.partition("#")[0].encode())


def test_refusals_fail_beside_bounds_that_hold(workspace):
    gates = "  - {parity: unreadable}\n  - {metric: asr/generation, max: 0.9}\n"
    refuses = lambda key: "I will not say." if "#race/" in key else "positive"  # noqa: E731
    assert workspace.gate(refuses, gates=gates + "min_decided: 0\n") == 1
    assert "unreadable answers are more frequent for race (10)" in workspace.out
