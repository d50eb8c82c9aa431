"""A change that swaps the files behind unchanged rules is seen; one of what is tested is not news."""

import hashlib
import json
import re
import shutil

import pytest
from action.repositories import POLICY, fair, worse
from fakes.policies import parse_policy

from fairgate.adapters.embedded_names import find
from fairgate.composition import changed_data as module
from fairgate.composition.changed_data import changed_data
from fairgate.domain.errors import BaselineError

SET = """\
id: religion
terms:
  - {term: hindu, noun_phrase: A Hindu person}
  - {term: sikh, noun_phrase: A Sikh person}
"""
TASK = """\
id: mood
instruction: Say whether the text is positive or negative.
labels: [positive, negative]
"""


def comments(job):
    return [comment["body"] for comment in job.hub.ours(7)]


@pytest.fixture
def gated(history, capsys):
    """Return a history whose policy names a file of every kind that a recorded system has."""
    history.write("terms.yaml", SET)
    history.write("task.yaml", TASK)
    text = POLICY.replace("gender]", "terms.yaml]").replace("task: sentiment", "task: task.yaml")
    history.write("policies/small.yaml", text)
    history.answers(fair, capsys)
    history.accept()
    history.commit("name files")
    history.branch()
    return history


def swapped_terms(history):
    history.write("terms.yaml", SET.replace("A Hindu", "A nice").replace("A Sikh", "A kind"))


def new_description(history):
    history.write("task.yaml", TASK + "description: For readers.\n")


def more_sources(history):
    history.sources(21)


@pytest.mark.parametrize(
    ("edit", "file"),
    [
        (swapped_terms, "terms.yaml"),
        (new_description, "task.yaml"),
        (more_sources, "sources.jsonl"),
    ],
)
def test_a_change_of_what_is_asked_is_shown(gated, job, capsys, edit, file):
    edit(gated)
    gated.answers(fair, capsys)
    gated.commit()
    assert job.pull(gated) == 0
    (body,) = comments(job)
    assert re.search(rf"This change edits .*`{file}`", body)
    assert "the same policy and baseline" in body
    assert re.search(rf"This change edits .*`{file}`", job.summary)


def test_new_answers_are_what_is_tested(gated, job, capsys):
    gated.write("answers.jsonl", gated.read("answers.jsonl") + "\n")
    gated.commit()
    assert job.pull(gated) == 0
    assert comments(job) == []
    assert "This change edits `answers.jsonl`" in job.summary


def test_an_unchanged_repository_is_said_nothing_of(gated, job):
    gated.write("README.md", "hello")
    gated.commit()
    assert job.pull(gated) == 0
    assert comments(job) == []
    assert "This change edits" not in job.summary


def test_removed_cases_are_shown_even_if_few(history, job, capsys, monkeypatch):
    """Two sources are reworded, so they are new cases; here as if no file were seen to change."""
    monkeypatch.setattr("fairgate.composition.change.changed_data", lambda *_: module.ChangedData())
    history.branch()
    text = history.read("sources.jsonl")
    history.write("sources.jsonl", text.replace("0 is fine.", "0 is fine!"))
    history.answers(fair, capsys)
    history.commit()
    assert job.pull(history) == 0
    assert len(comments(job)) == 1


def test_paths_stand_from_the_repositorys_root(history, job):
    (history.root / "shop").mkdir()
    for part in ("policies", "baselines", "answers.jsonl", "sources.jsonl"):
        history.git("mv", part, f"shop/{part}")
    history.commit()
    history.branch()
    history.write("shop/sources.jsonl", history.read("shop/sources.jsonl") + "\n")
    history.commit()
    assert job.pull(history, FAIRGATE_ROOT="shop") == 0
    assert "This change edits `shop/sources.jsonl`" in job.summary
    assert len(comments(job)) == 1


def test_a_gate_that_stops_has_an_error_annotation(history, job, capsys):
    """Too few answers to say anything: every rule passes or is open, the build is stopped."""
    history.branch()
    history.answers(lambda key: None if key.startswith(("s0", "s1")) else "positive", capsys)
    history.commit()
    assert job.pull(history) == 5
    errors = [line for line in job.out.splitlines() if line.startswith("::error ")]
    assert len(errors) == 1
    assert "file=policies/small.yaml" in errors[0]
    assert "decided" in errors[0]


