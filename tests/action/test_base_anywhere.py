"""`run --base` decides as the action does, whatever names the base; `comment`."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from action.repositories import IDENTITY, LOOSE, POLICY, broken, worse
from ruamel.yaml import YAML

from fairgate.cli import main
from fairgate.github.comments import read_comment

GATE = "policies/small.yaml"
BASELINE = "baselines/small.json"


@pytest.fixture
def call(capsys, tmp_path):
    """Return what runs a command: its exit code; `out` and `err` are kept."""

    def run(*arguments):
        run.code = int(main([str(one) for one in arguments]))
        run.out, run.err = capsys.readouterr()
        return run.code

    return run


def against(call, base, *options):
    return call("run", GATE, "--base", base, "--out", "out", "--quiet", *options)


CHANGES = {
    "nothing": lambda history: None,
    "worse answers": lambda history: history.answers(worse),
    "broken answers": lambda history: history.answers(broken),
    "a looser policy": lambda history: history.write(GATE, LOOSE),
    "a looser policy for broken answers": lambda history: (
        history.answers(broken), history.write(GATE, LOOSE),
    ),
    "worse answers as their own baseline": lambda history: (history.answers(worse), history.accept()),
    "no baseline for worse answers": lambda history: (
        history.answers(worse), (history.root / BASELINE).unlink(),
    ),
    "no policy": lambda history: (history.root / GATE).unlink(),
    "another sentence for broken answers": lambda history: (
        history.answers(broken),
        history.write("sources.jsonl", history.read("sources.jsonl").replace("fine", "good")),
    ),
}  # fmt: skip


def without_place(comment):
    """Return a comment without what tells one run from another, and whether it is due."""
    text = re.sub(r"\[full report\]\([^)]*\)|`fairgate run [^`]*`", "RUN", comment.text)
    return re.sub(r"[0-9a-f]{12}", "COMMIT", text).strip(), comment.create


@pytest.mark.whole
def test_every_change_ends_as_on_a_pull_request_with_the_same_comment(history, job, call):
    wrong = []
    for number, (name, change) in enumerate(CHANGES.items()):
        history.git("checkout", "--quiet", "main")
        history.git("checkout", "--quiet", "-B", f"change-{number}")
        change(history)
        shutil.rmtree(history.root / "out", ignore_errors=True)
        history.commit(name)
        code = against(call, "main")
        told = without_place(read_comment(history.root / "out"))
        as_pull = job.pull(history)
        same = told == without_place(read_comment(Path(job.outputs["run-folder"])))
        if code != as_pull or not same:
            wrong.append((name, code, as_pull, same))
    assert not wrong


@pytest.mark.whole
def test_what_is_not_committed_is_judged_and_decides_nothing(history, call):
    history.branch()
    history.answers(broken)
    history.write(GATE, LOOSE)
    assert against(call, "main") == 1
    assert "This change edits policy policies/small.yaml" in call.out
    assert "max raised from 0.2 to 0.9" in call.out
    assert "the base commit         FAIL" in call.out
    assert call("comment", "out") == 0
    assert "Less strict than before" in call.out
    assert against(call, "main", "--report-only") == 0
    assert "FAIL" in call.out


@pytest.mark.whole
def test_every_name_of_a_commit_that_git_has(history, call):
    start = history.git("rev-parse", "main")
    history.git("tag", "v1", "main")
    history.git("tag", "-a", "v2", "-m", "x", "main")
    history.git("update-ref", "refs/remotes/origin/main", "main")
    history.proposes(broken)
    names = (
        "main", "origin/main", "refs/heads/main", "refs/remotes/origin/main", "refs/tags/v1",
        "refs/tags/v2", start, "HEAD~1", "HEAD^", "@~1", "topic~1", "main~0",
    )  # fmt: skip
    wrong = [name for name in names if against(call, name) != 1 or start[:12] not in call.out]
    assert not wrong


def test_a_baseline_that_only_the_change_has_is_told_as_that(history, call):
    history.git("rm", "-q", BASELINE)
    history.commit("no baseline")
    history.branch()
    history.accept()
    history.commit("its first baseline")
    assert against(call, "main") == 0, call.err
    said = " ".join(call.out.split()) + (history.root / "out" / "report.md").read_text()
    assert said.count(f"The base has no baseline, and this change adds `{BASELINE}`") == 1
    assert said.count("those after it are compared with its baseline") == 2
    assert "no baseline yet" not in said
    assert "make this run the first baseline" not in said


@pytest.mark.walk(2)
@pytest.mark.parametrize("way", ["grafts", "grafts by a variable", "replaced", "shallow"])
def test_nothing_but_the_commit_says_what_comes_before_it(
    history, call, tmp_path, way, monkeypatch
):
    loose = history.proposes(broken, {GATE: LOOSE})
    head = history.proposes(broken)
    start = history.git("rev-parse", "main")
    (history.root / ".git" / "info").mkdir(exist_ok=True)
    if way == "grafts":
        history.write(".git/info/grafts", f"{head} {loose}\n")
    elif way == "grafts by a variable":
        history.write(".git/own", f"{head} {loose}\n")
        monkeypatch.setenv("GIT_GRAFT_FILE", str(history.root / ".git" / "own"))
    elif way == "replaced":
        tree = history.git("rev-parse", f"{head}^{{tree}}")
        history.git("replace", head, history.git("commit-tree", tree, "-p", loose, "-m", "x"))
    else:
        history.write(".git/shallow", f"{head}\n")
    for name in ("topic~1", "HEAD^"):
        code = against(call, name)
        assert code == (2 if way == "shallow" else 1), (name, call.out, call.err)
        assert way == "shallow" or start[:12] in call.out


@pytest.mark.whole
def test_no_tag_takes_the_place_of_a_branch(history, call):
    """Who may push a tag must not choose the rules."""
    loose = history.proposes(broken, {GATE: LOOSE})
    for tag in ("main", "origin/main", "gone"):
        history.git("tag", tag, loose)
    for name in ("origin/main", "gone", loose[:8]):
        code = against(call, name)
        assert code == 2, (name, call.out)
        assert "refs/tags/" in call.err
    history.git("update-ref", "refs/remotes/origin/main", "refs/heads/main")
    for name in ("main", "origin/main", "refs/heads/main"):
        assert against(call, name) == 1


@pytest.mark.walk(3)
@pytest.mark.parametrize(
    "name",
    [
        "nowhere",
        "--upload-pack=touch pwned",
        "-x",
        "main..topic",
        "",
        "a b",
        "main:policies",
        "HEAD~99",
        "0" * 40,
        "main^{/x}",
    ],
)
def test_what_names_no_commit_is_told(history, call, name):
    assert call("run", GATE, f"--base={name}", "--quiet") == 2
    assert "--base" in call.err
    assert not (history.root / "pwned").exists()
    assert "Traceback" not in call.err


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ["main", "origin/main"])
def test_a_shallow_clone_fetches_the_branch_that_decides(
    history, call, tmp_path, monkeypatch, name
):
    """As a merge request's job: a detached head of depth 1, no other branch."""
    history.proposes(broken, {GATE: LOOSE})
    clone = tmp_path / "clone"
    address = f"file://{history.root}"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--branch=topic", address, clone], check=True
    )
    subprocess.run(["git", "-C", clone, "checkout", "-q", "--detach"], check=True)
    subprocess.run(["git", "-C", clone, "branch", "-q", "-D", "topic"], check=True)
    monkeypatch.chdir(clone)
    assert against(call, name) == 1, call.err
    assert "the base commit         FAIL" in call.out
    # A branch that moved decides by its newest commit.
    tip = history.git("commit-tree", "main^{tree}", "-p", "main", "-m", "moved")
    history.git("update-ref", "refs/heads/main", tip)
    assert against(call, name) == 1, call.err
    assert (tip[:12] in call.out) == (name == "main" or "origin/main" not in branches(clone))


