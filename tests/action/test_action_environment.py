"""The environment of the action: which lock, which interpreter, where, and nothing else's."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from action import payloads
from action.conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

FOLDER = ROOT / ".github" / "action"


@pytest.fixture
def prepare():
    spec = importlib.util.spec_from_file_location("prepare", FOLDER / "prepare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def driver(folder, monkeypatch, script):
    folder.mkdir()
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


NO_GPU = "echo 'NVIDIA-SMI has failed'; exit 9"
A_GPU = "echo 580.159.04"
TWO_GPUS = "echo 580.159.04; echo 610.12"
NEWER_GPU = "echo 610.12"
NO_PROGRAM = "exit 127"
OLD_GPU = "echo 550.54.15"
ONE_OLD_GPU = "echo 580.159.04; echo 535.183.01"
NO_DEVICES = "echo 'No devices were found'"
MISMATCH = "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18"


CHOICES = [
    ("cuda", A_GPU, "cuda"), ("auto", A_GPU, "cuda"), ("cpu", A_GPU, "cpu"),
    ("cuda", NO_GPU, "cpu"), ("auto", NO_GPU, "cpu"), ("auto", TWO_GPUS, "cuda"),
    *((asked, NEWER_GPU, "cuda") for asked in ("cuda", "auto")),
    *((asked, NO_PROGRAM, "cpu") for asked in ("cuda", "auto")),
    *((asked, script, "cpu") for asked in ("cuda", "auto")
      for script in (OLD_GPU, ONE_OLD_GPU, NO_DEVICES, MISMATCH)),
]  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES, ids=" ".join)
def test_the_lock_that_is_installed_is_the_device_s(prepare, tmp_path, monkeypatch, capsys, choice):
    device, script, chosen = choice
    driver(tmp_path / "driver", monkeypatch, script)
    installed = []

    def install(base, folder, lock, cache):
        folder.mkdir(parents=True)
        installed.append(lock.name)

    monkeypatch.setattr(prepare, "install", install)
    monkeypatch.setenv("FAIRGATE_DEVICE", device)
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temp"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.delenv("RUNNER_ENVIRONMENT", raising=False)
    assert prepare.main() == 0
    assert installed == [f"requirements-{chosen}.txt"]
    assert f"device={chosen}\n" in (tmp_path / "output").read_text()
    told = capsys.readouterr().out
    is_old, falls_back = script in {OLD_GPU, ONE_OLD_GPU}, device == "cuda" and chosen == "cpu"
    assert ("old driver::The NVIDIA driver is 5" in told) == is_old
    assert ("nvidia-smi lists no GPU" in told) == (falls_back and not is_old)


def test_a_missing_interpreter_is_named(history, steps):
    history.proposes()
    done = steps.pull(inputs={"python": "/nowhere/python"}, code=2)
    assert "/nowhere/python" in done.log


def test_an_environment_inside_the_checkout_is_refused(history, steps):
    history.proposes()
    steps.gate.temp = history.root / "temp"
    done = steps.pull(inputs={"python": ""}, code=4)
    assert "pull request can write" in done.log


def test_the_gate_refuses_to_start_without_isolation():
    command = [sys.executable, str(FOLDER / "gate.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "`python -I`" in done.stdout
    command.insert(1, "-I")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.whole
def test_only_the_package_itself_comes_from_the_action_s_folder(tmp_path):
    (tmp_path / ".github" / "action").mkdir(parents=True)
    gate = tmp_path / ".github" / "action" / "gate.py"
    gate.write_text((FOLDER / "gate.py").read_text())
    (tmp_path / "fairgate").symlink_to(ROOT / "fairgate")
    for name in ("click", "pydantic", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    command = [sys.executable, "-I", str(gate), "run", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_steers_pip_or_python_is_not_passed_on(prepare, monkeypatch):
    names = ("PIP_CONFIG_FILE", "PIP_INDEX_URL", "UV_INDEX_URL", "PYTHONPATH", "VIRTUAL_ENV")
    for name in names:
        monkeypatch.setenv(name, "/hostile")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org")
    script = "import os; print(sorted(os.environ), os.getcwd())"
    said = prepare.run([sys.executable, "-c", script], "ask")
    assert not [name for name in names if name in said]
    assert "'HTTPS_PROXY'" in said
    assert said.rstrip().endswith(" /")


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
def test_the_lock_covers_the_projects_dependencies_and_names_no_host(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = locked(extra)
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras[extra]]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{requirement}: run .github/action/lock"
        assert Version(versions[name]) in requirement.specifier
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
  - {parity: answers, max: 0.99}
  - {metric: rrs/mean, max: 2.9}
constant_answers: allow # two sources
"""


