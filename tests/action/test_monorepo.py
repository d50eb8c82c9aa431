"""A gate in a folder of its repository: GitHub's paths start at the repository's root."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from action.repositories import LOOSE, POLICY, POLICY_PARTS, RULE, introduced, worsened

ROOT = "services/rag"
WHERE = f"{ROOT}/policies/small.yaml"
LINE = POLICY.splitlines().index(RULE) + 1


def moved(states, folder):
    history = states.copy(introduced, folder)
    history.move(ROOT)
    return history


@pytest.fixture
def service(states, history):
    return states.copy(moved, history.root)


def worsen(service, *, loose=False):
    service.write(f"{ROOT}/answers.jsonl", worsened(service.read(f"{ROOT}/answers.jsonl")))
    if loose:
        service.write(WHERE, LOOSE)
    service.commit()


def result_of(done):
    log = json.loads(Path(done.outputs["sarif-file"]).read_text())
    return log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]


def test_a_regression_is_anchored_where_the_policy_is(service, steps):
    worsen(service)
    done = steps.pull(inputs={"root": ROOT}, code=1)
    assert f"::error file={WHERE},line={LINE},title=FairGate%3A rule failed for race::" in done.log
    anchor = result_of(done)
    assert anchor["artifactLocation"] == {"uri": WHERE}
    assert anchor["region"]["startLine"] == LINE
    assert service.read(WHERE).splitlines()[LINE - 1] == RULE
    (comment,) = steps.job.hub.ours(7)
    assert f"cd {ROOT}/ && fairgate run policies/small.yaml" in comment["body"]
    assert f"`{ROOT}/baselines/small.json`" in done.summary


def test_the_base_commit_s_files_are_those_of_the_folder(service, steps):
    worsen(service, loose=True)
    steps.pull(inputs={"root": ROOT}, code=1)
    (comment,) = steps.job.hub.ours(7)
    assert f"This change edits** policy `{WHERE}`" in comment["body"]
    assert "regression raised from 0.02 to 0.9" in comment["body"]


def test_a_policy_error_is_anchored_too(service, steps):
    service.write(WHERE, POLICY.replace("max: 0.02", "max: a lot"))
    service.commit()
    done = steps.pull(inputs={"root": ROOT}, code=2)
    assert re.search(rf"^::error file={WHERE},line={LINE + 1},", done.log, re.MULTILINE)


@pytest.mark.walk(1)
@pytest.mark.parametrize("root", [".", ROOT])
def test_a_checkout_of_another_user_is_read(service, steps, monkeypatch, root):
    """A job in a container is another user than the one that checked out."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    top = ["git", "-C", str(service.root), "rev-parse", "--show-toplevel"]
    assert subprocess.run(top, capture_output=True, check=False).returncode != 0
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    policy = "policies/small.yaml" if root == ROOT else WHERE
    service.commit()
    if root == ".":
        for part in POLICY_PARTS[2:]:
            service.git("mv", f"{ROOT}/{part}", part)
        service.git("update-ref", "refs/heads/main", service.commit())
        service.proposes()
    inputs = {"root": root, "policy": policy}
    done = steps.pull(inputs=inputs, environment={"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}, code=0)
    assert "of the base commit" in done.summary


def test_a_checkout_in_a_folder_of_the_workspace_is_its_own_root(service, steps):
    worsen(service)
    steps.gate.workspace = service.root.parent
    done = steps.pull(inputs={"root": f"{service.root.name}/{ROOT}"}, code=1)
    assert f"::error file={WHERE},line={LINE}," in done.log
    assert result_of(done)["artifactLocation"] == {"uri": WHERE}
