"""A fork's pull request: its own run with a token that reads, then the comment by the trusted half.

The artifact is hostile: GitHub alone says which pull request it is about.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from action import payloads
from action.conftest import Job, Steps
from action.fake_github import READ_ONLY, TOKEN, FakeGitHub, known_run, zipped
from action.repositories import regressed
from action.step_runner import in_process
from fakes.serving import served

FORK = "stranger/shop"
RUN = 500
EVIL = "::error::x\n##[error]y @octo/admins <img src=x> <!-- fairgate:report:v1 --> ![a](//evil)"


@pytest.fixture(scope="session")
def forks_run(states, tmp_path_factory):
    """Return base and head of a fork's red pull request whose gate ran, and its artifact's text."""
    folder = tmp_path_factory.mktemp("fork")
    history = states.copy(regressed, folder / "work")
    with pytest.MonkeyPatch.context() as patch, served(FakeGitHub()) as hub:
        patch.chdir(history.root)
        base, head = history.git("rev-parse", "main", "HEAD").split()
        hub.pulls[7] = payloads.pull_request(7, head, base, repo=FORK)
        steps = Steps(Job(folder / "runner", history.root, hub), history, folder, in_process)
        steps.gate.token = READ_ONLY
        done = steps.pull(repo=FORK, code=1)
    assert done.outputs["comment-url"] == ""
    assert "a fork's token can only read" in done.commented.log
    assert [request for request in hub.requests if request[0] != "GET"] == []
    return base, head, Path(done.outputs["report-json"]).read_text()


@pytest.fixture
def fork(hub, forks_run):
    base, head, record = forks_run
    hub.pulls[7] = payloads.pull_request(7, head, base, repo=FORK)
    hub.upload(RUN, head, record)
    return SimpleNamespace(head=head, record=record)


def passed(fork):
    return json.dumps({**json.loads(fork.record), "outcome": "pass", "exit_code": 0})


def finished(fork, **more):
    return payloads.on_workflow_run(fork.head, repo=FORK, run=RUN, **more)


def test_the_forks_own_artifact_becomes_one_comment(steps, fork):
    done = steps.told(finished(fork))
    (posted,) = steps.job.hub.ours(7)
    for said in (
        "### A fork reports: the gate failed", f"`{fork.head[:12]}`", f"/actions/runs/{RUN})",
        "Nobody has verified this",
    ):  # fmt: skip
        assert said in posted["body"]
    assert done.outputs == {"comment-url": posted["html_url"]}
    assert TOKEN not in done.log + done.summary
    steps.told(finished(fork))
    assert len(steps.job.hub.ours(7)) == 1


HEAD = {"sha": "e" * 40}


@pytest.mark.parametrize(
    "happens",
    [
        lambda hub: hub.pulls[7]["head"].update(HEAD),
        lambda hub: hub.pulls[7].update(state="closed"),
        lambda hub: hub.hooks.append(
            lambda _, path, __: path.endswith("/pulls/7") and hub.pulls[7]["head"].update(HEAD)
        ),
    ],
    ids=["moved on", "closed", "moves on while we look"],
)
def test_a_pull_request_that_is_not_at_the_commit_any_more_is_left_alone(steps, fork, happens):
    hub = steps.job.hub
    happens(hub)
    done = steps.told(finished(fork))
    assert "no open pull request has the commit that ran; it may have moved on" in done.log
    assert done.outputs == {"comment-url": ""}
    assert hub.of(7) == []


def test_the_payload_does_not_choose_the_pull_request(steps, fork):
    other = payloads.pull_request(8, "f" * 40, "b" * 40)
    steps.job.hub.pulls[8] = other
    assert steps.told(finished(fork, pulls=[other])).code == 0
    assert steps.job.hub.of(8) == []
    assert len(steps.job.hub.ours(7)) == 1


def test_a_missing_artifact_says_what_to_upload(steps, fork):
    steps.job.hub.artifacts.clear()
    done = steps.told(finished(fork), code=4)
    assert "run-folder" in done.log
    assert "run-folder" in done.summary
    assert "Traceback" not in done.log
    assert steps.job.hub.of(7) == []


def test_no_text_of_a_hostile_artifact_reaches_the_comment(steps, fork):
    steps.told(finished(fork))
    (harmless,) = steps.job.hub.ours(7)
    hostile = json.loads(fork.record)
    hostile["policy"] = EVIL
    hostile["evidence"]["problems"] = [EVIL]
    for rule in hostile["rules"]:
        rule |= {"metric": EVIL, "suite": EVIL, "where": {"term": EVIL}, "reasons": [EVIL]}
    steps.job.hub.upload(RUN, fork.head, json.dumps(hostile))
    done = steps.told(finished(fork))
    (posted,) = steps.job.hub.ours(7)
    assert posted["body"] == harmless["body"]
    assert 'key="fork/fairgate-report"' in posted["body"]
    assert not re.search(r"^::|^##\[", done.log, re.MULTILINE)


def test_an_artifact_of_another_commit_is_refused(steps, fork):
    steps.job.hub.upload(RUN, "d" * 40, fork.record)
    done = steps.told(finished(fork), code=4)
    assert "dddddddddddd" in done.log
    assert fork.head[:12] in done.log
    assert steps.job.hub.of(7) == []


def test_of_a_repeated_run_the_newest_artifact_counts(steps, fork):
    steps.job.hub.upload(RUN, fork.head, passed(fork))
    assert steps.told(finished(fork, attempt=2)).code == 0
    (posted,) = steps.job.hub.ours(7)
    assert "the gate passed" in posted["body"]


def test_an_earlier_attempt_that_comes_late_changes_nothing(steps, fork):
    hub = steps.job.hub
    fork_of = {"id": 2, "full_name": FORK}
    hub.runs[RUN] = known_run(head_sha=fork.head, head_repository=fork_of, pull_requests=[])
    assert steps.told(finished(fork, attempt=2)).code == 0
    before = hub.ours(7)[0]["body"]
    hub.upload(RUN, fork.head, passed(fork))
    steps.told(finished(fork, attempt=1))
    assert [comment["body"] for comment in hub.ours(7)] == [before]


def commented(job, fork, raw):
    job.hub.upload(RUN, fork.head, raw, member=None)
    return job.command("comment", "workflow_run", finished(fork))


@pytest.mark.parametrize(
    ("outcome", "code", "is_possible"),
    [
        ("pass", 0, True), ("fail", 1, True), ("inconclusive", 3, True), ("inconclusive", 5, True),
        ("pass", 1, False), ("fail", 0, False), ("inconclusive", 0, False),
        ("not-evaluated", 5, False), ("pass", 5, False),
    ],
)  # fmt: skip
def test_a_record_says_what_a_gate_can_say_or_is_no_comment(job, fork, outcome, code, is_possible):
    said = {**json.loads(fork.record), "outcome": outcome, "exit_code": code}
    done = commented(job, fork, zipped(json.dumps(said)))
    assert done == (0 if is_possible else 4)
    assert is_possible or "contradicts itself" in job.err
    assert len(job.hub.of(7)) == is_possible


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"PK\x03\x04 truncated", zipped("{}", "other.json"), zipped(""), zipped("{}"),
        zipped("[" * 100_000), zipped('{"policy": 1}'), zipped("null"), zipped(b"\xff\xfe\x00"),
        "too large", zipped("{}", "../run.json"),
        4, 40, -30, slice(200, 260),
    ],
    ids=range(15),
)  # fmt: skip
def test_an_artifact_that_is_none_is_an_error_and_no_comment(job, fork, raw):
    if raw == "too large":
        raw = zipped(fork.record + " " * (17 << 20))
    elif isinstance(raw, int):  # truncated
        raw = zipped(fork.record)[:raw]
    elif isinstance(raw, slice):  # damaged
        whole = bytearray(zipped(fork.record))
        whole[raw] = b"\0" * 60
        raw = bytes(whole)
    assert commented(job, fork, raw) == 4
    assert job.hub.of(7) == []
    assert "Traceback" not in job.err


def test_only_after_a_run_of_a_pull_request(job, fork):
    payload = finished(fork)
    payload["workflow_run"]["event"] = "push"
    assert job.command("comment", "workflow_run", payload) == 2
    assert job.hub.of(7) == []
