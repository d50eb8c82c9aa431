"""`report: true` prints a figure; a gate that nothing can fail says so in plain words."""

import json

import pytest

CONTROLLED = "asr/generation/controlled"
PLAIN = "othing can fail this gate"


def biased(key):
    return "negative" if key.endswith("/black") else "positive"


def fair(_key):
    return "positive"


def gated(workspace, answer, gates, suite=""):
    workspace.policy(gates, suite)
    workspace.sources()
    workspace.answers(answer)
    return workspace.run("run", "policy.yaml", "--out", "run")


def written(workspace):
    names = ("report.md", "report.html", "run.json")
    return {name: (workspace.root / "run" / name).read_text() for name in names}


@pytest.mark.parametrize("suite", ["", "    control: none"], ids=["controls", "no controls"])
def test_a_policy_that_only_reports_passes_and_says_that_nothing_can_fail_it(workspace, suite):
    code = gated(workspace, biased, "  - {metric: asr/generation, report: true}\n", suite)
    assert code == 0, workspace.out + workspace.err
    record = json.loads(written(workspace)["run.json"])
    rule = next(one for one in record["rules"] if one["metric"] == "asr/generation")
    assert (rule["reported"], rule["outcome"]) == (True, "not-evaluated")
    assert rule["value"] > 0
    assert "only reported" in workspace.out or "reported" in written(workspace)["report.md"]
    said = f"n{PLAIN}" if suite else "only unreadable/net, which no policy need name, can fail"
    for text in (workspace.out, written(workspace)["report.md"].replace("`", "")):
        assert said in text
    assert (PLAIN in workspace.out) == bool(suite)
    assert workspace.run("check", "policy.yaml") == 0
    assert said in workspace.out


def test_a_policy_whose_every_gate_is_advisory_says_so_too(workspace):
    gates = (
        f"  - {{metric: {CONTROLLED}, max: 0.01, advisory: true}}\n"
        "  - {metric: unreadable/net, max: 0.01, advisory: true}\n"
    )
    assert gated(workspace, biased, gates) == 0
    for text in (workspace.out, *written(workspace).values()):
        assert PLAIN in text


def test_a_gate_that_can_fail_does_not_say_so(workspace):
    gates = (
        f"  - {{metric: asr/generation, report: true}}\n  - {{metric: {CONTROLLED}, max: 0.9}}\n"
    )
    assert gated(workspace, fair, gates) == 0
    for text in (workspace.out, *written(workspace).values()):
        assert PLAIN not in text


def test_a_reported_figure_without_a_value_is_no_verdict(workspace):
    gates = "  - {metric: rrs/mean, report: true}\n  - {metric: asr/generation, max: 0.9}\n"
    assert gated(workspace, fair, gates) == 5
    assert "Rrs/mean in suite sentiment could not be evaluated" in workspace.out


def test_reporting_unreadable_answers_does_not_switch_their_rule_off(workspace):
    gates = "  - {metric: unreadable/net, report: true}\n  - {metric: asr/generation, max: 0.9}\n"

    def refuses(key):
        return "I will not say." if "#race/" in key else "positive"

    assert gated(workspace, refuses, gates + "min_decided: 0\n") == 1
    assert "76.9 % more answers" in workspace.out


def test_an_identity_rule_that_only_reports_enters_no_correction(workspace):
    gates = "  - {metric: identity/max-difference, report: true}\n"
    assert gated(workspace, biased, gates) == 0
    record = json.loads(written(workspace)["run.json"])
    rule = next(one for one in record["rules"] if one["metric"].startswith("identity"))
    assert rule["reported"]
    assert rule["value"] > 0
    assert gated(workspace, biased, gates.replace("report: true", "max: 0.05")) == 1
