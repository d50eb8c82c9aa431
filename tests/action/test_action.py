"""The real action.yml, step by step: verdicts, hostile checkouts, its environment from the lock."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from action import payloads
from action.fake_github import TOKEN
from action.repositories import worse
from action.step_runner import StepRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "action"
POISON = "import os, pathlib\npathlib.Path({!r}).write_text(__name__)\n"


@pytest.fixture
def runner(history, tmp_path):
    """Return a runner of our action on the repository's checkout."""
    found = StepRunner(ROOT, history.root, tmp_path / "temp")
    found.token = TOKEN
    return found


def pull(job, history, runner, **inputs):
    """Run the action on the branch that is checked out, with this interpreter's packages."""
    base = history.git("rev-parse", "main")
    head = history.merge()
    event = job.environment("pull_request", payloads.on_pull_request(7, head, base))
    event = {k: v for k, v in event.items() if not k.startswith("FAIRGATE_")}
    chosen = {"policy": "policies/small.yaml", "python": sys.executable, "device": "cpu"}
    return runner.run({**chosen, **inputs}, event)


def test_a_green_and_a_red_pull_request(job, history, runner, capsys):
    history.branch()
    history.commit()
    done = pull(job, history, runner)
    assert done.code == 0, done.log
    assert done.outputs["outcome"] == "pass"
    history.branch("second")
    history.answers(worse, capsys)
    history.commit()
    done = pull(job, history, runner)
    assert done.code == 1, done.log
    assert done.outputs["outcome"] == "fail"
    assert done.outputs["exit-code"] == "1"
    assert json.loads(Path(done.outputs["report-json"]).read_text())["outcome"] == "fail"
    assert done.outputs["comment-url"] == job.hub.ours(7)[0]["html_url"]
    assert "fairness regressed" in done.summary
    assert TOKEN not in done.log


def test_nothing_in_the_checkout_takes_part(job, history, runner, tmp_path):
    trace = tmp_path / "pwned"
    history.branch()
    poison = POISON.format(str(trace))
    for name in (
        "yaml.py", "sitecustomize.py", "usercustomize.py", "json.py", "click.py", "numpy.py",
        "ruamel/yaml/__init__.py", "jinja2.py", "pydantic.py", "policies/json.py", "encodings.py",
    ):  # fmt: skip
        history.write(name, poison)
    history.write("fairgate/__init__.py", poison)
    history.write("fairgate/cli/__init__.py", poison)
    hostile = "[global]\nindex-url = http://127.0.0.1:9/simple\nrequire-virtualenv = true\n"
    for name in ("pip.conf", ".pip/pip.conf", ".config/pip/pip.conf", "pip.ini"):
        history.write(name, hostile)
    history.write("uv.toml", '[[index]]\nurl = "http://127.0.0.1:9/simple"\n')
    history.write("pyproject.toml", '[tool.uv]\nindex-url = "http://127.0.0.1:9/simple"\n')
    history.write(".env", f"PYTHONPATH=.\nPIP_INDEX_URL=http://127.0.0.1:9\nBASH_ENV={trace}\n")
    history.write("bash", f"#!/bin/sh\ntouch {trace}\n")
    history.write("git", f"#!/bin/sh\ntouch {trace}\n")
    history.commit()
    done = pull(job, history, runner)
    assert done.code == 0, done.log
    assert not trace.exists()


def test_a_python_path_from_an_earlier_step_does_not_count(
    job, history, runner, tmp_path, monkeypatch
):
    trace = tmp_path / "pwned"
    monkeypatch.setenv("PYTHONPATH", str(history.root))
    monkeypatch.setenv("PYTHONSTARTUP", str(history.root / "yaml.py"))
    history.branch()
    history.write("click.py", POISON.format(str(trace)))
    history.write("sitecustomize.py", POISON.format(str(trace)))
    history.commit()
    done = pull(job, history, runner)
    assert done.code == 0, done.log
    assert not trace.exists()


