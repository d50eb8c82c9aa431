"""The note on a GitLab merge request: one for a policy, kept up to date, and nothing in it acts."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from action.repositories import POLICY, broken, fair
from fakes import gitlab
from fakes.serving import served

from fairgate.cli import main
from fairgate.features.changes.gitlab import as_note

GATE = "policies/small.yaml"


@pytest.fixture
def lab():
    with served(gitlab.GitLab()) as server:
        yield server


@pytest.fixture
def pipeline(history, lab, capsys, monkeypatch, tmp_path):
    """Return what runs the recipe's line as a merge request's job: its exit code."""

    def run(policy=GATE, base="main", **more):
        with monkeypatch.context() as patch:
            for name, text in gitlab.environment(lab, tmp_path, **more).items():
                patch.setenv(name, text)
            code = int(main(["run", policy, "--base", base, "--out", "out", "--quiet"]))
        run.out, run.err = capsys.readouterr()
        assert gitlab.TOKEN not in run.out + run.err
        return code

    return run


def test_a_note_is_made_once_and_follows_the_state(history, lab, pipeline):
    history.proposes(broken)
    assert pipeline() == 1
    (body,) = lab.bodies()
    assert body.startswith('<!-- fairgate:report:v1 key="policies/small.yaml" head="')
    assert "FairGate: " in body
    assert "❌" in body
    number = next(iter(lab.notes))
    history.answers(fair)
    assert pipeline(CI_PIPELINE_ID="901") == 0
    assert list(lab.notes) == [number]
    assert "❌" not in lab.bodies()[0]
    assert pipeline(CI_PIPELINE_ID="902", base="nowhere") == 2
    assert list(lab.notes) == [number]
    assert "no verdict (exit code 2)" in lab.bodies()[0]
    assert "nowhere" in lab.bodies()[0]


def test_a_green_change_without_news_makes_no_note(history, lab, pipeline):
    history.proposes(fair)
    assert pipeline() == 0
    assert lab.bodies() == []


@pytest.mark.whole
def test_without_a_token_or_a_merge_request_nothing_is_asked(history, lab, pipeline):
    history.proposes(broken)
    for missing in (
        "FAIRGATE_GITLAB_TOKEN",
        "CI_MERGE_REQUEST_IID",
        "CI_MERGE_REQUEST_PROJECT_ID",
        "CI_PIPELINE_ID",
    ):
        assert pipeline(**{missing: ""}) == 1
    assert lab.requests == []


@pytest.mark.whole
def test_several_policies_have_a_note_each(history, lab, pipeline):
    history.branch()
    history.write("policies/other.yaml", POLICY.replace("name: small", "name: other"))
    history.answers(broken)
    history.commit()
    assert pipeline() == 1
    assert pipeline("policies/other.yaml") == 1
    assert pipeline() == 1
    assert len(lab.notes) == 2


@pytest.mark.whole
def test_copied_and_forged_markers_neither_take_nor_keep_the_note(history, lab, pipeline):
    history.proposes(broken)
    marker = '<!-- fairgate:report:v1 key="policies/small.yaml" head="aa" run="999999.1" -->\n'
    stranger = lab.note(f"{marker}all is well", author=5)
    frozen = lab.note(f"{marker}all is well")
    assert pipeline() == 1
    assert lab.notes[stranger["id"]]["body"].endswith("all is well")
    assert "❌" in lab.notes[frozen["id"]]["body"], (
        "no pipeline of the merge request has that number"
    )
    lab.pipelines.add(999_999)
    newer = f"{marker}newer"
    lab.notes[frozen["id"]]["body"] = newer
    assert pipeline() == 1
    assert lab.notes[frozen["id"]]["body"] == newer
    again = lab.note(lab.notes[frozen["id"]]["body"].replace("999999", "1"))
    lab.pipelines.discard(999_999)
    assert pipeline() == 1
    assert again["id"] not in lab.notes, "a second one is taken away"
    assert len(lab.notes) == 2


@pytest.mark.walk(2)
@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_that_gitlab_refuses_is_a_warning(history, lab, pipeline, monkeypatch, status):
    async def at_once(_seconds):
        pass

    monkeypatch.setattr("fairgate.io.http_client._sleep", at_once)
    history.proposes(broken)
    lab.refuses = status
    assert pipeline() == 1
    assert "the verdict stands" in pipeline.err
    assert "FAIL" in pipeline.out


@pytest.mark.walk(2)
@pytest.mark.parametrize("address", ["http://example.org/api/v4", "nonsense", ""])
def test_the_token_goes_to_no_address_without_encryption(history, lab, pipeline, address):
    history.proposes(broken)
    assert pipeline(CI_API_V4_URL=address) == 1
    assert "there is no note" in pipeline.err
    assert lab.requests == []


SPY = """\
import os, pathlib, sys