@pytest.mark.slow
def test_the_environment_is_made_from_the_lock_and_used_again(history, real_steps):
    history.proposes(files={
        "uv.toml": '[[index]]\nurl = "http://127.0.0.1:9/simple"\n',
        "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/simple\n",
        **dict.fromkeys(["yaml.py", "sitecustomize.py"], "raise SystemExit(99)\n"),
    })  # fmt: skip
    done = real_steps.pull(inputs={"python": ""}, code=0)
    (environment,) = (real_steps.gate.temp / "fairgate" / "environments").iterdir()
    assert (environment / "complete").is_file()
    pip = [environment / "bin" / "python", "-I", "-m", "pip", "list", "--format=json"]
    listed = json.loads(subprocess.run(pip, capture_output=True, check=True).stdout)
    installed = {canonicalize_name(row["name"]): row["version"] for row in listed}
    versions = locked("cpu")
    assert {n: v for n, v in installed.items() if n in versions}.items() <= versions.items()
    assert set(installed) <= {*versions, "pip", "setuptools"}
    before = hashlib.sha256((environment / "pyvenv.cfg").read_bytes()).hexdigest()
    done = real_steps.pull(inputs={"python": ""}, code=0)
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
    event = payloads.on_push("0" * 40, history.commit())
    done = real_steps.on(
        "push", event, inputs={"policy": "policies/models.yaml", "python": ""}, code=0
    )
    assert done.outputs["outcome"] == "pass"


def test_a_windows_runner_is_told_at_once(prepare, monkeypatch, capsys):
    monkeypatch.setattr(prepare.os, "name", "nt")
    code = prepare.main()
    monkeypatch.undo()
    assert code == 2
    assert "::error title=FairGate%3A not prepared::Windows runners" in capsys.readouterr().out


def wheel(folder, value):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fairgate_test_parcel-1.0-py3-none-any.whl"
    info = "fairgate_test_parcel-1.0.dist-info"
    about = "Metadata-Version: 2.1\nName: fairgate-test-parcel\nVersion: 1.0\n"
    kind = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("fairgate_test_parcel.py", f"VALUE = {value!r}\n")
        for name, text in (("METADATA", about), ("WHEEL", kind), ("RECORD", "")):
            file.writestr(f"{info}/{name}", text)
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.whole
def test_a_package_in_the_cache_counts_only_by_the_lock_s_hash(prepare, tmp_path, monkeypatch):
    good, digest = wheel(tmp_path / "index", "good")
    lock = tmp_path / "requirements-cpu.txt"
    lock.write_text(f"fairgate-test-parcel==1.0 --hash=sha256:{digest}\n")
    cache, fetched, real = tmp_path / "packages", [], prepare.run
    empty = tmp_path / "empty"
    real([sys.executable, "-I", "-m", "venv", str(empty)], "make a virtual environment")

    def run(command, what):
        if "venv" in command:
            return shutil.copytree(empty, command[-1], symlinks=True)
        if "download" not in command:
            return real(command, what)
        fetched.append(what)
        shutil.copy(good, cache)
        return ""

    monkeypatch.setattr(prepare, "run", run)

    def installed(name):
        hit = prepare.install(sys.executable, tmp_path / name, lock, cache)
        python = tmp_path / name / "bin" / "python"
        code = "import fairgate_test_parcel as p; print(p.VALUE)"
        return hit, real([str(python), "-I", "-c", code], "ask").strip()

    assert installed("first") == (False, "good")
    assert installed("second") == (True, "good")
    wheel(cache, "from a pull request")
    assert installed("third") == (False, "good")
    assert len(fetched) == 2


def test_a_package_cache_in_the_checkout_is_refused(prepare, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "work"))
    monkeypatch.delenv("FAIRGATE_PACKAGE_CACHE", raising=False)
    assert prepare.package_cache() is None
    monkeypatch.setenv("FAIRGATE_PACKAGE_CACHE", str(tmp_path / "temp"))
    assert prepare.package_cache() == tmp_path / "temp"
    for inside in (str(tmp_path / "work" / "cache"), "cache", str(tmp_path / "temp/../work/c")):
        monkeypatch.setenv("FAIRGATE_PACKAGE_CACHE", inside)
        with pytest.raises(prepare.PrepareError, match="lies in the checkout") as stop:
            prepare.package_cache()
        assert stop.value.code == 2