@pytest.mark.parametrize(
    "value", ['"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "x\ntouch pwned", "${{ x }}"]
)
def test_an_input_is_never_code(job, history, runner, value):
    history.branch()
    history.commit()
    done = pull(job, history, runner, policy=value)
    assert done.code == 2
    assert done.outputs["outcome"] == "error"
    assert not (history.root / "pwned").exists()
    done = pull(job, history, runner, device=value)
    assert done.code == 2
    assert done.outputs["exit-code"] == "2"
    assert not (history.root / "pwned").exists()


def test_cuda_on_a_machine_without_is_an_error_that_says_auto(job, history, runner, monkeypatch):
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    history.branch()
    history.commit()
    done = pull(job, history, runner, device="cuda")
    assert done.code == 4
    assert "auto" in done.log
    assert pull(job, history, runner, device="auto").code == 0


def test_a_missing_interpreter_is_named(job, history, runner):
    history.branch()
    history.commit()
    done = pull(job, history, runner, python="/nowhere/python")
    assert done.code == 2
    assert "/nowhere/python" in done.log


def test_an_environment_inside_the_checkout_is_refused(job, history, runner):
    history.branch()
    history.commit()
    runner.temp = history.root / "temp"
    done = pull(job, history, runner, python="")
    assert done.code == 4
    assert "pull request can write" in done.log


def test_the_gate_refuses_to_start_without_isolation():
    done = subprocess.run(
        [sys.executable, str(FOLDER / "gate.py")], capture_output=True, check=False
    )
    assert done.returncode == 2


def locked(name):
    """Return name → version of what a lock installs here; every entry must have a hash."""
    found = {}
    for block in re.split(r"\n(?=[a-z0-9])", (FOLDER / f"requirements-{name}.txt").read_text()):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            requirement = Requirement(lines[0].rstrip("\\ "))
            assert any("--hash=sha256:" in line for line in lines), requirement
            if requirement.marker is not None and not requirement.marker.evaluate():
                continue
            found[canonicalize_name(requirement.name)] = next(iter(requirement.specifier)).version
    return found


@pytest.mark.parametrize("extra", ["cpu", "cuda"])
def test_the_lock_covers_the_projects_dependencies(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = locked(extra)
    wanted = [*project["dependencies"], *project["optional-dependencies"][extra]]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{requirement}: run .github/action/lock"
        assert Version(versions[name]) in requirement.specifier


@pytest.mark.parametrize("extra", ["cpu", "cuda"])
def test_the_lock_names_no_host(extra):
    text = (FOLDER / f"requirements-{extra}.txt").read_text()
    assert "//" not in text
    assert "index" not in text


MODELS = """\
version: 1
name: models
system:
  retriever: {corpus: corpus.jsonl, embedder: minilm, top_k: 4}
  generator: {model: demo-slm, decoding: greedy}
suites:
  - {id: sentiment, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [age]}
gates:
  - {metric: asr/generation/controlled, max: 1}
  - {metric: rrs/mean, max: 3}
"""


@pytest.mark.slow
def test_the_environment_is_made_from_the_lock_and_used_again(job, history, runner):
    history.branch()
    history.write("uv.toml", '[[index]]\nurl = "http://127.0.0.1:9/simple"\n')
    history.write("pip.conf", "[global]\nindex-url = http://127.0.0.1:9/simple\n")
    history.write("yaml.py", "raise SystemExit(99)\n")
    history.write("sitecustomize.py", "raise SystemExit(99)\n")
    history.commit()
    done = pull(job, history, runner, python="")
    assert done.code == 0, done.log
    (environment,) = (runner.temp / "fairgate" / "environments").iterdir()
    assert (environment / "complete").is_file()
    listed = subprocess.run(
        [environment / "bin" / "python", "-I", "-m", "pip", "list", "--format=json"],
        capture_output=True, check=True,
    )  # fmt: skip
    installed = {
        canonicalize_name(row["name"]): row["version"] for row in json.loads(listed.stdout)
    }
    versions = locked("cpu")
    assert {
        name: v for name, v in installed.items() if name in versions
    }.items() <= versions.items()
    assert set(installed) <= {*versions, "pip", "setuptools"}
    before = hashlib.sha256((environment / "pyvenv.cfg").read_bytes()).hexdigest()
    done = pull(job, history, runner, python="")
    assert done.code == 0, done.log
    assert "is there" in done.log
    assert hashlib.sha256((environment / "pyvenv.cfg").read_bytes()).hexdigest() == before
    history.git("checkout", "-q", "main")
    labels = ("positive", "negative")
    rows = [
        {"id": str(i), "text": f"The film number {i} was fine.", "label": labels[i % 2]}
        for i in range(20)
    ]
    history.write("corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    history.write("policies/models.yaml", MODELS)
    event = job.environment("push", payloads.on_push("0" * 40, history.commit()))
    event = {k: v for k, v in event.items() if not k.startswith("FAIRGATE_")}
    done = runner.run({"policy": "policies/models.yaml", "device": "cpu"}, event)
    assert done.code == 0, done.log
    assert done.outputs["outcome"] == "pass"
