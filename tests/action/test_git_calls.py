"""No file of a change, and no setting of a checkout, takes part in what git is asked."""

import os
import subprocess
from pathlib import Path

import pytest
from action import payloads
from action.repositories import LOOSE, broken
from action.test_base_commit import files_of, only_merged

from fairgate.domain.errors import UsageError
from fairgate.io.git import current_commit, repository_of, tracked_below

SERVICE = "services/rag"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a program of an attacker, which leaves a trace beside it where it runs."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    path = tmp_path / "program"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path / "ran"}\nexit 1\n')
    path.chmod(0o700)
    return path


def ran(program):
    trace = program.parent / "ran"
    return trace.read_text() if trace.exists() else ""


@pytest.fixture
def service(history):
    history.answers(broken)
    worse = history.read("answers.jsonl")
    history.git("checkout", "-q", "--", "answers.jsonl")
    history.move(SERVICE)
    history.write(f"{SERVICE}/answers.jsonl", worse)
    history.write(f"{SERVICE}/policies/small.yaml", LOOSE)
    return history


def embed(history, folder, config, *, links=False):
    """Put into a folder what git takes for a bare repository when it is started there."""
    history.write(f"{folder}/HEAD", "ref: refs/heads/main\n")
    history.write(f"{folder}/config", config)
    inside = history.root / folder
    if links:
        up = "../" * len(folder.split("/"))
        for part in ("objects", "refs"):
            (inside / part).symlink_to(f"{up}.git/{part}")
    else:
        history.write(f"{folder}/objects/keep", "")
        history.write(f"{folder}/refs/keep", "")


def attack_config(program):
    return f"""\
[core]
\trepositoryformatversion = 1
\tbare = false
\tworktree = .
\tfsmonitor = {program}
\tsshCommand = {program}
[extensions]
\tpartialClone = origin
[remote "origin"]
\turl = ssh://nowhere.invalid/x
\tuploadpack = {program}
\tpromisor = true
"""


@pytest.mark.walk(1)
@pytest.mark.parametrize("links", [True, False])
def test_an_embedded_bare_repository_is_not_asked(job, service, program, links):
    embed(service, SERVICE, attack_config(program), links=links)
    service.commit()
    assert job.pull(service, FAIRGATE_ROOT=SERVICE) == 1, job.err
    assert ran(program) == ""
    assert "max raised from 0.2 to 0.9" in job.summary
    assert "introduces the gate" not in job.summary


def test_an_embedded_repository_is_no_checkout_by_itself(tmp_path, history):
    """Without a `.git` above, a folder that looks like a bare repository is none."""
    history.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    assert repository_of(tmp_path / "bare") is None
    assert current_commit(tmp_path / "bare") == ""


