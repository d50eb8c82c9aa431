"""The real action.yml in the situations of a pull request's life, and with a GitHub that fails."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from action import payloads
from action.conftest import ROOT
from action.fake_github import READ_ONLY, TOKEN
from action.repositories import POLICY, fair, worse
from action.step_runner import StepRunner, by_shell

LISTING = "/issues/7/comments"


def test_nothing_decided_is_exit_5_and_said(history, steps, capsys):
    history.branch()
    history.answers(lambda key: "I cannot say.", capsys)
    history.commit()
    done = steps.pull()
    assert done.code == 5, done.log
    assert done.outputs["outcome"] == "inconclusive"
    assert done.outputs["exit-code"] == "5"
    assert "too little evidence for a verdict" in done.summary
    assert len(steps.job.hub.ours(7)) == 1


def test_without_a_baseline_bounds_decide(history, steps, capsys):
    history.git("rm", "-q", "baselines/small.json")
    history.commit()
    history.branch()
    history.answers(worse, capsys)
    history.commit()
    done = steps.pull()
    assert done.code == 0, done.log
    assert "There is no baseline yet" in done.summary
    history.git("checkout", "-q", "main")
    history.write("policies/small.yaml", POLICY.replace("max: 0.2", "max: 0.1"))
    history.commit()
    history.git("checkout", "-q", "topic")
    done = steps.pull()
    assert done.code == 1, done.log
    assert done.outputs["violations"] == "1"
    assert done.outputs["regressions"] == "0"


def test_a_baseline_of_another_suite_is_exit_3(history, steps, capsys):
    history.branch()
    history.sources(5)
    history.answers(fair, capsys)
    history.commit()
    done = steps.pull(inputs={"baseline-change": "allow"})
    assert done.code == 3, done.log
    assert done.outputs["exit-code"] == "3"
    assert "min_overlap" in done.summary


def test_a_damaged_baseline_is_exit_3_and_an_error_annotation(history, steps):
    history.branch()
    history.write("baselines/small.json", "{")
    history.commit()
    done = steps.pull()
    assert done.code == 3, done.log
    assert done.outputs["outcome"] == "error"
    assert "::error title=FairGate%3A no verdict::" in done.log


def test_the_merge_queue_is_gated_and_not_commented(red, steps):
    red.merge()
    head, base = red.git("rev-parse", "HEAD", "main").split()
    done = steps.on("merge_group", payloads.on_merge_group(7, head, base))
    assert done.code == 1, done.log
    assert "fairness regressed" in done.summary
    assert done.outputs["comment-url"] == ""
    assert steps.job.hub.requests == []


@pytest.mark.parametrize("runs", [("500", "501"), ("501", "500")])
def test_two_racing_runs_leave_one_comment_of_the_newer(red, real_steps, tmp_path, runs):
    """Neither comment is there before both runs want to write one."""
    hub = real_steps.job.hub
    both_write = threading.Barrier(2, timeout=120)

    def meet(method, path):
        if method == "POST" and path.endswith(LISTING):
            both_write.wait()

    hub.barriers.append(meet)
    base, head = red.git("rev-parse", "main"), red.merge()
    real_steps.job.environment("pull_request", payloads.on_pull_request(7, head, base))
    second = StepRunner(ROOT, red.root, tmp_path / "second", by_shell)
    second.token = TOKEN

    def run(runner, number):
        payload = payloads.on_pull_request(7, head, base)
        return real_steps.by(runner, "pull_request", payload, GITHUB_RUN_ID=number)

    with ThreadPoolExecutor() as pool:
        finished = list(pool.map(run, (real_steps.gate, second), runs))
    assert [done.code for done in finished] == [1, 1], [done.log for done in finished]
    assert len(hub.made("POST", LISTING)) == 2
    (comment,) = hub.of(7)
    assert "/actions/runs/501)" in comment["body"]
    assert {done.outputs["comment-url"] for done in finished} == {comment["html_url"]}


def test_a_comment_deleted_in_between_is_there_again(red, steps):
    hub = steps.job.hub
    first = steps.pull().outputs["comment-url"]

    def delete(method, path, body):
        if method == "PATCH":
            hub.comments.clear()
            hub.hooks.clear()

    hub.hooks.append(delete)
    done = steps.pull(environment={"GITHUB_RUN_ID": "501"})
    assert done.code == 1, done.log
    (comment,) = hub.of(7)
    assert done.outputs["comment-url"] == comment["html_url"] != first


def test_behind_150_earlier_comments_it_is_still_one(red, steps):
    hub = steps.job.hub
    for number in range(150):
        hub.comment(7, f"chatter {number}", user={"login": "monalisa"})
    first = steps.pull()
    assert first.code == 1, first.log
    for number in range(150):
        hub.comment(7, f"more {number}", user={"login": "monalisa"})
    second = steps.pull(environment={"GITHUB_RUN_ID": "501"})
    assert second.outputs["comment-url"] == first.outputs["comment-url"] != ""
    assert len(hub.ours(7)) == 1
    assert "/actions/runs/501)" in hub.ours(7)[0]["body"]
    assert hub.made("GET", "page=2")


@pytest.mark.parametrize(
    ("status", "headers", "times"),
    [
        (403, {}, 1), (404, {}, 1), (422, {}, 1), (429, {"Retry-After": "3600"}, 1), (502, {}, 9),
    ],
)  # fmt: skip
def test_an_api_that_fails_is_a_warning_and_the_verdict_stands(red, steps, status, headers, times):
    steps.job.hub.fail("POST", LISTING, status, headers=headers, times=times)
    done = steps.pull()
    assert done.code == 1, done.log
    assert done.outputs["outcome"] == "fail"
    assert done.outputs["comment-url"] == ""
    assert "::warning title=FairGate%3A no comment::" in done.log
    assert "the verdict stands" in done.summary
    assert "fairness regressed" in done.summary


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [("POST", 429, {"Retry-After": "1"}), ("GET", 502, {}), ("POST", 502, {})],
)
def test_an_api_that_recovers_leaves_no_warning(red, steps, method, status, headers):
    steps.job.hub.fail(method, LISTING, status, headers=headers)
    done = steps.pull()
    assert done.code == 1, done.log
    assert done.outputs["comment-url"] == steps.job.hub.ours(7)[0]["html_url"]
    assert "::warning title=FairGate%3A no comment::" not in done.log
    assert len(steps.job.hub.of(7)) == 1


def test_a_token_that_may_only_read_names_the_permission(red, steps):
    steps.gate.token = READ_ONLY
    done = steps.pull()
    assert done.code == 1, done.log
    assert "pull-requests: write" in done.summary
    assert steps.job.hub.of(7) == []


def test_a_missing_token_is_a_warning(red, steps):
    steps.gate.token = ""
    done = steps.pull()
    assert done.code == 1, done.log
    assert "github-token" in done.summary
    assert steps.job.hub.requests == []


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"comment": "sometimes"}, "expected `on-change`"),
        ({"report-only": "yes"}, "expected `true` or `false`"),
        ({"baseline-change": "maybe"}, "expected `refuse` or `allow`"),
        ({"policy": "../outside.yaml"}, "inside the checkout"),
        ({"policy": "link.yaml"}, "inside the checkout"),
        ({"root": ".."}, "inside the checkout"),
        ({"report-dir": "/elsewhere"}, "inside the checkout"),
    ],
)
def test_a_bad_input_is_exit_2_and_named(history, steps, inputs, said):
    outside = history.root.parent / "outside.yaml"
    outside.write_text(POLICY)
    history.branch()
    (history.root / "link.yaml").symlink_to(outside)
    history.commit()
    done = steps.pull(inputs=inputs)
    assert done.code == 2, done.log
    assert said in done.log
    assert done.outputs["outcome"] == "error"
    assert done.outputs["exit-code"] == "2"
    assert "no verdict" in done.summary


@pytest.mark.parametrize("payload", ["", "{}", "[]", "{"])
def test_an_empty_event_is_exit_2(history, steps, payload):
    done = steps.on("pull_request", payload)
    assert done.code == 2, done.log
    assert "payload" in done.log
    assert "Traceback" not in done.log


def test_report_only_is_green_and_says_fail(red, steps):
    done = steps.pull(inputs={"report-only": "true", "report-dir": "out/report"})
    assert done.code == 0, done.log
    assert done.outputs["outcome"] == "fail"
    assert done.outputs["exit-code"] == "1"
    assert "report-only" in done.log
    assert Path(done.outputs["report-html"]) == red.root / "out" / "report" / "report.html"
