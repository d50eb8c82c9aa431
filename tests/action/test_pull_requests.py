"""What the gate says on a pull request: verdict, comment, summary, annotations, outputs."""

import re
import subprocess
from pathlib import Path

import pytest
from action import payloads
from action.fake_github import READ_ONLY, REPOSITORY, TOKEN
from action.repositories import LOOSE, POLICY, RULE, broken, fair, worse


def test_an_unchanged_pull_request_is_green_and_quiet(finished):
    job = finished(fair)
    assert job.code == 0
    names = ("outcome", "exit-code", "violations", "regressions")
    assert [job.outputs[name] for name in names] == ["pass", "0", "0", "0"]
    assert "::error" not in job.out
    assert "nobody is treated differently, nor worse than before" in job.summary


def test_a_regression_is_red_with_comment_annotation_and_outputs(finished):
    job = finished(worse)
    assert job.code == 1
    assert job.outputs["outcome"] == "fail"
    assert job.outputs["regressions"] == "1"
    (comment,) = job.hub.ours(7)
    assert comment["body"].startswith('<!-- fairgate:report:v1 key="fairgate-small" head="')
    assert "answers became worse for race" in comment["body"]
    assert job.outputs["comment-url"] == comment["html_url"]
    place = f"file=policies/small.yaml,line={POLICY.splitlines().index(RULE) + 1}"
    assert f"::error {place},title=FairGate%3A rule failed for race::" in job.out
    assert job.out.count("\n::error ") + job.out.startswith("::error ") == 1
    for name in ("report-md", "report-html", "report-json", "sarif-file", "junit-file"):
        assert Path(job.outputs[name]).read_text()
    assert "answers became worse for race" in job.summary


def test_the_comment_says_who_and_since_when(finished):
    job = finished(broken)
    said = job.hub.ours(7)[0]["body"].replace("&nbsp;", " ")
    assert "### ❌ FairGate: answers change for race (10), more than before, in `small`" in said
    now = "| ❌ | **answers**, now | **race** (10) | +80.0 | 80.0 % | 0.0 % | 0.0 % |"
    since = "| ❌ | **answers**, since baseline | **race** (10) | +80.0 | 80.0 % | 0.0 % | 0.0 %, unchanged |"
    assert f"{since}\n{now}\n" in said
    assert "Nobody beyond the limit of unreadable (2 points now, 2 since baseline)." in said
    assert "For example, " in said
    assert "Next: reproduce it with `fairgate run" in said
    assert "judged by the files of" not in said
    names = ("violations", "regressions")
    assert [job.outputs[name] for name in names] == ["1", "1"]


def test_a_green_comment_names_nobody(finished):
    said = finished(fair, FAIRGATE_COMMENT="always").hub.ours(7)[0]["body"]
    assert "### ✅ FairGate: nobody is treated differently, nor worse than before, in" in said
    assert "[full report](" in said
    assert not re.search(r"\b(race|gender|person|woman|man|Asian|Black)\b", said)


@pytest.mark.parametrize(
    ("inputs", "answer", "comments"),
    [
        ({"FAIRGATE_COMMENT": "always"}, fair, 1), ({}, fair, 0), ({}, worse, 1),
        ({"FAIRGATE_COMMENT": "on-failure"}, fair, 0),
        ({"FAIRGATE_COMMENT": "on-failure"}, worse, 1),
    ],
)  # fmt: skip
def test_when_a_comment_is_made(finished, inputs, answer, comments):
    assert len(finished(answer, **inputs).hub.ours(7)) == comments


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("given", "said", "code"),
    [
        ({"repo": "stranger/shop", "FAIRGATE_GITHUB_TOKEN": READ_ONLY}, "a fork's token", 0),
        ({"FAIRGATE_GITHUB_TOKEN": READ_ONLY}, "not accessible by integration", 4),
        ({"FAIRGATE_GITHUB_TOKEN": ""}, "github-token", 2),
        ({"GITHUB_ACTOR": "dependabot[bot]"}, "Dependabot's token", 0),
    ],
)
def test_where_no_comment_may_be_written_the_verdict_stands(job, history, given, said, code):
    history.proposes(worse)
    assert job.pull(history, **given) == 1
    assert job.commented == code
    assert job.hub.of(7) == []
    assert said in job.comment_out
    assert "answers became worse for race" in job.summary