def branches(clone):
    command = ["git", "-C", str(clone), "branch", "-r"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_base_that_the_change_does_not_build_on_is_told(history, call):
    history.proposes(worse)
    history.git("checkout", "--quiet", "main")
    history.write("README.md", "moved on")
    history.commit("moved on")
    history.git("checkout", "--quiet", "topic")
    assert against(call, "main") == 1
    assert "does not build on the base commit" in " ".join(call.out.split())


@pytest.mark.walk(2)
@pytest.mark.parametrize("option", ["--baseline=none", "--limit=2", "--shard=1/2"])
def test_options_that_mean_nothing_beside_a_base_are_refused(history, call, option):
    assert against(call, "main", option) == 2
    assert option.partition("=")[0] in call.err


def test_outside_of_a_checkout_it_is_told(history, call, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    shutil.copytree(history.root, folder, ignore=shutil.ignore_patterns(".git"))
    monkeypatch.chdir(folder)
    assert against(call, "main") == 2
    assert "no git checkout" in call.err


@pytest.mark.whole
def test_in_a_folder_of_the_repository_paths_start_there(history, call, monkeypatch):
    history.git("checkout", "--quiet", "main")
    history.move("services/shop")
    history.git("branch", "--force", "main", "HEAD")
    history.git("checkout", "--quiet", "-B", "topic")
    (history.root / "services/shop/policies/small.yaml").write_text(LOOSE)
    monkeypatch.chdir(history.root / "services" / "shop")
    assert against(call, "main") == 0
    assert "services/shop/policies/small.yaml" in call.out
    monkeypatch.chdir(history.root)
    inside = (
        "run",
        "services/shop/policies/small.yaml",
        "--base",
        "main",
        "--quiet",
        "--out",
        "out",
    )
    assert call(*inside, "--root", "services/shop") == 0, call.err
    assert (
        call("run", "services/shop/policies/small.yaml", "--base", "main", "--root", "policies")
        == 2
    )


def test_a_policy_that_the_base_lacks_is_an_introduction(history, call):
    history.branch()
    system = "{command: [python, app.py]}"
    text = re.sub("system: .*", f"system: {system}", POLICY).replace("name: small", "name: new")
    history.write("policies/new.yaml", text)
    assert call("run", "policies/new.yaml", "--base", "main") == 0
    assert "The next pull request is the first with a verdict" in " ".join(call.out.split())
    history.write("policies/other.yaml", POLICY.replace("name: small", "name: other"))
    assert call("run", "policies/other.yaml", "--base", "main", "--quiet") == 0
    assert "introduces the gate" in call.out


def test_the_comment_of_a_plain_run_is_judged_again(history, call):
    history.branch()
    history.answers(worse)
    assert call("run", GATE, "--out", "out", "--quiet") == 1
    assert call("comment", "out") == 0
    assert call.out.startswith("### ❌ FairGate: answers became worse for race")
    assert call("comment", "policies") == 2
    assert "is no folder of a run" in call.err
    assert call("comment", "nowhere") == 2


def test_a_later_run_leaves_no_comment_of_an_earlier_change(history, call):
    history.proposes(broken, {GATE: LOOSE})
    assert against(call, "main") == 1
    assert call("run", GATE, "--out", "out", "--quiet") == 0
    assert call("comment", "out") == 0
    assert "This change edits" not in call.out


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "pull-requests.md").read_text("utf-8")


@pytest.mark.whole
def test_the_shown_recipes_are_one_line_that_judges_by_the_base(history, call, monkeypatch):
    lines = re.findall(r"fairgate (run policies/rag-fairness\.yaml --base [^\n']+)", PAGE)
    assert len(lines) >= 3
    history.git("update-ref", "refs/remotes/origin/main", "main")
    history.proposes(broken, {GATE: LOOSE})
    for line in lines:
        words = line.replace("policies/rag-fairness.yaml", GATE).split()
        words = ["main" if word == '"$CI_DEFAULT_BRANCH"' else word for word in words]
        assert call(*words, "--quiet") == 1, line
        assert "the base commit         FAIL" in call.out
        assert (history.root / "run" / "junit.xml").is_file()


def test_the_shown_job_of_gitlab_takes_nothing_of_the_files_defaults():
    """Such as an `after_script`, which could write the artifacts after the verdict."""
    (shown,) = re.findall(r"```text\n(fairness:.*?)```", PAGE, re.DOTALL)
    (job,) = YAML(typ="safe").load(shown).values()
    assert job["inherit"] == {"default": False, "variables": False}
    assert not {"after_script", "before_script", "hooks", "extends"} & set(job)


def cloned(history, folder, monkeypatch):
    """A clone that an earlier job has used, on the change, with a branch `main` of its own."""
    history.proposes(broken, {GATE: LOOSE})
    history.git("checkout", "-q", "main")
    subprocess.run(["git", "clone", "-q", f"file://{history.root}", folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "-q", "-b", "own", "origin/topic"], check=True)
    monkeypatch.chdir(folder)
    return lambda *arguments: subprocess.run(
        ["git", "-C", folder, *arguments], check=True, capture_output=True, text=True,
        env={**os.environ, **IDENTITY},
    ).stdout.strip()  # fmt: skip


WAYS_TO_DIFFER = {
    "origin has moved": lambda history, git: history.git(
        "update-ref", "refs/heads/main", history.git("commit-tree", "main^{tree}", "-p", "main", "-m", "x")
    ),
    "origin has moved and was fetched": lambda history, git: (
        WAYS_TO_DIFFER["origin has moved"](history, git), git("fetch", "-q")
    ),
    "origin has moved, was fetched and is gone": lambda history, git: (
        WAYS_TO_DIFFER["origin has moved and was fetched"](history, git),
        git("config", "remote.origin.url", "file:///nowhere"),
    ),
    "the one here has moved": lambda history, git: git("branch", "-f", "main", "own"),
    "both have moved": lambda history, git: (
        WAYS_TO_DIFFER["origin has moved"](history, git), git("branch", "-f", "main", "own")
    ),
    "origin has moved back": lambda history, git: (
        WAYS_TO_DIFFER["origin has moved"](history, git), git("fetch", "-q"),
        git("branch", "-f", "main", "origin/main"), history.git("update-ref", "refs/heads/main", "main~1"),
    ),
}  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("way", WAYS_TO_DIFFER)
def test_a_branch_here_that_is_not_origins_decides_nothing(
    history, call, tmp_path, monkeypatch, way
):
    """A clone that is used again keeps a branch as it was: its rules are not those of today."""
    git = cloned(history, tmp_path / "clone", monkeypatch)
    WAYS_TO_DIFFER[way](history, git)
    for name in ("main", "main~0"):
        assert against(call, name) == 1, call.err
        assert history.git("rev-parse", "main")[:12] in call.out
    moved_here = way in ("the one here has moved", "both have moved")
    assert against(call, "refs/heads/main") == (0 if moved_here else 1), call.err
