"""Stored answers of the base branch's runs: whose are believed, and what they spare."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from action.fake_github import REPOSITORY, TOKEN
from action.repositories import WORKFLOW, WORKFLOW_PATH

from fairgate.domain.errors import ApiError, BaselineError, DataError
from fairgate.github.api import GitHubApi
from fairgate.github.base_commit import BaseCommit, Clone
from fairgate.github.stored_answers import BaseRuns
from fairgate.systems.result_store import SqliteResultStore

ARTIFACT, MEMBER = "fairgate-answers", "store.sqlite"
BASE, OLDER, HEAD, SIDE = "b" * 40, "c" * 40, "a" * 40, "d" * 40
PUSH = {
    "event": "push", "head_branch": "main", "head_repository": {"full_name": REPOSITORY},
    "path": WORKFLOW_PATH, "created_at": "2026-01-02T10:02:00Z",
}  # fmt: skip


MAIN = "refs/heads/main"
PUSHED = "2026-01-02T10:01:00Z"


@pytest.fixture
def api(hub):
    """Return the API of a repository whose main branch went from OLDER to BASE, merging SIDE."""
    hub.histories[BASE], hub.sides[BASE] = [OLDER, BASE], [SIDE]
    for commit in (OLDER, BASE, SIDE, HEAD):
        hub.commits[commit] = {WORKFLOW_PATH: WORKFLOW.encode()}
    moved(hub, OLDER)
    moved(hub, BASE)
    return GitHubApi(hub.url, TOKEN)


def moved(hub, commit, **more):
    """Let a push have moved main to a commit."""
    move = {"ref": MAIN, "after": commit, "timestamp": PUSHED, "activity_type": "push"}
    hub.moves.append({**move, **more})


def left(hub, run=1, head=OLDER, content=b"answers", **said):
    """Leave an artifact of a run, of which GitHub says what a push of the base branch has."""
    hub.upload(run, head, content, name=said.pop("name", ARTIFACT), member=MEMBER)
    hub.runs[run] = {**PUSH, "head_sha": head, **said}


def found(api, base=BASE, workflow=WORKFLOW_PATH):
    commit = BaseCommit(Clone(Path("nowhere")), base, api=api, repository=REPOSITORY)
    runs = BaseRuns(api, repository=REPOSITORY, branch="main", base=commit, workflow=workflow)
    return runs.file(ARTIFACT, MEMBER)


@pytest.mark.parametrize("head", [OLDER, BASE])
def test_a_push_run_of_a_commit_in_the_base_s_history_is_believed(hub, api, head):
    left(hub, head=head)
    assert found(api) == (head, b"answers")


def test_nothing_else_is_believed_and_nothing_of_it_is_fetched(hub, api):
    """A pull request's job can upload under any name, and a branch or tag can be called `main`."""
    believed = []
    for run, said in enumerate((
        # What a push did not start, in every way: `tests/unit/github/test_earned.py`.
        {"event": "pull_request"}, {"head": HEAD}, {"head_sha": HEAD}, {"head": SIDE},
        {"head_sha": None}, {"from": 2}, {"name": "fairgate-answers-2"},
    ), 1):  # fmt: skip
        left(hub, run, **said)
        if found(api) is not None:
            believed.append(said)
        hub.artifacts.clear()
    assert believed == []
    assert not hub.made("GET", "/zip")
    # Its commit is in the history, and what its workflow did at that commit nobody reviewed.
    left(hub, run=20, content=b"main's")
    left(hub, run=21, content=b"forged", head_branch="feature")
    assert found(api) == (OLDER, b"main's")