PROGRAMS = (
    "core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.pager", "core.editor",
    "core.askPass", "core.alternateRefsCommand", "pager.ls-tree", "pager.cat-file",
    "credential.helper", "diff.external", "diff.x.textconv", "filter.x.smudge",
    "filter.x.process", "gpg.program", "remote.origin.uploadpack", "uploadpack.packObjectsHook",
)  # fmt: skip
SETTINGS = [
    *((name, "{program}") for name in PROGRAMS),
    ("core.hooksPath", "{folder}/hooks"), ("credential.http://127.0.0.1:9.helper", "!{program}"),
    ("alias.cat-file", "!{program}"), ("remote.origin.vcs", "program"),
    ("protocol.allow", "always"), ("protocol.ext.allow", "always"),
    ("fetch.recurseSubmodules", "true"), ("submodule.recurse", "true"),
]  # fmt: skip
HOOKS = ("reference-transaction", "post-checkout", "pre-auto-gc", "post-index-change", "fsmonitor")
URLS = [
    "ssh://127.0.0.1:9/x", "git://127.0.0.1:9/x", "http://127.0.0.1:9/x", "ext::{program} x",
    "program::x", "file://{folder}/work/shop",
]  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("url", URLS)
def test_no_setting_of_the_checkout_names_a_program(job, history, tmp_path, program, url):
    """Also while the base commit is fetched, from wherever the settings say it comes from."""
    for name in ("bin/git-remote-program", *(f"hooks/{h}" for h in HOOKS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(program)
    history.proposes(broken, {".gitattributes": "* filter=x diff=x\n"})
    _, event = only_merged(job, history, tmp_path)
    commit = history.git("rev-parse", "HEAD")
    config = ["git", "-C", str(job.workspace), "config", "--add"]
    for name, value in (*SETTINGS, ("remote.origin.url", url)):
        given = value.format(program=program, folder=tmp_path)
        subprocess.run([*config, name, given], check=True)
    subprocess.run([*config[:-1], "--unset-all", "remote.origin.url", "nowhere"], check=True)
    for hook in HOOKS:
        (job.workspace / ".git" / "hooks" / hook).symlink_to(program)
    assert job.run("pull_request", event, GITHUB_SHA=commit) == 1, job.err
    assert ran(program) == ""


@pytest.mark.whole
def test_a_partial_clone_fetches_nothing_by_itself(job, history, tmp_path, program):
    """A file that the clone left out is asked of the API, not of a program."""
    history.proposes(broken, {"policies/small.yaml": LOOSE})
    base, head = history.git("rev-parse", "main"), history.merge()
    history.git("config", "uploadpack.allowFilter", "true")
    history.git("branch", "--force", "pull", "HEAD")
    job.workspace = tmp_path / "partial"
    where = (f"file://{history.root}", str(job.workspace))
    history.git("clone", "-q", "--filter=blob:none", "--branch=pull", *where)
    setting = ["git", "-C", str(job.workspace), "config"]
    subprocess.run([*setting, "remote.origin.url", "ssh://127.0.0.1:9/x"], check=True)
    subprocess.run([*setting, "core.sshCommand", str(program)], check=True)
    event = payloads.on_pull_request(7, head, base)
    merge = {"GITHUB_SHA": history.git("rev-parse", "HEAD")}
    assert job.run("pull_request", event, **merge) == 3
    assert "cannot be read" in job.err
    job.hub.commits[base] = files_of(history, base)
    assert job.run("pull_request", event, **merge) == 1, job.err
    assert "max raised from 0.2 to 0.9" in job.summary
    assert ran(program) == ""


def test_a_variable_that_names_another_repository_does_not_count(history, tmp_path, monkeypatch):
    commit = history.commit()
    subprocess.run(["git", "init", "-q", str(tmp_path / "other")], check=True)
    parts = ("DIR", "WORK_TREE", "OBJECT_DIRECTORY", "COMMON_DIR", "INDEX_FILE")
    for name in (f"GIT_{part}" for part in parts):
        with monkeypatch.context() as patch:
            patch.setenv(name, str(tmp_path / "other" / ".git"))
            assert current_commit(history.root) == commit, name
            assert tracked_below(history.root / "policies") == ["policies/small.yaml"], name
            assert tracked_below(Path("/")) == [], name


def test_a_replaced_object_is_not_taken_for_the_commit(history, job):
    """`refs/replace` changes what every git command sees."""
    loose = history.proposes(broken, {"policies/small.yaml": LOOSE})
    base, head = history.git("rev-parse", "main"), history.merge()
    history.git("replace", base, loose)
    event = payloads.on_pull_request(7, head, base)
    assert job.run("pull_request", event) == 1


def test_a_repository_of_somebody_else_above_the_folder_is_not_asked(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert repository_of(tmp_path / "inner") is not None
    mine = tmp_path.stat().st_uid
    real = os.lstat

    def another(path, **more):
        found = real(path, **more)
        is_git = str(path).endswith(".git")
        return os.stat_result((*found[:4], mine + 1, *found[5:])) if is_git else found

    monkeypatch.setattr(os, "lstat", another)
    assert repository_of(tmp_path / "inner") is None


def test_a_linked_work_tree_is_a_checkout_of_its_own(history, tmp_path):
    history.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    (tmp_path / "tree" / "new").write_text("x")
    assert current_commit(tmp_path / "tree" / "policies") == history.git("rev-parse", "other")


def test_tracked_files_are_told_whatever_the_path_leads_through(history, tmp_path, monkeypatch):
    history.write(".fairgate/store.sqlite", "x")
    (history.root / "link").symlink_to(".fairgate")
    history.git("add", "-f", ".fairgate", "link")
    assert tracked_below(history.root / ".fairgate") == [".fairgate/store.sqlite"]
    assert tracked_below(history.root / "link") == ["link"]
    assert tracked_below(history.root / ".FAIRGATE") == [".fairgate/store.sqlite"]
    assert tracked_below(history.root / "no" / "such" / "folder") == []
    assert tracked_below(tmp_path / "elsewhere") == []
    monkeypatch.setenv("PATH", "/nowhere")  # where git cannot be asked, nothing is called untracked
    with pytest.raises(UsageError, match="git"):
        tracked_below(history.root / "policies")


def test_no_git_of_the_checkout_is_started(history, program, monkeypatch):
    """An empty entry of the PATH is the current folder: `PATH=:/usr/bin` is a common slip."""
    commit, usual = history.commit(), os.environ["PATH"]
    (history.root / "bin").mkdir()
    for name in ("git", "bin/git"):
        (history.root / name).symlink_to(program)
    for given in ("", ".", "bin", f"{history.root}/bin", str(history.root)):
        monkeypatch.setenv("PATH", f"{given}{os.pathsep}{usual}")
        assert current_commit(history.root) == commit
        monkeypatch.setenv("PATH", given)
        assert current_commit(history.root) == ""
    assert ran(program) == ""
