"""Labels on a pull request: the base's count, and whatever the head has in their place does not."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from action.repositories import worse

from fairgate.cli import main

LABELS = "labels/small.jsonl"
CASES = [f"s{number}#race/{term}" for number in range(10) for term in ("asian", "black")]
MANY = 2


def labelled(history, verdict, cases):
    """Return the file of somebody's word on cases of the checked-out answers."""
    with contextlib.chdir(history.root):
        main(["run", "policies/small.yaml", "--out", "out", "--quiet"])
        for case in cases:
            told = ["--verdict", verdict, "--by", "Mallory", "--date", "2026-01-02"]
            assert main(["explain", "out", case, *told]) == 0
    text = history.read(LABELS)
    shutil.rmtree(history.root / "labels")
    shutil.rmtree(history.root / "out")
    return text


def report(job, history, **inputs):
    assert job.pull(history, **inputs) == 1
    return Path(job.outputs["report-md"]).read_text()


def put(history, make):
    """Commit what `make` puts at the place of the head's labels."""
    path = history.root / LABELS
    path.parent.mkdir(exist_ok=True)
    make(path)
    history.commit()


def behind_a_folder(path):
    path.parent.rmdir()
    path.parent.symlink_to("/etc")


FORGED = {
    "every example is called wrong": None,
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a link of the folder": behind_a_folder,
    "a pipe": os.mkfifo,
    "a folder": lambda path: (path / "deep").mkdir(parents=True),
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe\n"),
    "a huge line": lambda path: path.write_bytes(b"[" * (8 << 20)),
    "a key twice": lambda path: path.write_text('{"right": true, "right": false}\n'),
    "other policies": lambda path: [
        path.with_name(name).write_text("{}\n") for name in ("..small.jsonl", "small%2f.jsonl")
    ],
}


@pytest.fixture
def examples(job, history):
    """Return a job, and the keys that its report names, before anybody labelled any."""
    history.proposes(worse)
    text = report(job, history)
    return [case for case in CASES if f"{case}`" in text]


@pytest.mark.walk(2)
@pytest.mark.parametrize("inputs", [{}, {"FAIRGATE_BASELINE_CHANGE": "allow"}])
@pytest.mark.parametrize("forged", FORGED)
def test_no_change_hides_its_examples_or_praises_its_reading(
    job, history, examples, forged, inputs
):
    assert examples
    history.proposes(worse)
    text = labelled(history, "wrong", examples)
    put(history, FORGED[forged] or (lambda path: path.write_text(text)))
    shown = report(job, history, **inputs)
    assert [case for case in CASES if f"{case}`" in shown] == examples
    for said in ("called right", "no label counts"):
        assert said not in shown


def test_the_base_s_labels_hide_examples_and_measure_the_reading(job, history, examples):
    history.proposes(worse)
    text = labelled(history, "wrong", examples[:MANY])
    text += labelled(history, "right", examples[MANY:])
    history.git("checkout", "--quiet", "--force", "main")
    history.write(LABELS, text)
    history.commit()
    history.proposes(worse)
    put(history, lambda path: path.write_text(text.replace("false", "true")))
    shown = report(job, history)
    assert not [case for case in examples[:MANY] if f"{case}`" in shown]
    assert f"{len(examples) - MANY} of {len(examples)} labelled differences called right" in shown


def test_a_damaged_file_of_the_base_hides_nothing_and_is_named(job, history, examples):
    history.git("checkout", "--quiet", "--force", "main")
    history.write(LABELS, '{"right": true, "right": false}\n')
    history.commit()
    history.proposes(worse)
    shown = report(job, history)
    assert [case for case in CASES if f"{case}`" in shown] == examples
    assert f"no label counts: {LABELS}:1" in shown.replace("`", "")
