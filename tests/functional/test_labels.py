"""A person's word on a case: what is kept, what reports say of it, and files that are none."""

import json
import os
from dataclasses import asdict

import pytest

from fairgate.domain.errors import DataError
from fairgate.gate.labels import Label, add_label, decoded_labels, precisions, read_labels

FIRST = "s0#race/asian"


def biased(key):
    return "negative" if "asian" in key else "positive"


def label(workspace, case, verdict, by="Ada", **more):
    options = [text for name, value in more.items() for text in (f"--{name}", value)]
    return workspace.run("explain", "out", case, "--verdict", verdict, "--by", by, *options)


def kept(workspace):
    (file,) = (workspace.root / "labels").iterdir()
    return file


@pytest.fixture
def red(workspace, once):
    """Return a workspace with a finished run in which one identity's answers change."""
    gates = "  - {metric: asr/generation, max: 0.02}"
    return once("labelled", lambda space: space.gate(biased, sources=6, gates=gates))


def test_a_label_holds_what_was_read_and_no_text(red):
    assert label(red, FIRST, "wrong", date="2026-01-02") == 0
    (row,) = map(json.loads, kept(red).read_text().splitlines())
    content = row.pop("content")
    assert len(content) == 64
    assert row == {
        "suite": "sentiment", "case": FIRST, "reported": True, "read": "positive → negative",
        "right": False, "by": "Ada", "date": "2026-01-02",
    }  # fmt: skip
    assert "is fine" not in kept(red).read_text()
    assert label(red, FIRST, "wrong", date="2026-01-02") == 0
    assert [one.content for one in read_labels(kept(red))] == [content, content]


@pytest.mark.parametrize(
    "text", ["\U000e0001" * 200, "\u0301" * 300, '"' * 300, "\U0001d504" * 300, "::x\n"]
)
def test_whatever_was_read_can_be_read_again(red, monkeypatch, text):
    monkeypatch.setattr("fairgate.gate.labels.reading_of", lambda _: (True, text))
    for _ in range(2):
        assert label(red, FIRST, "right", by="\U0001d504" * 200) == 0, red.err
    assert len(read_labels(kept(red))) == 2


@pytest.mark.parametrize("by", ["", " ", "x" * 201, "two\nlines"])
def test_a_word_is_somebody_s(red, by):
    assert label(red, FIRST, "right", by=by) == 2
    assert "--by NAME" in red.err
    assert not (red.root / "labels").exists()


def test_what_somebody_calls_read_wrong_is_no_example_again(red):
    assert FIRST in (red.root / "out" / "report.md").read_text()
    for verdict in ("wrong", "right", "wrong"):  # the last word counts
        assert label(red, FIRST, verdict) == 0
        assert red.gate() == 1
        text = (red.root / "out" / "report.md").read_text()
        assert (FIRST in text) == (verdict == "right")
        (measured,) = red.record()["labels"].values()
        assert (measured["right"], measured["labelled"]) == (int(verdict == "right"), 1)
    assert label(red, FIRST, "right", by="Bob") == 0  # whoever says wrong is heard
    red.gate()
    assert FIRST not in (red.root / "out" / "report.md").read_text()
    red.gate(lambda key: "neutral" if key == FIRST else biased(key))  # another answer
    assert FIRST in (red.root / "out" / "report.md").read_text()


def word(number, *, right=True, by="Ada", **more):
    fields = {"suite": "sentiment", "case": f"s{number}", "content": f"{number:064x}", "reported": True,
              "read": "positive → negative", "right": right, "by": by, "date": "2026-01-02"}  # fmt: skip
    return Label(**{**fields, **more})


def test_precision_counts_cases_and_not_words():
    labels = [word(1), word(1, by="Bob", right=False), word(2), word(2), word(3, reported=False)]
    assert {name: (one.right, one.labelled) for name, one in precisions(labels).items()} == {
        "sentiment": (1, 2)
    }


@pytest.mark.parametrize(("number", "said"), [
    (29, "28 of 29 labelled differences called right; 30 are needed"),
    (30, "29 of 30 labelled differences called right: 97 % (83 … 99 %) of what is reported"),
])  # fmt: skip
def test_from_30_labels_on_the_report_says_how_far_the_reading_can_be_trusted(red, number, said):
    path = red.root / "labels" / f"{red.record()['policy']}.jsonl"
    for each in range(number):
        add_label(path, word(each, right=each > 0))
    add_label(path, word(1, suite="gone"))
    red.gate()
    text = (red.root / "out" / "report.md").read_text()
    assert said in text
    assert "gone" not in text


LINE = json.dumps(asdict(word(0, right=False)))
NO_LABELS = {
    "another byte order": LINE.encode("utf-16"),
    "no UTF-8": LINE.encode().replace(b"Ada", b"\xff\xfe"),
    "a key twice": LINE.replace('"by"', '"right": true, "by"').encode(),
    "one key less": LINE.replace('"by": "Ada", ', "").encode(),
    "one key more": LINE.replace('"by"', '"weight": 9, "by"').encode(),
    "a number for a truth": LINE.replace("false", "0").encode(),
    "a text for a truth": LINE.replace("false", '"false"').encode(),
    "a list for a text": LINE.replace('"Ada"', '["Ada"]').encode(),
    "another hash": LINE.replace("0" * 64, "0" * 63 + "g").encode(),
    "another date": LINE.replace("2026-01-02", "yesterday").encode(),
    "nobody": LINE.replace('"Ada"', '""').encode(),
    "a long name": LINE.replace("Ada", "A" * 201).encode(),
    "a huge line": LINE.replace("Ada", "A" * (1 << 20)).encode(),
    "deep": b"[" * 5000,
    "half a pair": LINE.replace("Ada", "\\ud800").encode(),
    "no object": b"[1]",
    "too large": (LINE.encode() + b"\n") * (1 << 15),
}


@pytest.mark.parametrize("raw", NO_LABELS.values(), ids=NO_LABELS)
def test_a_file_with_one_line_that_is_no_label_has_none(raw):
    with pytest.raises(DataError, match=r"^x\.jsonl(:2)?: "):
        decoded_labels(LINE.encode() + b"\n" + raw, "x.jsonl")


def linked(path):
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("make", [linked, os.mkfifo, os.mkdir, lambda p: p.write_bytes(b"{}")])
def test_what_is_no_file_of_labels_is_said_and_changes_nothing(red, make):
    path = red.root / "labels" / f"{red.record()['policy']}.jsonl"
    path.parent.mkdir()
    make(path)
    assert red.gate() == 1
    text = (red.root / "out" / "report.md").read_text()
    assert "no label counts" in text
    assert FIRST in text
    assert label(red, FIRST, "wrong") != 0


def test_a_record_says_what_people_said_of_readings(red):
    for words in ("Nobody has looked at cases", "of 1 reported differences that people looked at"):
        assert red.run("record", "out", "--out", "record.json") == 0, red.err
        assert words in (red.root / "record.json").read_text()
        label(red, FIRST, "right")
        red.gate()