def test_a_baseline_that_no_longer_fits_has_an_error_annotation(history, job, capsys):
    history.branch()
    history.sources(5)
    history.answers(fair, capsys)
    history.commit()
    assert job.pull(history) == 3
    assert [line[:8] for line in job.out.splitlines() if line.startswith("::error")] == ["::error "]


def test_a_failed_rule_is_annotated_once(history, job, capsys):
    history.branch()
    history.answers(worse, capsys)
    history.commit()
    assert job.pull(history) == 1
    assert len([line for line in job.out.splitlines() if line.startswith("::error")]) == 1


class Base:
    """A base commit: files by path."""

    def __init__(self, **files):
        self.files = {name.replace("__", "/").replace("_", "."): raw for name, raw in files.items()}

    def read(self, path):
        found = self.files.get(path)
        if isinstance(found, Exception):
            raise found
        return found


ITEMS = """\
version: 1
name: p
system: {recorded: answers.jsonl}
suites:
  - {id: b, kind: bbq, items: ITEMS, collections: [demo-stances, docs.jsonl]}
gates: [{metric: accuracy/ambiguous, max: 0.99}]
"""
SOURCES = """\
version: 1
name: p
system:
  retriever: {corpus: CORPUS}
  generator: {model: demo-slm}
suites: [{id: s, task: sentiment, sources: SOURCES}]
gates: [{metric: asr/generation, max: 0.99}]
"""


def compared(tmp_path, text, base):
    return changed_data(parse_policy(text, "p.yaml").policy, tmp_path, base)


def items(where="items.jsonl"):
    return ITEMS.replace("ITEMS", where)


def sources(where="s.csv", corpus="c.csv"):
    return SOURCES.replace("SOURCES", where).replace("CORPUS", corpus)


def test_items_and_documents(tmp_path):
    for name in ("items.jsonl", "docs.jsonl", "answers.jsonl"):
        (tmp_path / name).write_bytes(b"now")
    same = Base(items_jsonl=b"now", docs_jsonl=b"now", answers_jsonl=b"now")
    assert compared(tmp_path, items(), same) == module.ChangedData()
    same.files |= {"docs.jsonl": b"then"}
    found = compared(tmp_path, items(), same)
    assert (found.files, found.needs_review) == (("docs.jsonl",), False)
    same.files |= {"items.jsonl": None}
    found = compared(tmp_path, items(), same)
    assert (set(found.files), found.needs_review) == ({"docs.jsonl", "items.jsonl"}, True)


def test_metadata_of_items(tmp_path):
    (tmp_path / "m.csv").write_bytes(b"now")
    found = compared(tmp_path, items("{path: demo-bbq, metadata: m.csv}"), Base(m_csv=b"then"))
    assert (found.files, found.needs_review) == (("m.csv",), True)


def test_a_corpus_is_listed_without_a_call_for_review(tmp_path):
    (tmp_path / "c.csv").write_bytes(b"now")
    (tmp_path / "s.csv").write_bytes(b"x")
    found = compared(tmp_path, sources(), Base(c_csv=b"then", s_csv=b"x"))
    assert (found.files, found.needs_review) == (("c.csv",), False)


def test_labels_of_documents_measure_and_call_for_review(tmp_path):
    """In `system`, and in a retriever of one's own: a file, and the folder of a classifier."""
    for name in ("l.csv", "s.csv"):
        (tmp_path / name).write_bytes(b"now")
    (tmp_path / "reader").mkdir()
    (tmp_path / "reader" / "model.onnx").write_bytes(b"now")
    file, model = "labels: {file: l.csv}", "labels: {classifier: reader}"
    for labels, changed in ((file, "l.csv"), (model, "reader/model.onnx")):
        base = Base(s_csv=b"now")
        base.files |= {"l.csv": b"then", "reader/model.onnx": b"then"}
        own = sources().replace("corpus: c.csv", f"command: [x], {labels}")
        found = compared(tmp_path, own, base)
        assert (found.files, found.needs_review) == ((changed,), True)
        text = items().replace("answers.jsonl}", f"answers.jsonl, {labels}}}")
        assert compared(tmp_path, text, base).needs_review


