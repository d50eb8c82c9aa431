"""A fork's pull request by both real actions: the gate with a token that reads, then the comment."""

import json
import re
from pathlib import Path

import pytest
from action import payloads
from action.conftest import Job, Steps
from action.fake_github import READ_ONLY, TOKEN, FakeGitHub, zipped
from action.repositories import regressed
from action.step_runner import in_process
from markdown_it import MarkdownIt

FORK = "stranger/shop"
RUN = 500
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
EVIL = "::error::x\n##[error]y @octo/admins <img src=x> <!-- fairgate:report:v1 --> ![a](//evil)"


@pytest.fixture(scope="session")
def forks_run(states, tmp_path_factory):
    """Return base and head of a fork's red pull request whose gate ran, and its artifact's text."""
    folder = tmp_path_factory.mktemp("fork")
    history, hub = states.copy(regressed, folder / "work"), FakeGitHub()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(history.root)
        base, head = history.git("rev-parse", "main", "HEAD").split()
        hub.pulls[7] = payloads.pull_request(7, head, base, repo=FORK)
        steps = Steps(Job(folder / "runner", history.root, hub), history, folder, in_process)
        steps.gate.token = READ_ONLY
        done = steps.pull(repo=FORK)
    hub.stop()
    assert done.code == 1, done.log
    assert done.outputs["comment-url"] == ""
    assert "fork" in done.summary
    assert [request for request in hub.requests if request[0] != "GET"] == []
    return base, head, Path(done.outputs["report-json"]).read_text()


@pytest.fixture
def fork(hub, forks_run):
    """Return the head of a fork's red pull request 7 and the text of the artifact it has left."""
    base, head, record = forks_run
    hub.pulls[7] = payloads.pull_request(7, head, base, repo=FORK)
    hub.upload(RUN, head, record)
    return head, record


def finished(head, **more):
    return payloads.on_workflow_run(head, repo=FORK, run=RUN, **more)


def test_the_forks_own_artifact_becomes_one_comment(real_steps, fork):
    head, _ = fork
    done = real_steps.told(finished(head))
    assert done.code == 0, done.log
    (posted,) = real_steps.job.hub.ours(7)
    assert "the gate failed in `small`" in posted["body"]
    assert "`asr/generation/controlled`" in posted["body"]
    assert f"`{head[:12]}`" in posted["body"]
    assert f"/actions/runs/{RUN})" in posted["body"]
    assert "Nobody has verified these numbers" in posted["body"]
    assert done.outputs == {"comment-url": posted["html_url"]}
    assert TOKEN not in done.log + done.summary
    assert real_steps.told(finished(head)).code == 0
    assert len(real_steps.job.hub.ours(7)) == 1


def test_a_pull_request_that_moved_on_is_left_alone(steps, fork):
    head, _ = fork
    steps.job.hub.pulls[7]["head"]["sha"] = "e" * 40
    done = steps.told(finished(head))
    assert done.code == 0, done.log
    assert "moved on" in done.log
    assert done.outputs == {"comment-url": ""}
    assert steps.job.hub.of(7) == []


def test_a_closed_pull_request_is_left_alone(steps, fork):
    head, _ = fork
    steps.job.hub.pulls[7]["state"] = "closed"
    done = steps.told(finished(head))
    assert done.code == 0, done.log
    assert "no open pull request" in done.log
    assert steps.job.hub.of(7) == []


def test_a_pull_request_that_moves_on_while_we_look_is_left_alone(steps, fork):
    head, _ = fork
    hub = steps.job.hub

    def push(method, path, body):
        if path.endswith("/pulls/7"):
            hub.pulls[7]["head"]["sha"] = "e" * 40

    hub.hooks.append(push)
    done = steps.told(finished(head))
    assert done.code == 0, done.log
    assert hub.made("GET", r"/pulls/7")
    assert hub.of(7) == []


def test_the_payload_does_not_choose_the_pull_request(steps, fork):
    head, _ = fork
    other = payloads.pull_request(8, "f" * 40, "b" * 40)
    steps.job.hub.pulls[8] = other
    assert steps.told(finished(head, pulls=[other])).code == 0
    assert steps.job.hub.of(8) == []
    assert len(steps.job.hub.ours(7)) == 1


def test_a_missing_artifact_says_what_to_upload(steps, fork):
    head, _ = fork
    steps.job.hub.artifacts.clear()
    done = steps.told(finished(head))
    assert done.code == 4
    assert "report-json" in done.log
    assert "report-json" in done.summary
    assert "Traceback" not in done.log
    assert steps.job.hub.of(7) == []


