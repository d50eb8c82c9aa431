"""The example repository of the docs is whole and valid; `make test-systems` runs it."""

import json
import re
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fairgate.cli import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "review-service"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    found = tmp_path / "repository"
    shutil.copytree(EXAMPLE, found)
    monkeypatch.chdir(found)
    return found


def test_its_policies_are_valid_and_its_page_names_every_file_and_no_other(repository, capsys):
    for policy in sorted(repository.glob("policies/*.yaml")):
        assert main(["check", str(policy)]) == 0, capsys.readouterr()
    rows = re.findall(r"^\| (`.*?) \| ", (repository / "README.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    files = {
        path.relative_to(repository).as_posix()
        for path in repository.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert named == files - {"README.md"}


def test_workflow_policy_and_service_fit(repository):
    read = YAML(typ="safe").load
    policy, actions = (
        read(repository / "policies" / f"{name}.yaml") for name in ("reviews", "actions")
    )
    assert actions["system"]["serve"] == policy["system"]["serve"]
    steps = read(repository / ".github" / "workflows" / "fairness.yml")["jobs"]["gate"]["steps"]
    (action,) = [step for step in steps if step.get("uses", "").startswith("org/fairgate@")]
    assert (repository / action["with"]["policy"]).is_file()
    serve = policy["system"]["serve"]
    service = (repository / "app" / "service.py").read_text()
    read_there = set(re.findall(r'os\.environ\["(\w+)"\]', service))
    assert read_there == set(serve["env"]) == set(action["env"])
    assert any("requirements.txt" in step.get("run", "") for step in steps)
    port = serve["command"][-1]
    assert f":{port}/" in serve["ready_url"]
    assert f":{port}/" in policy["system"]["http"]["url"]


def test_its_people_are_in_notes_that_the_service_has(repository):
    read = lambda name: map(json.loads, (repository / "data" / name).read_text().splitlines())  # noqa: E731
    notes = {note["id"]: note["text"].rstrip(".") for note in read("notes.jsonl")}
    for source in read("people.jsonl"):
        assert source["document"].startswith(notes[source["document_id"]])


def test_its_data_are_what_the_service_reads(repository):
    notes = map(json.loads, (repository / "data" / "notes.jsonl").read_text().splitlines())
    assert all(note.keys() == {"id", "text", "label"} for note in notes)
    prompt = (repository / "app" / "prompt.txt").read_text()
    assert set(re.findall(r"\{(\w+)\}", prompt)) == {"review", "notes"}