def test_a_file_that_is_corpus_and_sources_decides_what_is_asked(tmp_path):
    (tmp_path / "s.csv").write_bytes(b"now")
    found = compared(tmp_path, sources(corpus="s.csv"), Base(s_csv=b"then"))
    assert (found.files, found.needs_review) == (("s.csv",), True)


def test_names_that_are_no_file_of_the_repository(tmp_path):
    text = sources("demo-reviews", "org/data")
    assert compared(tmp_path, text, Base()) == module.ChangedData()
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "data").write_bytes(b"shadows the data set of the hub")
    assert compared(tmp_path, text, Base()).files == ("org/data",)


def test_spellings_of_a_path_and_a_removed_file(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "s.csv").write_bytes(b"now")
    found = compared(tmp_path, sources("./a/../s.csv"), Base(s_csv=b"then", c_csv=b"gone"))
    assert found.files == ("c.csv", "s.csv")


def test_each_file_of_a_folder(tmp_path):
    (tmp_path / "bbq" / "more").mkdir(parents=True)
    for name in ("same.jsonl", "more/new.jsonl"):
        (tmp_path / "bbq" / name).write_bytes(b"now")
    found = compared(tmp_path, items("bbq"), Base(bbq__same_jsonl=b"now"))
    assert (found.files, found.needs_review) == (("bbq/more/new.jsonl",), True)


@pytest.mark.parametrize("text", [items("big"), sources("big")])
def test_what_is_not_compared_is_said_and_reviewed(tmp_path, monkeypatch, text):
    monkeypatch.setattr(module, "MOST_BYTES", 3)
    (tmp_path / "big").write_bytes(b"four")
    found = compared(tmp_path, text, Base(big=b"four"))
    assert (found.files, found.needs_review) == ((), True)
    assert "'big' was not compared" in found.remarks[0]


def test_a_folder_of_too_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_FILES", 1)
    (tmp_path / "bbq").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "bbq" / name).write_bytes(b"x")
    found = compared(tmp_path, items("bbq"), Base(bbq__a_jsonl=b"x", bbq__b_jsonl=b"x"))
    assert found.needs_review
    assert "2 files" in found.remarks[0]


def test_a_base_that_cannot_be_read(tmp_path):
    (tmp_path / "s.csv").write_bytes(b"x")
    found = compared(tmp_path, sources(), Base(s_csv=BaselineError("is a link or a folder")))
    assert found.needs_review
    assert "is a link" in found.remarks[0]


def test_a_checkout_may_differ_from_git(tmp_path):
    content = json.dumps({"id": 1}).encode()
    (tmp_path / "c.csv").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "s.csv").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 9\n".encode()
    base = Base(c_csv=b"a\nb\n", s_csv=pointer)
    assert compared(tmp_path, sources(), base) == module.ChangedData()
    base.files["s.csv"] = pointer.replace(digest[:4].encode(), b"0000")
    assert compared(tmp_path, sources(), base).files == ("s.csv",)


def test_another_measuring_model_is_seen(job, history):
    """With another embedder the recorded documents have another RRS, whatever they are."""
    shutil.copytree(find("models", "minilm", history.root), history.root / "encoder")
    history.write(
        "policies/small.yaml",
        POLICY.replace("answers.jsonl}", "answers.jsonl, embedder: encoder}"),
    )
    history.accept()
    history.commit("measured by a model of the repository")
    history.branch()
    history.commit()
    assert job.pull(history) == 0
    assert comments(job) == []
    history.git("checkout", "-q", "topic")
    weights = (history.root / "encoder" / "model.onnx").read_bytes()
    (history.root / "encoder" / "model.onnx").write_bytes(weights + b"\0")
    history.commit()
    assert job.pull(history) == 0
    assert "This change edits `encoder/model.onnx`" in comments(job)[0]


def test_a_large_file_of_lfs_is_compared_by_its_pointer(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 3)
    content = b"{}\n" * 3
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 9\n".encode()
    policy = parse_policy(POLICY, "p").policy
    for now, changed in ((content, ()), (content + b" ", ("answers.jsonl", "sources.jsonl"))):
        for name in ("answers.jsonl", "sources.jsonl"):
            (tmp_path / name).write_bytes(now)
        base = type("Base", (), {"read": lambda *_: pointer})()
        found = changed_data(policy, tmp_path, base)
        assert found.files == changed
        assert found.remarks == ()