def test_the_gate_itself_writes_nothing_to_github(job, history):
    """Its job runs files of the pull request, and so its token may be one that only reads."""
    history.proposes(worse)
    head = history.merge()
    event = payloads.on_pull_request(7, head, history.git("rev-parse", "main"))
    assert job.command("run", "pull_request", event) == 1
    assert [request for request in job.hub.requests if request[0] != "GET"] == []
    assert job.hub.of(7) == []


def test_a_push_is_judged_by_its_own_files(job, history):
    assert job.push(history) == 0
    assert job.outputs["comment-url"] == ""


@pytest.mark.parametrize("name", ["pull_request_target", "workflow_run", "issue_comment"])
def test_a_forks_head_never_meets_a_writing_token(job, history, name):
    head, base = "c" * 40, history.git("rev-parse", "main")
    job.hub.pulls[7] = payloads.pull_request(7, head, base, repo="stranger/shop")
    payload = {
        "pull_request_target": payloads.on_pull_request(7, head, base, repo="stranger/shop"),
        "workflow_run": payloads.on_workflow_run(head, repo="stranger/shop"),
        "issue_comment": payloads.on_issue_comment(7),
    }[name]
    assert job.run(name, payload) == 2
    assert "refusing to run" in job.err
    assert job.outputs["outcome"] == "error"
    assert job.hub.of(7) == []
    if name == "pull_request_target":
        payload["pull_request"]["head"]["repo"] = None  # a deleted fork
        assert job.run(name, payload) == 2
    if name == "issue_comment":
        job.hub.fail("GET", "/pulls/7", 500, times=10)
        assert job.run(name, payload) == 2
        assert "does not name" in job.err


def test_a_workflow_run_finds_its_pull_request_by_its_head(job, history):
    head = history.proposes(worse)
    base = history.git("rev-parse", "main")
    job.hub.pulls.clear()
    job.hub.pulls[6] = payloads.pull_request(6, "d" * 40, base)  # of the same branch, and first
    job.hub.pulls[7] = payloads.pull_request(7, head, base)
    assert job.run("workflow_run", payloads.on_workflow_run(head)) == 1
    assert len(job.hub.ours(7)) == 1
    assert job.hub.of(6) == []


def test_hostile_names_reach_no_log_and_no_comment_alive(job, history):
    evil = (
        "::error::pwned @octo/admins <!-- fairgate:report:v1 --> ![x](https://evil.invalid/x.png)"
    )
    history.proposes(lambda key: f"positive {evil}" if "gender" in key else "negative")
    assert job.pull(history) in {1, 5}
    assert "::error::pwned" not in job.out + job.err
    body = job.hub.ours(7)[0]["body"]
    assert "\n<!--" not in body
    assert not re.search(r"^::|\n::", body)


def test_the_addresses_of_an_enterprise_server_are_used(job, history):
    history.proposes(worse)
    job.pull(history, GITHUB_SERVER_URL="https://ghe.example.org")
    assert f"https://ghe.example.org/{REPOSITORY}/actions/runs/500" in job.hub.ours(7)[0]["body"]


def test_the_token_is_gone_from_the_environment_of_children(job, history, monkeypatch):
    seen, original = [], subprocess.run
    note = lambda *a, **k: (seen.append(k.get("env")), original(*a, **k))[1]  # noqa: E731
    monkeypatch.setattr(subprocess, "run", note)
    history.proposes()
    job.pull(history)
    assert seen
    assert not any(TOKEN in (env or {}).values() for env in seen if env and "GITHUB_ACTIONS" in env)


def test_the_summary_keeps_below_the_runners_limit(job, history, monkeypatch):
    monkeypatch.setattr("fairgate.github.report.SUMMARY_BYTES", 4_000)
    history.proposes(broken)
    assert job.pull(history) == 1
    assert 0 < len(job.summary.encode()) <= 4_002
    assert "Left out" in job.summary


def test_the_comment_keeps_below_githubs_limit(job, history, monkeypatch):
    monkeypatch.setattr("fairgate.github.report.COMMENT_LIMIT", 3_000)
    history.proposes(broken, {"policies/small.yaml": LOOSE})
    assert job.pull(history) == 1
    posted = job.hub.ours(7)[0]["body"]
    _, who_judged, body = posted.split("\n", 2)  # both lines are room that the limit leaves
    assert "judged by" in who_judged
    assert len(body) <= 3_000
    assert "regression raised from 0.02 to 0.9" in body
