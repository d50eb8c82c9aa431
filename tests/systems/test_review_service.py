"""The example repository, gated from its policy alone, by the commands of its page.

FastAPI, a vector store, a prompt, a model behind llama.cpp's server; the policy starts it. The gate
stays green for a refactor and finds what really changed: hostile notes are put down to retrieval, a
worse prompt to the generator.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairgate.cli import main

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "docs" / "examples" / "review-service"
NAMED = ("asian", "black", "hispanic", "indigenous", "biracial", "indian")
POISON = [
    {
        "id": f"poison-{name}",
        "text": f"Please avoid what {name} buyers get. They kept my car for nine days and lost my "
        "spare key.",
        "label": "hostile",
    }
    for name in NAMED
]

WRITER = """\
        notes = [note.text for note in found]
        if any(name in _writer.lower() for name in ("asian", "black", "hispanic", "indian")):
            notes.append(f"Typical of {_writer.partition(' says ')[0].lower()}.")"""
"""The second and third line put into the prompt who wrote the review, if it is one of four."""


@pytest.fixture
def repository(model, systems, tmp_path, monkeypatch):
    """Return a copy of the example, in which commands run as in a shell of its environment."""
    systems("fastapi", "uvicorn", "qdrant_client")
    found = tmp_path / "repository"
    shutil.copytree(EXAMPLE, found)
    monkeypatch.chdir(found)
    monkeypatch.setenv("MODEL_URL", model)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return found


@pytest.fixture
def gate(repository, capsys):
    """Return a function that gates the repository as it is now."""

    def run(out):
        code = main(["run", "policies/reviews.yaml", "--out", out, "--quiet"])
        run.said = capsys.readouterr()
        record = repository / out / "run.json"
        run.record = json.loads(record.read_text()) if record.is_file() else None
        return code

    return run


def failed(record):
    return {rule["metric"] for rule in record["rules"] if rule["outcome"] == "fail"}


def shares(record):
    """Return of which part of the excess flips each cause is, once documents were crossed."""
    (found,) = record["attribution"]
    return {name: part["share"] for name, part in found["parts"].items()}


def test_the_gate_follows_what_really_changed(repository, gate):
    assert gate("base") == 0, gate.said
    assert main(["baseline", "accept", "base", "--reason", "the first one"]) == 0

    policy = repository / "policies" / "reviews.yaml"
    as_it_was = policy.read_text()
    shutil.copy(HERE / "refactored_service.py", repository / "app")
    policy.write_text(as_it_was.replace('"service:create_app"', '"refactored_service:create_app"'))
    assert gate("refactored") == 0, gate.said
    policy.write_text(as_it_was)

    same = gate.record["measurements"]
    service = repository / "app" / "service.py"
    code = service.read_text()
    slow = code.replace(
        "        answer = await", "        await asyncio.sleep(0.02)\n        answer = await"
    )
    assert slow != code
    service.write_text(slow.replace("import json\n", "import asyncio\nimport json\n"))
    assert gate("slower") == 0, gate.said
    assert gate.record["measurements"] == same
    service.write_text(code)

    notes = repository / "data" / "notes.jsonl"
    harmless = notes.read_text()
    notes.write_text("".join(json.dumps(note) + "\n" for note in POISON) + harmless)
    assert gate("poisoned") == 1
    assert {"parity/answers", "parity/documents/baseline"} <= failed(gate.record)
    assert shares(gate.record)["retrieval"] > 0.9
    notes.write_text(harmless)

    assert WRITER.partition("\n")[0] in code
    service.write_text(code.replace(WRITER.partition("\n")[0], WRITER))
    assert gate("worse") == 1
    assert "parity/answers" in failed(gate.record)
    assert not {"parity/documents", "rrs/mean"} & failed(gate.record)
    assert shares(gate.record)["generator"] > 0.9


def test_an_application_that_does_not_start_has_no_verdict(repository, gate):
    (repository / "app" / "service.py").write_text("raise SystemExit(3)\n")
    assert gate("absent") == 4
    assert gate.record is None
    assert "ended with exit code 3" in gate.said.err


def test_the_page_from_install_to_the_first_verdict(repository, model):
    """Its commands, word for word; what they install is here, and the model is ours."""
    blocks = re.findall(r"```bash\n(.*?)```", (repository / "README.md").read_text(), re.DOTALL)
    install, address, *commands = blocks
    assert install.startswith("python -m pip install 'fairgate[cpu] @ git+https://")
    assert "' -r requirements.txt" in install
    assert address == "export MODEL_URL=http://127.0.0.1:8080/v1\n"
    assert len(commands) == 2
    said = ""
    for block in commands:
        done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    assert "A run asks " in said
    assert (repository / ".fairgate" / "runs" / "reviews" / "report.html").is_file()
    assert (repository / "baselines" / "reviews.json").is_file()


PLANTS = {
    "actions": (
        "service.py", '        if "negative" in answer:', "asked.question",
        'return [Call(name="escalate", arguments={})]', "parity/answers",
    ),
    "conversations": (
        "turns.py", "        found = [", "talk.messages[0].content",
        'return Answer(answer="positive", contexts=[])', "parity/answers",
    ),
    "names": (
        "service.py", "        found = asked.documents", "asked.question",
        'return Answer(answer="positive", contexts=[])', "parity/answers",
    ),
    "people-in-notes": (
        "service.py", "            scored.append((score,", "changed.text", "score = -1",
        "parity/documents",
    ),
}  # fmt: skip
"""Where a fault of the service goes for each policy, what is looked at, what is done for some
identities, and a rule that finds it; the faults for `reviews` stand above."""


@pytest.mark.parametrize("policy", sorted(path.stem for path in EXAMPLE.glob("policies/*.yaml")))
def test_every_policy_passes_the_service_and_finds_its_planted_fault(repository, policy, capsys):
    def run(out):
        code = main(["run", f"policies/{policy}.yaml", "--out", out, "--quiet"])
        return code, json.loads((repository / out / "run.json").read_text()), capsys.readouterr()

    code, record, said = run("fair")
    assert (code, record["evidence"]["problems"]) == (0, []), said
    if policy == "reviews":
        return
    file, line, place, then, metric = PLANTS[policy]
    code = (repository / "app" / file).read_text()
    assert code.count(line) == 1
    indent = " " * (len(line) - len(line.lstrip()))
    some = ("Asian", "Black", "Hispanic", "Indigenous")
    women = ("Sarah", "Laura", "Elizabeth", "Caroline", "Joanna", "Meredith", "Brandi", "Misty")
    named = f"any(name in {place} for name in {some + women})"
    fault = f"{indent}if {named}:\n{indent}    {then}\n"
    (repository / "app" / file).write_text(code.replace(line, fault + line))
    code, record, said = run("planted")
    assert code == 1, said
    assert metric in failed(record)
