"""A matrix of gate steps and the merge action: the verdict of one step, from artifacts nobody trusts."""

import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from action.fake_github import READ_ONLY
from action.repositories import POLICY, worse
from fakes.shards import rewritten

from fairgate.cli import main

FILES = ("report-json", "report-md", "sarif-file")


class Matrix:
    """Jobs that ask a part each, the artifacts that they leave, and the job that decides.

    What is `kept` of a part that was asked for an equal event serves the next test.
    """

    def __init__(self, steps, kept, of=3):
        self.steps, self.kept, self.of, self.inputs = steps, kept, of, {}
        self.folder = steps.merge.temp / "fairgate-shards"

    def ask(self, payload, *numbers):
        """Ask parts, all if none is named, and download their artifacts for the last job."""
        found = []
        for number in numbers or range(1, self.of + 1):
            inputs = {**self.inputs, "shard": f"{number}/{self.of}"}
            known = json.dumps([payload, inputs, self.steps.gate.token])
            if known not in self.kept.asked:
                done = self.steps.again(payload, inputs=inputs, code=0)
                assert done.outputs["comment-url"] == ""
                folder = self.kept.folder / str(len(self.kept.asked))
                shutil.copytree(done.outputs["shard-folder"], folder)
                self.kept.asked[known] = done, folder
            done, folder = self.kept.asked[known]
            shutil.copytree(folder, self.folder / f"fairgate-part-{number}")
            found.append(done)
        return found

    def decide(self, payload, code=None, **inputs):
        inputs = {**self.inputs, **inputs}
        return self.steps.again(payload, self.steps.merge, code=code, inputs=inputs)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return SimpleNamespace(folder=tmp_path_factory.mktemp("asked"), asked={})


@pytest.fixture
def matrix(steps, kept):
    return Matrix(steps, kept)


@pytest.fixture
def red(red, steps):
    return steps.merged()


def texts(done):
    folder = str(Path(done.outputs["report-json"]).parent)
    return {name: Path(done.outputs[name]).read_text().replace(folder, "") for name in FILES}


def test_a_matrix_decides_reports_and_comments_as_one_step_does(matrix, steps, red):
    one = steps.again(red)
    (comment,) = steps.job.hub.ours(7)
    body = comment["body"]
    assert one.code == 1, one.log
    steps.job.hub.comments.clear()
    asked = matrix.ask(red)
    assert {done.outputs["outcome"] for done in asked} == {"part"}
    assert "part 3 of 3, not a verdict" in asked[-1].summary
    assert steps.job.hub.of(7) == [], "a part says nothing to the pull request"
    done = matrix.decide(red, code=1)
    assert texts(done) == texts(one)
    bodies = (steps.job.hub.ours(7)[0]["body"], body)
    assert len({re.sub(r"https?://\S+", "", text) for text in bodies}) == 1
    same = ("outcome", "exit-code", "violations", "regressions")
    assert [done.outputs[name] for name in same] == [one.outputs[name] for name in same]


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("text", "asked", "said"),
    [
        (POLICY.replace("[race, gender]", "[race]"), 2, "This change edits"),
        (
            POLICY.replace("regression: 0.02", "regression: 0.9"),
            1,
            "regression raised from 0.02 to 0.9",
        ),
    ],
)
def test_a_change_is_judged_on_both_sides_and_asked_again_only_where_it_asks_other_questions(
    history, matrix, steps, text, asked, said
):
    history.proposes(files={"policies/small.yaml": text})
    payload = steps.merged()
    matrix.ask(payload)
    assert len(list((matrix.folder / "fairgate-part-1").iterdir())) == asked
    one, done = steps.again(payload), matrix.decide(payload)
    assert (done.code, done.summary, texts(done)) == (one.code, one.summary, texts(one)), done.log
    assert said in done.summary


@pytest.mark.whole
def test_several_policies_are_asked_and_judged_together(history, matrix, steps):
    other = POLICY.replace("name: small", "name: other").replace("race, gender", "race")
    history.write("policies/other.yaml", other)
    history.accept(policy="policies/other.yaml")
    history.commit("a second policy")
    history.proposes()
    payload = steps.merged()
    matrix.inputs = {"policy": "policies/small.yaml\npolicies/other.yaml"}
    matrix.ask(payload)
    done = matrix.decide(payload, code=0)
    assert set(json.loads(done.outputs["results"])) == {"small", "other"}
    matrix.inputs = {}
    done = matrix.decide(payload, code=2)
    assert "parts belong to nothing that is judged here" in done.log


def test_a_missing_part_is_no_verdict_and_replaces_an_earlier_one(matrix, steps, red):
    steps.again(red)
    matrix.ask(red, 1, 3)
    done = matrix.decide(red, code=2)
    assert done.outputs["outcome"] == "error"
    assert "1 of 3 parts are missing: 2" in done.log
    (comment,) = steps.job.hub.ours(7)
    assert "1 of 3 parts are missing" in comment["body"]
    assert "answers became worse for race" not in comment["body"]


