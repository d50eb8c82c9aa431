"""What is no input, no event or no policy is exit 2, with outputs and a summary."""

import pytest
from action.repositories import LOOSE, POLICY, worse


def test_bad_inputs_are_usage_errors_with_outputs(job, history):
    for name, value, said in (
        ("FAIRGATE_COMMENT", "sometimes", "on-change"),
        ("FAIRGATE_REPORT_ONLY", "yes", "`true`, `false` or `until-proven`"),
        ("FAIRGATE_POLICY", "../../etc/passwd", "inside the checkout"),
        ("FAIRGATE_POLICY", "/etc/passwd", "inside the checkout"),
        ("FAIRGATE_POLICY", "", "policy is empty"),
        ("FAIRGATE_POLICY", "policies/none.yaml", "there is no policy"),
        ("FAIRGATE_REPORT_DIR", "../out", "inside the checkout"),
        ("FAIRGATE_REPORT_DIR", "/elsewhere", "inside the checkout"),
        ("FAIRGATE_PR_NUMBER", "7; rm", "expected a number"),
        ("FAIRGATE_DEVICE", "tpu", "`cuda`"),
        ("FAIRGATE_BASELINE_CHANGE", "maybe", "expected `refuse` or `allow`"),
        ("FAIRGATE_ROOT", "..", "inside the checkout"),
        ("FAIRGATE_ANSWERS_ARTIFACT", "../a b", "answers-artifact is '../a b'"),
        ("GITHUB_REPOSITORY", "nonsense", "GITHUB_REPOSITORY"),
    ):
        assert job.push(history, **{name: value}) == 2, name
        assert said in job.err
        assert (job.outputs["outcome"], job.outputs["exit-code"]) == ("error", "2")
        assert "no verdict" in job.summary


def test_an_event_that_is_none_is_a_usage_error(job):
    for payload in ("", "[]", "{", "{}", "null", '{"pull_request": 3}'):
        assert job.run("pull_request", payload) == 2
        assert "payload" in job.err
        assert "Traceback" not in job.err


def test_a_policy_behind_a_link_out_of_the_checkout_is_refused(job, history, tmp_path):
    (tmp_path / "outside.yaml").write_text(POLICY)
    (history.root / "policies" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    assert job.push(history, FAIRGATE_POLICY="policies/link.yaml") == 2
    assert "inside the checkout" in job.err


def test_a_root_behind_a_link_is_named_and_not_the_policy(job, history):
    (history.root / "services" / "rag" / "inner").mkdir(parents=True)
    (history.root / "linked").symlink_to("services/rag")
    for root in ("linked", "linked/inner", "policies/../linked"):
        assert job.push(history, FAIRGATE_ROOT=root) == 2
        assert f"root is '{root}'" in job.err
        assert "name 'services/rag" in job.err
        assert "policy is" not in job.err


def test_a_roundabout_name_does_not_follow_a_link_to_an_unknown_policy(job, history):
    """The base commit is asked for the name in the workflow, wherever the change makes it lead."""
    history.proposes(worse, {"policies/mild.yaml": LOOSE})
    (history.root / "policies" / "small.yaml").unlink()
    (history.root / "policies" / "small.yaml").symlink_to("mild.yaml")
    history.commit()
    assert job.pull(history, FAIRGATE_POLICY="baselines/../policies/small.yaml") == 3
    assert "'policies/small.yaml' is a link in this change" in job.summary


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sources.jsonl": "lost.jsonl", "answers.jsonl": "gone.jsonl"},
         ["there is no file 'lost.jsonl' below the root", "there is no file 'gone.jsonl' below the"]),
        ({"[race, gender]": "[lost.yaml]"}, ["there is no file 'lost.yaml' below the root"]),
        ({"task: sentiment": "task: lost.yaml"}, ["there is no file 'lost.yaml' below the root"]),
    ],
)  # fmt: skip
def test_missing_files_are_named_without_the_runner_s_folders(job, history, changes, said):
    text = POLICY
    for old, new in changes.items():
        text = text.replace(old, new)
    history.write("policies/small.yaml", text)
    history.commit()
    assert job.push(history) == 2
    assert not [words for words in said if words not in job.summary]
    assert str(history.root) not in job.summary
