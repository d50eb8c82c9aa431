"""The note on a GitLab merge request: one for a policy, kept up to date, and nothing in it acts."""

import os
import re
import sys

import pytest
from action.repositories import POLICY, broken, fair
from fakes import gitlab
from fakes.serving import served
from golden import hostile_texts

from fairgate.cli import main
from fairgate.features.changes.gitlab import as_note

GATE = "policies/small.yaml"
HOSTILE = sorted({text[:2000] for text in (*hostile_texts.HOSTILE, *hostile_texts.HUGE)})


@pytest.fixture
def lab():
    with served(gitlab.GitLab()) as server:
        yield server


@pytest.fixture
def pipeline(history, lab, capsys, monkeypatch):
    """Return what runs the recipe's line as a merge request's job: its exit code."""

    def run(policy=GATE, base="main", **more):
        with monkeypatch.context() as patch:
            for name, text in gitlab.environment(lab, **more).items():
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


def test_several_policies_have_a_note_each(history, lab, pipeline):
    history.branch()
    history.write("policies/other.yaml", POLICY.replace("name: small", "name: other"))
    history.answers(broken)
    history.commit()
    assert pipeline() == 1
    assert pipeline("policies/other.yaml") == 1
    assert pipeline() == 1
    assert len(lab.notes) == 2


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


@pytest.mark.parametrize("address", ["http://example.org/api/v4", "nonsense", ""])
def test_the_token_goes_to_no_address_without_encryption(history, lab, pipeline, address):
    history.proposes(broken)
    assert pipeline(CI_API_V4_URL=address) == 1
    assert "there is no note" in pipeline.err
    assert lab.requests == []


def test_what_a_run_starts_is_not_given_the_token(history, lab, pipeline, tmp_path):
    seen = tmp_path / "seen"
    app = (
        f"import os, pathlib, sys\npathlib.Path({str(seen)!r}).write_text(repr(dict(os.environ)))\n"
    )
    history.git("checkout", "--quiet", "main")
    system = (
        f"system: {{command: {{run: [{sys.executable}, app.py], env: [FAIRGATE_GITLAB_TOKEN]}}}}"
    )
    history.write(GATE, re.sub("system: .*", system, POLICY))
    history.write("app.py", app)
    history.commit("served")
    history.branch()
    assert pipeline() != 0
    assert not seen.exists() or gitlab.TOKEN not in seen.read_text()


def test_a_note_of_hostile_names_does_nothing(history, lab, pipeline):
    names = (
        "/approve",
        "/close",
        "@everyone",
        "!1",
        "~bug",
        "%1",
        "&1",
        "$1",
        "<!-- x -->",
        "[x](http://e.org)",
    )
    history.git("checkout", "--quiet", "main")
    rows = "".join(
        f'{{"id": "s{n}", "text": "{name} Text number {n} is fine. {name} x"}}\n'
        for n, name in enumerate(names)
    )
    history.write("sources.jsonl", rows)
    history.answers(fair)
    history.accept()
    history.commit("hostile sources")
    history.branch()
    history.answers(broken)
    pipeline()
    assert lab.commands == []
    (body,) = lab.bodies()
    assert is_inert(body), body


def is_inert(body):
    """Return whether nothing outside of code could be acted on; the marker is ours."""
    _, _, text = body.partition("\n")
    plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.DOTALL)
    reference = r'(?<![\w&\[])[@!~$#](?=[\w"])|%(?=[\w"])'
    element = r"<(?!/?(?:details|summary|sub|br|code|wbr|b)\b)"
    live = re.search(rf"{reference}|^[ >]*/\w|{element}", plain, re.MULTILINE)
    return live is None


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


def test_hostile_texts_are_inert_in_a_note():
    wrong = [
        text
        for text in HOSTILE
        if re.search(r"^[ >]*/[a-z]", as_note(text, "https://g.org/j"), re.MULTILINE)
    ]
    assert not wrong
    assert os.environ.get("FAIRGATE_GITLAB_TOKEN") is None
