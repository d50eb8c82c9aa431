"""What is no input, no event or no policy is exit 2, with outputs, a summary and the place."""

import re

import pytest
from action import payloads
from action.repositories import POLICY


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"FAIRGATE_COMMENT": "sometimes"}, "on-change"),
        ({"FAIRGATE_REPORT_ONLY": "yes"}, "`true` or `false`"),
        ({"FAIRGATE_POLICY": "../../etc/passwd"}, "inside the checkout"),
        ({"FAIRGATE_POLICY": "/etc/passwd"}, "inside the checkout"),
        ({"FAIRGATE_POLICY": ""}, "policy is empty"),
        ({"FAIRGATE_POLICY": "policies/none.yaml"}, "there is no policy"),
        ({"FAIRGATE_REPORT_DIR": "../out"}, "inside the checkout"),
        ({"FAIRGATE_PR_NUMBER": "7; rm"}, "expected a number"),
        ({"FAIRGATE_DEVICE": "tpu"}, "`cuda`"),
        ({"GITHUB_REPOSITORY": "nonsense"}, "GITHUB_REPOSITORY"),
    ],
)
def test_bad_inputs_are_usage_errors_with_outputs(job, history, inputs, said):
    commit = history.git("rev-parse", "HEAD")
    assert job.run("push", payloads.on_push("0" * 40, commit), **inputs) == 2
    assert said in job.err
    assert job.outputs["outcome"] == "error"
    assert job.outputs["exit-code"] == "2"
    assert "no verdict" in job.summary


@pytest.mark.parametrize("payload", ["", "[]", "{", "{}", "null", '{"pull_request": 3}'])
def test_an_event_that_is_none_is_a_usage_error(job, payload):
    assert job.run("pull_request", payload) == 2
    assert "payload" in job.err


def test_a_policy_behind_a_link_out_of_the_checkout_is_refused(job, history, tmp_path):
    (tmp_path / "outside.yaml").write_text(POLICY)
    (history.root / "policies" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    assert job.run("push", payload, FAIRGATE_POLICY="policies/link.yaml") == 2


def test_a_policy_error_is_annotated_at_its_line(job, history):
    history.branch()
    history.write(
        "policies/small.yaml", POLICY.replace("asr/generation/controlled", "asr/generatoin")
    )
    history.commit()
    assert job.pull(history) == 2
    assert re.search(r"::error file=policies/small\.yaml,line=10,", job.out)


def test_an_internal_error_leaves_outputs(job, history, monkeypatch):
    monkeypatch.setattr("fairgate.engine.gate.judge", lambda *_: 1 / 0)
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    assert job.run("push", payload) == 4
    assert job.outputs["exit-code"] == "4"
