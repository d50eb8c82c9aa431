"""The release, rehearsed: release.yml's own steps on a bare repository and a local index; nothing is uploaded."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import release
from action.step_runner import by_shell
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = YAML(typ="safe").load((ROOT / ".github/workflows/release.yml").read_text())
GH = """#!/bin/sh
echo "$@" >> "$GH_LOG"
case "$*" in "release create"*) cp dist/notes.md "$GH_LOG.notes"; ls dist/packages >> "$GH_LOG";; esac
"""


def git(folder, *command):
    names = {
        f"GIT_{who}_{what}": "a@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-C", folder, *command],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def run_steps(job, folder, environment, *, without=()):
    """Run what a job's steps run, as a runner does, in a folder."""
    for number, step in enumerate(WORKFLOW["jobs"][job]["steps"]):
        if "run" in step and step.get("name") not in without:
            script = folder.parent / f"{job}-{number}.sh"
            script.write_text(step["run"])
            code, log = by_shell(script, folder, environment)
            assert code == 0, f"{step.get('name')}: {log}"


@pytest.fixture
def rehearsal(tmp_path):
    """A clone whose owner was set and whose changelog was dated, its bare repository, and an environment."""
    bare, clone, programs = (
        tmp_path / "acme" / "fairgate",
        tmp_path / "clone",
        tmp_path / "programs",
    )
    git(ROOT, "clone", "-q", "--no-hardlinks", str(ROOT), str(clone))
    release.set_owner("acme", clone)
    release.date_changelog("2026-12-01", clone)
    git(clone, "commit", "-qam", "release")
    git(ROOT, "clone", "-q", "--bare", str(clone), str(bare))
    program(programs, "gh", GH)
    program(programs, "make", '#!/bin/sh\necho "make $@" >> "$GH_LOG"\n')
    program(programs, "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    environment = {
        **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "GH_LOG": str(tmp_path / "gh.log"),
        "RUNNER_TEMP": str(tmp_path / "runner"), "GITHUB_SERVER_URL": f"file://{tmp_path}", "GITHUB_REPOSITORY": "acme/fairgate",
        "PYTHONPATH": "",
    }  # fmt: skip
    (tmp_path / "runner").mkdir()
    return clone, bare, environment


def tagged(rehearsal, tag):
    """Push a tag, as a person does; return the environment of its run."""
    clone, bare, environment = rehearsal
    git(clone, "tag", tag)
    git(clone, "push", "-q", str(bare), tag)
    return {**environment, "GITHUB_REF_NAME": tag, "GITHUB_SHA": git(clone, "rev-parse", tag)}


@pytest.mark.whole
def test_a_tag_releases_its_version_and_moves_the_tags_of_minor_and_major(rehearsal, tmp_path):
    clone, bare, _ = rehearsal
    environment = tagged(rehearsal, "v0.1.0")
    (clone / "dist" / "packages").mkdir(parents=True)
    run_steps(
        "build", clone, environment, without=("Build", "The wheel runs outside of the checkout")
    )
    for name in ("fairgate-0.1.0.tar.gz", "fairgate-0.1.0-py3-none-any.whl"):
        (clone / "dist" / "packages" / name).touch()
    job = tmp_path / "job"
    shutil.copytree(clone / "dist", job / "dist")
    run_steps("release", job, environment)
    log = (tmp_path / "gh.log").read_text()
    assert (
        log.index("make test")
        < log.index("release create v0.1.0 --draft --verify-tag")
        < log.index("release edit v0.1.0 --draft=false")
    )
    assert "fairgate-0.1.0-py3-none-any.whl" in log
    assert "a GitHub Action and a command line" in (tmp_path / "gh.log.notes").read_text()
    commit = environment["GITHUB_SHA"]
    assert {git(bare, "rev-parse", tag) for tag in ("v0.1.0", "v0.1", "v0")} == {commit}
    git(clone, "commit", "-q", "--allow-empty", "-m", "next")
    later = tagged(rehearsal, "v0.1.1")
    shutil.rmtree(job / "tags")
    run_steps("release", job, later)
    assert [git(bare, "rev-parse", tag) for tag in ("v0.1.0", "v0.1", "v0")] == [
        commit,
        later["GITHUB_SHA"],
        later["GITHUB_SHA"],
    ]


@pytest.mark.whole
def test_a_tag_of_another_version_releases_nothing(rehearsal):
    environment = tagged(rehearsal, "v0.2.0")
    with pytest.raises(AssertionError, match="The tag is the version"):
        run_steps("build", rehearsal[0], environment)


@pytest.mark.whole
def test_without_notes_nothing_is_released(rehearsal):
    clone, _, _ = rehearsal
    changelog = clone / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## [0.1.0]", "## [0.0.9]"))
    with pytest.raises(SystemExit, match=r"expected a section `## \[0.1.0\]"):
        release.notes(clone)