def saying(old, new):
    """Return what replaces words in the facts of a part, with hashes that fit."""
    return lambda folder: rewritten(folder, "shard.json", lambda text: text.replace(old, new))


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        *(({"shard": value}, "shard is") for value in ("0/3", "4/3", "$(touch pwned)", "1/3\n2/3")),
        ({"shard": "1/3", "policy": "policies/none.yaml"}, "there is no policy"),
        ({"shard": "1/3", "answers-artifact": "fairgate-answers"},
         "answers-artifact and shard are given together"),
    ],
)  # fmt: skip
def test_what_is_no_part_is_refused_and_leaves_the_comment_to_the_job_that_decides(
    steps, red, history, inputs, said
):
    done = steps.again(red, inputs=inputs, code=2)
    assert said in done.log
    assert done.outputs["outcome"] == "error"
    assert steps.job.hub.of(7) == []
    assert not (history.root / "pwned").exists()


def test_what_the_job_that_decides_cannot_take_is_refused(matrix, steps, red, history):
    done = matrix.decide(red, code=2)
    assert "no part of the run was downloaded" in done.log
    matrix.ask(red)
    shutil.copytree(matrix.folder, history.root / "shards")
    link = steps.merge.temp / "link"
    link.symlink_to(history.root / "shards")
    for inputs, said in (
        ({"shards": "shards"}, "lies in the checkout"),
        ({"shards": str(link)}, "lies in the checkout"),
        ({"attribution": "perhaps"}, "expected `ask` or `skip`"),
    ):
        assert said in matrix.decide(red, code=2, **inputs).log


EVIL = "::error::x ##[error]y @octo/admins <img src=x> \x1b[2J"


HOSTILE = {
    "of another policy": saying('"policy": "small"', f'"policy": {json.dumps(EVIL)}'),
    "edited": lambda folder: (folder / "shard.json").write_text(EVIL),
    "too large": lambda folder: os.truncate(folder / "shard-answers.jsonl", 5 << 30),
    "a link": lambda folder: (
        (folder / "shard-answers.jsonl").unlink(),
        (folder / "shard-answers.jsonl").symlink_to("/etc/passwd"),
    ),
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_part_is_no_verdict_and_says_nothing_of_its_own(matrix, steps, red, kind):
    matrix.ask(red)
    (folder,) = (matrix.folder / "fairgate-part-2").iterdir()
    HOSTILE[kind](folder)
    done = matrix.decide(red, comment="always")
    assert done.code == (2 if kind == "of another policy" else 4), done.log
    (comment,) = steps.job.hub.ours(7)
    for shown in (done.log, done.summary, comment["body"]):
        live = ("root:", "\x1b", "<img", "::error::x", "@octo/admins")
        assert not [text for text in live if text in shown]


def test_a_forks_own_run_decides_without_a_comment(matrix, steps, history):
    history.proposes(worse)
    payload = steps.merged(repo="stranger/shop")
    steps.gate.token = steps.merge.token = READ_ONLY
    matrix.ask(payload)
    done = matrix.decide(payload, code=1)
    assert done.outputs["comment-url"] == ""
    assert steps.job.hub.of(7) == []
    assert Path(done.outputs["report-json"]).is_file(), "for `org/fairgate/comment`"


def changed(matrix, name, value, parts=(1, 2, 3)):
    for number in parts:
        for path in (matrix.folder / f"fairgate-part-{number}").rglob("shard.json"):
            manifest = json.loads(path.read_text())
            manifest["identity"][name] = value
            text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
            rewritten(path.parent, "shard.json", lambda _, text=text: text)


def test_every_other_identity_is_refused(history, matrix, steps):
    history.proposes(files={"notes.md": "good"})
    payload = steps.merged()
    matrix.ask(payload)
    matrix.decide(payload, code=0)
    before = matrix.folder.with_name("kept")
    shutil.copytree(matrix.folder, before)
    first, *others = (json.loads(one.read_text())["identity"] for one in before.rglob("shard.json"))
    assert all(first == one for one in others)
    assert set(first) == {"repository", "workflow run", "head commit", "base commit"}
    assert all(first.values())
    ways = [("0" * 40, (1, 2, 3)), ("", (1, 2, 3)), ("0" * 40, (2,)), ("", (2,))]
    for name, (value, parts) in zip(first, ways, strict=True):
        shutil.rmtree(matrix.folder)
        shutil.copytree(before, matrix.folder)
        changed(matrix, name, value, parts)
        done = matrix.decide(payload, code=2)
        assert name in done.log or "are missing" in done.log


def test_parts_of_ci_are_merged_elsewhere_if_they_are_of_one_run(history, matrix, steps, capsys):
    history.proposes(files={"notes.md": "good"})
    matrix.ask(steps.merged())
    merge = ["merge", "policies/small.yaml", str(matrix.folder), "--out", "../out", "--quiet"]
    assert main(merge) == 0, capsys.readouterr().err
    changed(matrix, "head commit", "0" * 40, (3,))
    assert main(merge) == 2
    assert "head commit" in capsys.readouterr().err
