"""The real action.yml: verdicts, hostile checkouts, inputs that are no code, a GitHub that fails."""

import json
import os
from pathlib import Path

import pytest
from action import payloads
from action.fake_github import TOKEN
from action.repositories import POLICY, worse
from action.step_runner import by_shell

LISTING = "/issues/7/comments"


def test_without_a_baseline_bounds_decide(history, steps):
    history.git("rm", "-q", "baselines/small.json")
    history.commit()
    history.proposes(worse)
    done = steps.pull(code=0)
    assert "There is no baseline yet" in done.summary
    history.git("checkout", "-q", "main")
    history.write("policies/small.yaml", POLICY.replace("max: 0.2", "max: 0.1"))
    history.commit()
    history.git("checkout", "-q", "topic")
    done = steps.pull(code=1)
    assert done.outputs["violations"] == "1"
    assert done.outputs["regressions"] == "0"


def test_a_damaged_baseline_is_exit_3_and_an_error_annotation(history, steps):
    history.proposes(files={"baselines/small.json": "{"})
    done = steps.pull(code=3)
    assert done.outputs["outcome"] == "error"
    assert "::error title=FairGate%3A no verdict::" in done.log
    assert "small.json" in done.log


def test_the_merge_queue_is_gated_and_not_commented(red, steps):
    red.merge()
    head, base = red.git("rev-parse", "HEAD", "main").split()
    done = steps.on("merge_group", payloads.on_merge_group(7, head, base), code=1)
    assert "answers became worse for race" in done.summary
    assert done.outputs["comment-url"] == ""
    assert steps.job.hub.requests == []


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("status", "headers", "times"),
    [
        (401, {}, 9), (403, {}, 1), (404, {}, 1), (422, {}, 1), (429, {"Retry-After": "3600"}, 1),
        (500, {}, 9), (502, {}, 9),
    ],
)  # fmt: skip
def test_an_api_that_fails_is_an_error_of_its_job_and_the_verdict_stands(
    red, steps, status, headers, times
):
    steps.job.hub.fail("POST", LISTING, status, headers=headers, times=times)
    done = steps.pull(code=1)
    assert done.outputs["outcome"] == "fail"
    assert done.outputs["comment-url"] == ""
    assert done.commented.code == 4
    assert "answers became worse for race" in done.summary
    assert str(status) in done.commented.log
    assert "concurrently" not in done.commented.log


def test_report_only_is_green_and_says_fail(red, steps):
    done = steps.pull(inputs={"report-only": "true", "report-dir": "out/report"}, code=0)
    assert done.outputs["outcome"] == "fail"
    assert done.outputs["exit-code"] == "1"
    assert "report-only" in done.log
    assert "FAIL" in steps.job.hub.ours(7)[0]["body"]
    assert Path(done.outputs["report-html"]) == red.root / "out" / "report" / "report.html"


POISON = "import os, pathlib\npathlib.Path({!r}).write_text(__name__)\n"


def test_a_red_pull_request(red, real_steps):
    real_steps.comment.execute = by_shell
    done = real_steps.pull(code=1)
    assert (done.outputs["outcome"], done.outputs["exit-code"]) == ("fail", "1")
    assert json.loads(Path(done.outputs["report-json"]).read_text())["outcome"] == "fail"
    assert done.outputs["comment-url"] == real_steps.job.hub.ours(7)[0]["html_url"]
    assert "answers became worse for race" in done.summary
    assert TOKEN not in done.log


def test_nothing_in_the_checkout_takes_part(history, real_steps, tmp_path, monkeypatch):
    """Nor does a path to it that an earlier step has set."""
    trace = tmp_path / "pwned"
    monkeypatch.setenv("PYTHONPATH", str(history.root))
    monkeypatch.setenv("PYTHONSTARTUP", str(history.root / "yaml.py"))
    history.branch()
    for name in (
        "yaml.py", "sitecustomize.py", "usercustomize.py", "json.py", "click.py", "numpy.py",
        "ruamel/yaml/__init__.py", "jinja2.py", "pydantic.py", "policies/json.py", "encodings.py",
        "fairgate/__init__.py", "fairgate/cli/__init__.py",
    ):  # fmt: skip
        history.write(name, POISON.format(str(trace)))
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
    real_steps.comment.execute = by_shell
    # An empty entry of the PATH is the current folder.
    done = real_steps.pull(environment={"PATH": f"{os.pathsep}{os.environ['PATH']}"}, code=0)
    assert not trace.exists(), trace.read_text()
    assert done.outputs["outcome"] == "pass"


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", ["policy", "device"])
@pytest.mark.parametrize(
    "value", ['"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "x\ntouch pwned", "${{ x }}"]
)
def test_an_input_is_never_code(history, real_steps, value, name):
    history.proposes()
    done = real_steps.pull(inputs={name: value}, code=2)
    assert (done.outputs["outcome"], done.outputs["exit-code"]) == ("error", "2")
    assert not (history.root / "pwned").exists()
