"""Workflows and actions, ours and those we show: pinned, without rights they do not need."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from action.shown_workflows import shown_workflows
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = [ROOT / name / "action.yml" for name in ("", "comment", "merge")]


def load(path):
    return YAML(typ="safe").load(path.read_text())


def tool(name):
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed")


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_rights_but_those_of_its_jobs(path):
    workflow = load(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job
        assert set(job["permissions"].values()) <= {"read", "write"}
    for step in steps(workflow):
        uses = step.get("uses", "./")
        assert uses == "./" or re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", uses)
        assert "${{" not in step.get("run", "")
        if "actions/checkout@" in uses:
            assert step["with"]["persist-credentials"] is False


def every_workflow():
    """Return the text of each workflow of ours and each that users are shown, by its name."""
    ours = {path.name: path.read_text(encoding="utf-8") for path in WORKFLOWS}
    return {**ours, **dict(shown_workflows())}


WRITERS = {
    "org/fairgate/comment": set(),
    "actions/deploy-pages": set(),
    "actions/attest-build-provenance": {"actions/download-artifact"},
    "pypa/gh-action-pypi-publish": {"actions/download-artifact"},
}
"""Actions whose job may have a token that writes, with the actions that may stand beside them."""


def writing_jobs(texts):
    """Yield the jobs that may write, or that are given what they were not to have."""
    for name, text in texts.items():
        workflow = YAML(typ="safe").load(text)
        for job_name, job in workflow["jobs"].items():
            rights = job.get("permissions", workflow["permissions"])
            if rights != "read-all" and (isinstance(rights, str) or "write" in rights.values()):
                yield name, job_name, job, workflow


def test_no_job_that_runs_files_of_a_pull_request_may_write():
    """What may write runs one of our actions alone, and checks nothing out."""
    wrong, count = [], 0
    for name, job_name, job, workflow in writing_jobs(every_workflow()):
        count += 1
        uses = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        (writer, *others) = [one for one in uses if one in WRITERS] or [""]
        beside = set(uses) - {writer}
        is_own = writer and not others and beside <= WRITERS[writer]
        # What starts at a tag runs no file of anybody's: it takes what was built, and has a person's word.
        triggers = workflow[True] if True in workflow else workflow["on"]
        releases = triggers == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}} and job.get(
            "environment"
        )
        if releases and beside == {"actions/download-artifact"} and not writer:
            continue
        if not is_own or any("run" in step for step in job["steps"]):
            wrong.append((name, job_name, uses))
    assert wrong == []
    assert count >= 5


def test_a_gate_s_job_gets_no_secret_and_its_comment_comes_from_its_artifact():
    """In every shown workflow; what the system needs are variables that its policy names."""
    for name, text in shown_workflows():
        jobs = YAML(typ="safe").load(text)["jobs"]
        for job in jobs.values():
            gates = [
                s
                for s in job.get("steps", [])
                if re.match("org/fairgate(/merge)?@", s.get("uses", ""))
            ]
            assert not gates or "secrets." not in str(job), name
        for job in jobs.values():
            for step in job.get("steps", []):
                if not step.get("uses", "").startswith("org/fairgate/comment@"):
                    continue
                artifact = step["with"]["artifact"]
                if "needs" in job:
                    kept = jobs[job["needs"]]["steps"]
                    names = {
                        s["with"]["name"] for s in kept if "upload-artifact" in s.get("uses", "")
                    }
                    assert artifact in names, name
                    assert "!cancelled()" in job["if"], name


def test_a_pin_says_which_version_it_is_and_is_the_same_everywhere():
    pins = {}
    texts = [*WORKFLOWS, ROOT / "fairgate" / "features" / "init" / "templates" / "workflow.yml.j2"]
    texts += sorted((ROOT / "docs").rglob("*.md"))
    for path in texts:
        for name, sha, version in re.findall(
            r"uses: ([\w./-]+)@([0-9a-f]{40})(?: # (v[\d.]+))?", path.read_text()
        ):
            assert version, f"{path}: {name}"
            pins.setdefault(name, set()).add((sha, version))
    assert pins
    assert all(len(found) == 1 for found in pins.values()), pins


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_an_action_nests_none_and_takes_inputs_by_environment(path):
    action = load(path)
    for step in action["runs"]["steps"]:
        assert "uses" not in step
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        assert " -I " in step["run"]
    used = {
        name
        for step in action["runs"]["steps"]
        for value in step["env"].values()
        for name in re.findall(r"inputs\.([\w-]+)", value)
    }
    assert used == set(action["inputs"])


def test_zizmor_finds_nothing():
    done = subprocess.run(
        [tool("zizmor"), "--offline", "--strict-collection", "--quiet", "."],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-actions", ACTIONS),
        ("vendor.dependabot", [ROOT / ".github" / "dependabot.yml"]),
    ],
)
def test_schemas_accept(schema, files):
    command = [tool("check-jsonschema"), "--builtin-schema", schema, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


COMMANDS = {
    "zizmor": ["--offline", "--strict-collection", "--quiet", "."],
    "check-jsonschema": ["--builtin-schema", "vendor.github-workflows"],
}


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / ".github" / "workflows"
    found.mkdir(parents=True)
    for name, text in shown_workflows():
        (found / name).write_text(text.replace("@v0", f"@{'a' * 40}"), encoding="utf-8")
    return found


def _accepted(program, folder):
    files = sorted(folder.iterdir()) if program == "check-jsonschema" else []
    command = [tool(program), *COMMANDS[program], *files]
    done = subprocess.run(
        command, cwd=folder.parents[1], capture_output=True, text=True, check=False
    )
    return done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program", COMMANDS)
def test_shown_workflows_are_accepted(program, folder):
    accepted, said = _accepted(program, folder)
    assert accepted, said