def above(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])

process, seen = os.getpid(), ""
while process > 1:
    try:
        variables = pathlib.Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        variables = ""
    for variable in variables.split(chr(0)):
        name, _, value = variable.partition("=")
        if name == "FAIRGATE_GITLAB_TOKEN":
            file = pathlib.Path(value)
            seen += f"{value} {file.read_text() if file.exists() else ''}"
    process = above(process)
pathlib.Path(sys.argv[1]).write_text(f"seen: {seen}")
sys.exit(1)
"""


@pytest.mark.walk(1)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize("handed", ["as a file", "as it is"])
def test_a_program_under_test_finds_the_token_nowhere_above_it(history, lab, tmp_path, handed):
    """Its parents' environment is open to it: there is the job's shell, with all variables."""
    seen = tmp_path / "seen"
    history.git("checkout", "--quiet", "main")
    run = f"[{sys.executable}, spy.py, {seen}]"
    history.write(GATE, re.sub("system: .*", f"system: {{command: {{run: {run}}}}}", POLICY))
    history.write("spy.py", SPY)
    history.commit("served")
    history.branch()
    more = gitlab.environment(lab, tmp_path)
    if handed == "as it is":
        more["FAIRGATE_GITLAB_TOKEN"] = gitlab.TOKEN
    line = [sys.executable, "-I", "-m", "fairgate", "run", GATE, "--base", "main", "--out", "out"]
    script = f"{shlex.join(line)}; exit $?"
    done = subprocess.run(
        ["bash", "-c", script],
        check=False, env={**os.environ, **more}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == (2 if handed == "as it is" else 4), done.stderr
    assert seen.exists() == (handed == "as a file")
    assert not seen.exists() or gitlab.TOKEN not in seen.read_text()
    assert gitlab.TOKEN not in done.stdout + done.stderr
    assert handed != "as it is" or "of the type File" in done.stderr
    assert handed == "as it is" or "no verdict" in lab.bodies()[0]


NO_FILES = {
    "a folder": lambda path: path.mkdir(),
    "a link": lambda path: path.symlink_to(path.parent / "elsewhere"),
    "nothing": lambda path: None,
    "an empty file": lambda path: path.touch(),
    "no text": lambda path: path.write_bytes(b"\xff\xfe"),
    "several lines": lambda path: path.write_text("a\nb"),
    "a large file": lambda path: path.write_text("a" * 10_000),
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("way", NO_FILES)
def test_what_is_no_file_of_a_token_is_told(history, lab, pipeline, tmp_path, way):
    (tmp_path / "elsewhere").write_text("glpat-elsewhere")
    history.proposes(broken)
    file = tmp_path / "token"
    NO_FILES[way](file)
    assert pipeline(FAIRGATE_GITLAB_TOKEN=str(file)) == 2
    assert "FAIRGATE_GITLAB_TOKEN" in pipeline.err
    assert "glpat" not in pipeline.err
    assert lab.requests == []


def test_the_file_of_the_token_is_gone_once_it_is_read(history, lab, pipeline, tmp_path):
    history.proposes(broken)
    for missing in ({}, {"CI_MERGE_REQUEST_IID": ""}):
        assert pipeline(**missing) == 1
        assert list((tmp_path / "shop.tmp").iterdir()) == []


@pytest.mark.parametrize(
    "before", ["", "> ", "  ", "| a |\n", "```text\n", "```\n", "<details>\n\n"]
)
def test_no_line_is_a_quick_action_wherever_it_stands(lab, before):
    wrong = []
    for command in ("/approve", "/merge", "/assign @me", "/close", "/label ~x"):
        lab.commands.clear()
        lab.act_on(as_note(f"{before}{command}\n{before}  {command}", ""))
        if lab.commands:
            wrong.append((before, command, lab.commands))
    assert not wrong


def test_a_note_refers_to_nothing():
    """What it names is told so, in the name of the token's owner."""
    signs = (
        "!12",
        "o/p!12",
        "&12",
        "o&12",
        "~bug",
        '~"a b"',
        "~7",
        "%v1",
        '%"v 1"',
        "#12",
        "@all",
        "$7",
    )
    signs += ("[issue:12]", "[vulnerability:1]", "[merge_request:o/p/1]")
    alive = [sign for sign in signs if "\u200b" not in as_note(f"a {sign} b", "https://g.org/j")]
    assert not alive
    kept = "5&nbsp;% of 3, ~ 4 ! [run](https://g.org/j)"
    assert as_note(kept, "https://g.org/j") == kept
