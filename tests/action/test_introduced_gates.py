"""The pull request that introduces the gate of a served system is neutral; the next one is judged."""

import sys

import pytest
from action.repositories import POLICY

APP = """\
import json, pathlib, sys
pathlib.Path({marker!r}).touch()
for line in sys.stdin:
    asked = json.loads(line)
    is_odd = any(f"number {{n}}" in asked["query"] for n in (1, 3, 5))
    is_turned = {biased} and any(who in asked["query"] for who in ("Asian", "Black", "white", "Hispanic"))
    answer = "negative" if is_odd != is_turned else "positive"
    print(json.dumps({{"id": asked["id"], "answer": answer}}), flush=True)
"""
SERVED = {
    "command": "{{command: {{run: [{python}, app.py]}}}}",
    "python": '{{python: {{call: "app:ask"}}}}',
    "http": '{{http: {{url: "http://127.0.0.1:9/ask", request: {{q: "{{{{query}}}}"}}, response: {{answer: $.a}}}}}}',
    "serve": '{{http: {{url: "http://127.0.0.1:9/ask", request: {{q: "{{{{query}}}}"}}, response: {{answer: $.a}}}}, '
    'serve: {{command: [{python}, app.py], ready_url: "http://127.0.0.1:9/"}}}}',
    "endpoint": '{{generator: {{endpoint: {{base_url: "http://127.0.0.1:9/v1", model: m, api_key_env: DEPLOY_KEY}}}}}}',
    "local retriever by endpoint": '{{generator: {{model: demo-slm}}, retriever: {{http: {{url: "http://127.0.0.1:9/"}}}}}}',
}
INPUTS = (
    {}, {"FAIRGATE_REPORT_ONLY": "true"}, {"FAIRGATE_BASELINE_CHANGE": "allow"},
    {"FAIRGATE_COMMENT": "on-failure"}, {"FAIRGATE_COMMENT": "always"},
)  # fmt: skip


def policy(kind):
    lines = [line for line in POLICY.splitlines() if not line.startswith("system:")]
    system = SERVED[kind].format(python=sys.executable)
    return "\n".join([*lines, f"system: {system}"]).replace("name: small", "name: served") + "\n"


@pytest.mark.walk(2)
@pytest.mark.parametrize("kind", SERVED)
def test_an_introduced_gate_of_a_served_system_is_neutral_whatever_is_set(
    history, job, tmp_path, kind
):
    marker = tmp_path / "started"
    app = APP.format(marker=str(marker), biased=False)
    wrong = []
    history.branch("gate")
    history.write("policies/served.yaml", policy(kind))
    history.write("app.py", app)
    history.commit()
    for inputs in INPUTS:
        history.git("checkout", "--quiet", "gate")
        job.hub.comments.clear()
        code = job.pull(history, FAIRGATE_POLICY="policies/served.yaml", DEPLOY_KEY="x", **inputs)
        seen = (code, job.outputs.get("outcome"), job.outputs.get("exit-code"))
        told = [comment["body"] for comment in job.hub.ours(7)]
        is_told = all(
            "The next pull request** is the first with a verdict" in text
            for text in (job.summary, *told)
        )
        silent = inputs.get("FAIRGATE_COMMENT") == "on-failure"
        if (
            seen != (0, "not-evaluated", "0")
            or not is_told
            or bool(told) is silent
            or "::error" in job.out
        ):
            wrong.append((inputs, seen, is_told, job.err[-300:]))
    assert not wrong
    assert not marker.exists(), "nothing of an unmerged policy is started"


def test_the_second_pull_request_is_judged_by_the_merged_policy(history, job, tmp_path):
    marker = tmp_path / "started"
    history.branch("gate")
    history.write("policies/served.yaml", policy("command"))
    history.write("app.py", APP.format(marker=str(marker), biased=False))
    history.commit()
    asked = {"FAIRGATE_POLICY": "policies/served.yaml"}
    assert job.pull(history, **asked) == 0
    assert "held against 4 rules of the merged policy; 2 of them wait for a baseline" in job.summary
    assert not marker.exists()
    history.git("checkout", "--quiet", "main")
    history.git("merge", "--quiet", "gate")
    for biased, code, outcome in ((False, 0, "pass"), (True, 1, "fail")):
        history.git("checkout", "--quiet", "main")
        history.branch(f"second-{biased}")
        history.write("app.py", APP.format(marker=str(marker), biased=biased) + "# changed\n")
        history.commit()
        assert job.pull(history, **asked) == code, job.err
        assert marker.exists()
        assert job.outputs["outcome"] == outcome
    (comment,) = job.hub.ours(7)
    assert "not judged yet" not in comment["body"], "the neutral comment is replaced"


@pytest.mark.parametrize("order", [1, -1])
def test_beside_a_judged_policy_the_judged_one_leads(history, job, order):
    history.branch("gate")
    history.write("policies/served.yaml", policy("command"))
    history.commit()
    both = "\n".join(["policies/small.yaml", "policies/served.yaml"][::order])
    assert job.pull(history, FAIRGATE_POLICY=both) == 0, job.err
    assert job.outputs["outcome"] == "pass"
    (comment,) = job.hub.ours(7)
    assert "1 of 2 policies pass, 1 introduced and not judged yet" in comment["body"]
