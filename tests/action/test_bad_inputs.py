"""What is no input, no event or no policy is exit 2, with outputs, a summary and the place."""

import re

import pytest
from action import payloads
from action.repositories import POLICY, worse


@pytest.mark.walk(4)
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
        ({"FAIRGATE_REPORT_DIR": "/elsewhere"}, "inside the checkout"),
        ({"FAIRGATE_PR_NUMBER": "7; rm"}, "expected a number"),
        ({"FAIRGATE_DEVICE": "tpu"}, "`cuda`"),
        ({"FAIRGATE_BASELINE_CHANGE": "maybe"}, "expected `refuse` or `allow`"),
        ({"FAIRGATE_ROOT": ".."}, "inside the checkout"),
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
    assert "Traceback" not in job.err


def test_a_policy_behind_a_link_out_of_the_checkout_is_refused(job, history, tmp_path):
    (tmp_path / "outside.yaml").write_text(POLICY)
    (history.root / "policies" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    assert job.run("push", payload, FAIRGATE_POLICY="policies/link.yaml") == 2
    assert "inside the checkout" in job.err


@pytest.mark.parametrize("root", ["linked", "linked/inner", "policies/../linked"])
def test_a_root_behind_a_link_is_named_and_not_the_policy(job, history, root):
    (history.root / "services" / "rag" / "inner").mkdir(parents=True)
    (history.root / "linked").symlink_to("services/rag")
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    assert job.run("push", payload, FAIRGATE_ROOT=root) == 2
    assert f"root is '{root}'" in job.err
    assert "name 'services/rag" in job.err
    assert "policy is" not in job.err


def test_a_roundabout_name_does_not_follow_a_link_to_an_unknown_policy(job, history):
    """The base commit is asked for the name in the workflow, wherever the change makes it lead."""
    history.branch()
    history.answers(worse)
    history.write("policies/mild.yaml", POLICY.replace("max: 0.2,", "max: 0.9,"))
    (history.root / "policies" / "small.yaml").unlink()
    (history.root / "policies" / "small.yaml").symlink_to("mild.yaml")
    history.commit()
    assert job.pull(history, FAIRGATE_POLICY="baselines/../policies/small.yaml") == 3
    assert "'policies/small.yaml' is a link in this change" in job.summary


def test_a_missing_file_is_named_without_the_runner_s_folders(job, history):
    history.write("policies/small.yaml", POLICY.replace("sources.jsonl", "lost.jsonl"))
    (history.root / "answers.jsonl").unlink()
    history.commit()
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    assert job.run("push", payload) == 2
    for name in ("lost.jsonl", "answers.jsonl"):
        assert f"there is no file '{name}' below the root" in job.summary
    assert str(history.root) not in job.summary


@pytest.mark.parametrize("named", ["perturbations: [lost.yaml]", "task: lost.yaml"])
def test_so_is_a_missing_file_of_terms_or_tasks(job, history, named):
    field = named.partition(":")[0]
    history.write("policies/small.yaml", re.sub(rf"{field}: .*", named, POLICY))
    history.commit()
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    assert job.run("push", payload) == 2
    assert "'lost.yaml' is no such file below the root" in job.summary
    assert str(history.root) not in job.summary


def test_a_policy_error_is_annotated_at_its_line(job, history):
    history.branch()
    history.write(
        "policies/small.yaml", POLICY.replace("asr/generation/controlled", "asr/generatoin")
    )
    history.commit()
    assert job.pull(history) == 2
    assert re.search(r"::error file=policies/small\.yaml,line=10,", job.out)
