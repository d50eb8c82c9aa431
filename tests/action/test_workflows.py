"""Our own workflows and actions: pinned, without rights they do not need, without injections."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = [ROOT / "action.yml", ROOT / "comment" / "action.yml", ROOT / "merge" / "action.yml"]


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


def test_a_pin_says_which_version_it_is_and_is_the_same_everywhere():
    pins = {}
    texts = [*WORKFLOWS, ROOT / "fairgate" / "features" / "init" / "starter_files.py"]
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


def test_the_documented_outputs_are_there():
    assert set(load(ROOT / "action.yml")["outputs"]) == {
        "outcome", "exit-code", "violations", "regressions", "value", "base", "results", "run-folder",
        "badge-file", "report-md", "report-html", "report-json", "sarif-file", "junit-file",
        "cache-hit", "comment-url", "shard-folder", "answers-hit", "answers-commit", "answers-file",
    }  # fmt: skip


def test_zizmor_finds_nothing():
    done = subprocess.run(
        [tool("zizmor"), "--offline", "--strict-collection", "--quiet", "."],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


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