@pytest.mark.parametrize(
    "content",
    [
        WORKFLOW + "# other\n", WORKFLOW.rstrip(), "", None, {"type": "symlink"},
        {"type": "submodule"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("commit", [OLDER, BASE])
def test_a_run_of_another_content_of_the_workflow_is_not_believed(hub, api, commit, content):
    left(hub)
    is_file = isinstance(content, str)
    hub.commits[commit][WORKFLOW_PATH] = content.encode() if is_file else content
    if content is None:
        del hub.commits[commit][WORKFLOW_PATH]
    with contextlib.suppress(BaselineError):  # it is a link
        assert found(api) is None
    assert not hub.made("GET", "/zip")


def test_what_a_merge_brought_in_is_not_on_the_line_even_if_main_was_there(hub, api):
    moved(hub, SIDE)
    left(hub, head=SIDE)
    assert found(api) is None


@pytest.mark.parametrize(("count", "is_near"), [(250, True), (1200, False)])
def test_a_long_line_is_walked_in_pages_and_not_for_ever(hub, api, count, is_near):
    line = [f"{number:040x}" for number in range(count)]
    hub.histories[BASE], hub.sides[BASE] = [OLDER, *line, BASE], []
    left(hub)
    assert (found(api) is not None) == is_near


def test_the_newest_of_the_base_s_is_taken_whatever_others_stand_before_it(hub, api):
    left(hub, 1, content=b"old")
    left(hub, 2, content=b"new")
    left(hub, 3, content=b"expired")
    hub.expired.add(3)
    for run in range(4, 10):
        left(hub, run, head=HEAD, content=b"poisoned", event="pull_request")
    assert found(api) == (OLDER, b"new")


def test_a_damaged_artifact_and_a_missing_permission_are_said(hub, api):
    hub.upload(2, OLDER, b"PK no zip", name=ARTIFACT, member=None)
    hub.runs[2] = {**PUSH, "head_sha": OLDER}
    with pytest.raises(DataError, match=r"no readable store\.sqlite"):
        found(api)
    with pytest.raises(ApiError):
        found(GitHubApi(hub.url, "wrong"))
    left(hub, 1, content=b"older")
    assert found(api) == (OLDER, b"older")


def test_a_copy_of_a_store_is_one_file_with_everything(tmp_path):
    store = SqliteResultStore(tmp_path / "store.sqlite")
    store.put_many("answer", [("k", "v")])
    store.copy_to(tmp_path / "copy.sqlite")
    store.copy_to(tmp_path / "copy.sqlite")
    store.close()
    copied = SqliteResultStore(tmp_path / "copy.sqlite")
    assert copied.get_many("answer", ["k"]) == {"k": "v"}
    copied.close()


POLICY = """\
version: 1
name: small
system: {generator: {model: demo-slm, decoding: greedy}}
suites:
  - {id: s, sources: sources.jsonl, task: sentiment, perturbations: [gender]}
gates:
  - {metric: asr/generation, report: true}
"""
TEXTS = ["Wonderful, I love it.", "Awful, it broke at once."]


@pytest.fixture
def asked(history):
    history.write("policies/small.yaml", POLICY)
    rows = [json.dumps({"id": f"s{n}", "text": text}) for n, text in enumerate(TEXTS)]
    history.write("sources.jsonl", "\n".join(rows))
    history.git("rm", "-q", "-r", "--ignore-unmatch", "baselines")
    history.commit("ask a model")
    return history


def made(job):
    """Return how many answers the run had to make; those that are stored are not."""
    found = re.search(r"generate: (\d+) to do", job.err)
    return int(found[1]) if found else 0


def fresh(job):
    shutil.rmtree(job.folder / "fairgate", ignore_errors=True)


def pushed(job, history):
    more = {"GITHUB_REF": "refs/heads/main", "FAIRGATE_ANSWERS_ARTIFACT": ARTIFACT}
    assert job.push(history, **more) == 0, job.out + job.err
    return history.git("rev-parse", "main"), Path(job.outputs["answers-file"]).read_bytes()


@pytest.mark.whole
def test_a_pull_request_asks_nothing_that_the_base_branch_has_asked(job, asked, hub):
    sha, content = pushed(job, asked)
    first = made(job)
    assert first > 20
    assert job.outputs["answers-hit"] == "false"
    left(hub, 1, head=sha, content=content)
    moved(hub, sha)
    fresh(job)
    asked.branch()
    asked.commit("nothing that counts")
    assert job.pull(asked, FAIRGATE_ANSWERS_ARTIFACT=ARTIFACT) == 0, job.out + job.err
    assert made(job) == 0
    assert (job.outputs["answers-hit"], job.outputs["answers-commit"]) == ("true", sha)
    assert job.outputs["answers-file"] == "", "a pull request's run leaves nothing"
    record = Path(job.outputs["report-json"]).read_text()

    # Spoiled on its way: what does not fit the store's checksums is asked again.
    store = job.folder / "damaged.sqlite"
    store.write_bytes(content)
    with sqlite3.connect(store) as damaged:
        damaged.execute("UPDATE results SET value = CAST('positive' AS BLOB)")
    left(hub, 2, head=sha, content=store.read_bytes())
    fresh(job)
    assert job.pull_again(asked, FAIRGATE_ANSWERS_ARTIFACT=ARTIFACT) == 0, job.out + job.err
    assert made(job) == first
    assert Path(job.outputs["report-json"]).read_text() == record


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    "ref", ["refs/heads/topic", "refs/tags/main", "refs/pull/7/merge", ""], ids=str
)
def test_a_run_of_another_branch_neither_leaves_nor_uses_answers(job, history, hub, ref):
    left(hub, head=history.git("rev-parse", "main"), content=b"never read")
    more = {"GITHUB_REF": ref, "FAIRGATE_ANSWERS_ARTIFACT": ARTIFACT}
    cache = job.folder / "fairgate/cache"
    cache.mkdir(parents=True)
    with contextlib.closing(SqliteResultStore(cache / MEMBER)) as store:
        store.put_many("answer", [("k", "v")])
    assert job.push(history, **more) == 0, job.out + job.err
    assert (job.outputs["answers-hit"], job.outputs["answers-file"]) == ("false", "")
    assert not hub.made("GET", "/zip")
    more["GITHUB_REF"] = "refs/heads/main"
    assert job.push(history, **more) == 0, job.out + job.err
    assert Path(job.outputs["answers-file"]).is_file()


@pytest.mark.parametrize("fault", ["no token", "no permission"])
def test_what_cannot_be_had_costs_time_and_no_verdict(job, history, hub, fault):
    if fault == "no permission":
        hub.fail("GET", "/actions/artifacts", 403, times=9)
    history.proposes()
    token = "" if fault == "no token" else TOKEN
    code = job.pull(history, FAIRGATE_ANSWERS_ARTIFACT=ARTIFACT, FAIRGATE_GITHUB_TOKEN=token)
    assert code == 0, job.out + job.err
    assert job.outputs["answers-hit"] == "false"
    assert ("no token" if fault == "no token" else "cannot be had") in job.err
