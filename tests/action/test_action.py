"""The real action.yml, step by step: verdicts, hostile checkouts, inputs that are no code."""

import json
import os
from pathlib import Path

import pytest
from action.fake_github import TOKEN
from action.repositories import worse

POISON = "import os, pathlib\npathlib.Path({!r}).write_text(__name__)\n"


def test_a_green_and_a_red_pull_request(history, real_steps, capsys):
    history.branch()
    history.commit()
    done = real_steps.pull()
    assert done.code == 0, done.log
    assert done.outputs["outcome"] == "pass"
    history.branch("second")
    history.answers(worse, capsys)
    history.commit()
    done = real_steps.pull()
    assert done.code == 1, done.log
    assert done.outputs["outcome"] == "fail"
    assert done.outputs["exit-code"] == "1"
    assert json.loads(Path(done.outputs["report-json"]).read_text())["outcome"] == "fail"
    assert done.outputs["comment-url"] == real_steps.job.hub.ours(7)[0]["html_url"]
    assert "fairness regressed" in done.summary
    assert TOKEN not in done.log


def test_nothing_in_the_checkout_takes_part(history, real_steps, tmp_path):
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
    for name in ("bash", "git", "python3", "nvidia-smi", "cd"):
        history.write(name, f"#!/bin/sh\necho $0 $@ >> {trace}\n")
        (history.root / name).chmod(0o755)
    history.commit()
    # An empty entry of the PATH is the current folder.
    done = real_steps.pull(environment={"PATH": f"{os.pathsep}{os.environ['PATH']}"})
    assert done.code == 0, done.log
    assert not trace.exists(), trace.read_text()


def test_a_python_path_from_an_earlier_step_does_not_count(
    history, real_steps, tmp_path, monkeypatch
):
    trace = tmp_path / "pwned"
    monkeypatch.setenv("PYTHONPATH", str(history.root))
    monkeypatch.setenv("PYTHONSTARTUP", str(history.root / "yaml.py"))
    history.branch()
    history.write("click.py", POISON.format(str(trace)))
    history.write("sitecustomize.py", POISON.format(str(trace)))
    history.commit()
    done = real_steps.pull()
    assert done.code == 0, done.log
    assert not trace.exists(), trace.read_text()


@pytest.mark.parametrize(
    "value", ['"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "x\ntouch pwned", "${{ x }}"]
)
def test_an_input_is_never_code(history, real_steps, value):
    history.branch()
    history.commit()
    done = real_steps.pull(inputs={"policy": value})
    assert done.code == 2
    assert done.outputs["outcome"] == "error"
    assert not (history.root / "pwned").exists()
    done = real_steps.pull(inputs={"device": value})
    assert done.code == 2
    assert done.outputs["exit-code"] == "2"
    assert not (history.root / "pwned").exists()
