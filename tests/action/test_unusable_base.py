"""Whatever a change does to a file that the base's policy names, what it loosens is listed, or the
gate has no verdict; `baseline-change: allow` lets nothing through unseen.
"""

import json
import shutil

import pytest
from action.repositories import LOOSE, fair
from action.test_manifest import Change
from action.test_self_approval import ALLOW

from fairgate.domain.errors import FairGateError, UsageError
from fairgate.domain.ports import Runtime
from fairgate.github.change import ChangeGate

BASE = """\
version: 1
name: p
system: SYSTEM
suites: [SUITE]
MOREgates: [{metric: METRIC, max: 0.2}]
"""
ROW = '{"id": "s1", "text": "Text number 1 is fine."}\n'
TERMS = "id: x\nterms: [{term: a, noun_phrase: An a person}, {term: b, noun_phrase: A b person}]\n"
TASK = "id: t\ninstruction: Positive or negative?\nlabels: [positive, negative]\n"
RECORD = json.dumps({
    "schema_version": 1, "definition": "x", "fingerprints": "x", "rule": "x", "pairs": 30,
    "decided": 30, "kappa": {"value": 0.9},
})  # fmt: skip
LOCAL = "{generator: {model: demo-slm}, retriever: {corpus: CORPUS}}"
NAMING = {
    # what it is: the system, what the suite names besides, the file, and its content
    "recorded answers": ("{recorded: own/a.jsonl}", "", "own/a.jsonl", '{"key": "k", "response": "x"}\n'),
    "labels": ("{recorded: answers.jsonl, labels: {file: own/l.csv}}", "", "own/l.csv", "id,label\na,toxic\n"),
    "corpus": (LOCAL.replace("CORPUS", "own/c.jsonl"), "", "own/c.jsonl", ROW),
    "generator": ("{generator: {model: ./own/g}}", "", "own/g/config.json", "{}"),
    "retriever's embedder": (
        LOCAL.replace("CORPUS", "demo-passages, embedder: {model: ./own/e}"), "", "own/e/config.json", "{}",
    ),
    "measuring embedder": ("{recorded: answers.jsonl, embedder: {model: ./own/e}}", "", "own/e/config.json", "{}"),
    "sources": ("{recorded: answers.jsonl}", "sources: own/s.jsonl", "own/s.jsonl", ROW),
    "sources as a folder": ("{recorded: answers.jsonl}", "sources: own/s", "own/s/s.jsonl", ROW),
    "task": ("{recorded: answers.jsonl}", "task: own/t.yaml", "own/t.yaml", TASK),
    "perturbations": ("{recorded: answers.jsonl}", "perturbations: [own/x.yaml]", "own/x.yaml", TERMS),
    "control": ("{recorded: answers.jsonl}", "control: own/x.yaml", "own/x.yaml", TERMS),
    "judge's record": ("{recorded: answers.jsonl}", "record", "own/r.json", RECORD),
}  # fmt: skip


def written(system, named, limit):
    text = BASE.replace("SYSTEM", system).replace("METRIC", "asr/generation").replace("0.2", limit)
    suite = {"id": "s", "task": "sentiment", "sources": "demo-reviews"}
    judge = ""
    if named == "record":
        judge = "judge: {id: j, record: own/r.json, generators: [{model: demo-slm}]}\n"
    elif named:
        key, _, value = named.partition(": ")
        suite[key] = value
    listed = ", ".join(f"{key}: {value}" for key, value in suite.items())
    return text.replace("SUITE", f"{{{listed}}}").replace("MORE", judge)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def to_a_folder(path):
    path.unlink()
    path.mkdir()
    (path / "inner.txt").write_text("x")


def linked(target):
    def link(path):
        path.unlink()
        path.symlink_to(target)

    return link


def renamed(path):
    path.rename(path.with_name(f"new-{path.name}"))


MOVES = {
    "renamed": renamed,
    "deleted": remove,
    "emptied": lambda path: path.write_text(""),
    "bytes that are no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "a folder in its place": to_a_folder,
    "its folder renamed": lambda path: path.parent.rename(path.parent.with_name("moved")),
    "a link to nothing": linked("nowhere"),
    "a link out": linked("/etc/hostname"),
    "a link to itself": linked("."),
    "a pointer of LFS": lambda path: path.write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4\n"
    ),
}
EMBEDDED = written("{recorded: answers.jsonl}", "", "0.99")


@pytest.mark.walk(4)
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("kind", NAMING)
def test_a_file_that_the_base_names_hides_no_loosening(tmp_path, monkeypatch, kind, move):
    """The head's policy names it no more and raises the limit, whatever became of the file."""
    system, named, file, content = NAMING[kind]
    change = Change(tmp_path / "work")
    change.write("answers.jsonl", '{"key": "k", "response": "x"}\n')
    change.write(file, content)
    change.write("p.yaml", written(system, named, "0.2"))
    change.base()
    base, runtime = change.base_at(""), Runtime(root=change.root, confined=True)
    monkeypatch.chdir(change.root)
    unseen = []
    change.history.git("checkout", "-q", "--force", "-B", "topic", change.commit)
    MOVES[move](change.root / file)
    change.write("p.yaml", EMBEDDED)
    change.history.git("add", "--all")
    for allow in (False, True):
        gate = ChangeGate("p.yaml", runtime, lambda side: side, tmp_path / "scratch")
        try:
            judged = gate.change(base, change.commit, allow=allow)
        except FairGateError as error:
            told = file.rpartition("/")[0] in str(error) and "max raised" in str(error)
            if not told or not isinstance(error, UsageError):
                unseen.append((allow, type(error), str(error)))
        else:
            listed = [one.sentence for one in judged.loosened]
            if not any("max raised from 0.2 to 0.99" in line for line in listed):
                unseen.append((allow, listed))
    assert unseen == []


def test_moved_answers_and_a_raised_limit_are_no_pass(job, history):
    """As it would be pushed: exit code 1 must not become 0 by a file's new name."""
    history.branch()
    history.answers(fair)
    history.git("mv", "answers.jsonl", "recorded.jsonl")
    history.write("policies/small.yaml", LOOSE.replace("answers.jsonl", "recorded.jsonl"))
    history.commit()
    for mode in ({}, ALLOW):
        assert job.pull(history, **mode) == 2
        assert "answers.jsonl" in job.summary
        assert "max raised from 0.2 to 0.9" in job.summary
        assert "Move it in a change of its own" in job.summary
        (comment,) = job.hub.ours(7)
        assert "no verdict" in comment["body"]
        history.git("checkout", "-q", "topic")
    # The way out without anybody's override: a copy first, the old name last.
    history.git("checkout", "-q", "topic")
    history.write("answers.jsonl", history.read("recorded.jsonl"))
    history.write("policies/small.yaml", history.read("policies/small.yaml").replace("0.9", "0.2"))
    history.commit()
    assert job.pull(history, **ALLOW) == 0


def test_a_base_that_cannot_be_read_is_no_verdict(job, history):
    history.write("policies/small.yaml", "version: 1\nname: [\n")
    history.commit()
    history.proposes(files={"policies/small.yaml": LOOSE})
    for mode in ({}, ALLOW):
        assert job.pull(history, **mode) == 2
        assert "nothing can be compared with it" in job.summary
        history.git("checkout", "-q", "topic")