def test_a_hostile_artifact_is_dead_text(steps, fork):
    head, record = fork
    hostile = json.loads(record)
    hostile["policy"] = EVIL
    hostile["evidence"]["problems"] = [EVIL]
    for rule in hostile["rules"]:
        rule["suite"], rule["where"], rule["reasons"] = EVIL, {"term": EVIL}, [EVIL]
    steps.job.hub.upload(RUN, head, json.dumps(hostile))
    done = steps.told(finished(head))
    assert done.code == 0, done.log
    (posted,) = steps.job.hub.ours(7)
    first, rest = posted["body"].split("\n", 1)
    assert re.fullmatch(r"<!-- [^<>]* -->", first)
    assert "<!--" not in rest
    assert not re.search(r"^::|^##\[", done.log + posted["body"], re.MULTILINE)
    tokens = [c for t in MARKDOWN.parse(rest) for c in t.children or ()]
    assert not [c.content for c in tokens if c.type == "html_inline"]
    links = [c.attrGet("href") for c in tokens if c.type in ("link_open", "image")]
    assert links == [f"{steps.job.hub.url}/octo/shop/actions/runs/{RUN}"]
    assert "@octo" not in "".join(c.content for c in tokens if c.type == "text")


@pytest.mark.parametrize("cut", [0, 4, 40, -30], ids=["empty", "magic", "short", "no end"])
def test_a_truncated_artifact_is_an_error_and_no_comment(steps, fork, cut):
    head, record = fork
    steps.job.hub.upload(RUN, head, zipped(record)[:cut], member=None)
    done = steps.told(finished(head))
    assert done.code == 4
    assert "run the gate again" in done.log
    assert "Traceback" not in done.log
    assert steps.job.hub.of(7) == []


def test_an_artifact_of_another_commit_is_refused(steps, fork):
    head, record = fork
    steps.job.hub.upload(RUN, "d" * 40, record)
    done = steps.told(finished(head))
    assert done.code == 4
    assert "dddddddddddd" in done.log
    assert head[:12] in done.log
    assert steps.job.hub.of(7) == []


def test_of_a_repeated_run_the_newest_artifact_counts(steps, fork):
    head, record = fork
    steps.job.hub.upload(RUN, head, record.replace('"policy": "small"', '"policy": "second"'))
    assert steps.told(finished(head, attempt=2)).code == 0
    (posted,) = steps.job.hub.ours(7)
    assert "in `second`" in posted["body"]


def test_an_earlier_attempt_that_comes_late_changes_nothing(steps, fork):
    head, record = fork
    hub = steps.job.hub
    assert steps.told(finished(head, attempt=2)).code == 0
    before = hub.ours(7)[0]["body"]
    changed = record.replace('"outcome": "fail"', '"outcome": "pass"')
    changed = changed.replace('"exit_code": 1', '"exit_code": 0')
    hub.upload(RUN, head, changed)
    done = steps.told(finished(head, attempt=1))
    assert done.code == 0, done.log
    assert [comment["body"] for comment in hub.ours(7)] == [before]


def test_without_a_token_it_says_so(steps, fork):
    head, _ = fork
    steps.comment.token = ""
    done = steps.told(finished(head))
    assert done.code == 2
    assert "github-token" in done.log
    assert "github-token" in done.summary
    assert steps.job.hub.of(7) == []


def test_a_token_that_may_only_read_is_an_error(steps, fork):
    head, _ = fork
    steps.comment.token = READ_ONLY
    done = steps.told(finished(head))
    assert done.code == 4
    assert "Resource not accessible" in done.log
    assert READ_ONLY not in done.log + done.summary


def test_a_checkout_beside_it_takes_no_part(real_steps, fork, tmp_path, monkeypatch):
    head, _ = fork
    trace = tmp_path / "pwned"
    folder = real_steps.comment.workspace
    for name in ("click.py", "pydantic.py", "json.py", "sitecustomize.py", "encodings.py"):
        (folder / name).write_text(f"open({str(trace)!r}, 'w')\n")
    (folder / "fairgate").mkdir()
    (folder / "fairgate" / "__init__.py").write_text(f"open({str(trace)!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    done = real_steps.told(finished(head))
    assert done.code == 0, done.log
    assert not trace.exists()
