"""A raw table of texts becomes a corpus."""

import json
from pathlib import Path

import numpy as np
import pytest
from fakes.mutations import NO_JSON

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.retrieval.corpus import CorpusFile
from fairgate.retrieval.preparation import (
    PreparationOptions,
    clean_text,
    is_sampled,
    length_fence,
    manifest_path,
    prepare_corpus,
    prepared_corpus,
)


class Words:
    """A tokenizer of words that remembers how many texts it saw at once."""

    name = "words"
    fingerprint = "words-1"

    def __init__(self):
        self.batches = []

    def __call__(self, texts):
        self.batches.append(len(texts))
        return [len(text.split()) for text in texts]


def table(tmp_path, records, name="in.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return CorpusSpec(path=str(path))


def prepared(tmp_path, records, **options):
    spec = table(tmp_path, records)
    output = tmp_path / "out.jsonl"
    manifest = prepare_corpus(spec, output, tokens=Words(), options=PreparationOptions(**options))
    assert json.loads(manifest_path(output).read_text()) == manifest
    return [json.loads(line) for line in output.read_text().splitlines()], manifest


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("@Bob: look at HTTPS://x.org/a?b#c now", ": look at now"),
        ("see www.example.org/path) and", "see and"),
        ("write to me@example.org", "write to me@example.org"),
        (".@bob @alice_1 hi", ". hi"),
        ("a\n\tb\u00a0 c  ", "a b c"),
        ("ÀÉÎ", "àéî"),
    ],
)
def test_cleaning(text, cleaned):
    assert clean_text(text) == cleaned


def test_the_fence_is_tukeys():
    fence = length_fence(np.array([1, 2, 3, 4, 5, 6, 7, 8], dtype=np.int32))
    assert (fence.q1, fence.q3, fence.low, fence.high) == (2.75, 6.25, -2.5, 11.5)


def test_every_row_is_kept_or_dropped_for_a_reason(tmp_path):
    usual = [
        {"id": f"u{i}", "text": f"Usual text number {i} @you", "toxic": i == 3} for i in range(20)
    ]
    records = [
        *usual,
        {"id": "long", "text": "word " * 50, "toxic": False},
        {"id": "few", "text": "two words", "toxic": False},
        {"id": "short", "text": "a b c d https://x.org", "toxic": False},
        {"id": "none", "text": "  ", "toxic": False},
        {"id": "null", "text": None, "toxic": False},
        {"id": "huge", "text": "x" * (2**20 + 1), "toxic": False},
    ]
    lines, manifest = prepared(tmp_path, records)
    assert lines[3] == {"id": "u3", "text": "usual text number 3", "label": "toxic"}
    assert [line["id"] for line in lines] == [f"u{i}" for i in range(20)]
    assert manifest["counts"] == {
        "in": 26,
        "out": 20,
        "dropped": {"empty": 2, "few-tokens": 1, "many-tokens": 1, "over-size": 1, "short-text": 1},
    }
    assert manifest["tokens"] == {"q1": 5.0, "q3": 5.0, "low": 5.0, "high": 5.0}
    assert manifest["tokenizer"] == {"name": "words", "fingerprint": "words-1"}


def test_duplicates_stay(tmp_path):
    lines, _ = prepared(tmp_path, [{"text": "the same text twice"}] * 5)
    assert [line["id"] for line in lines] == ["1", "2", "3", "4", "5"]
    assert "label" not in lines[0]


def test_the_sample_depends_on_id_and_seed_alone(tmp_path):
    records = [{"id": f"i{i}", "text": f"some text of document {i}"} for i in range(4000)]
    lines, manifest = prepared(tmp_path, records, sample=0.1)
    ids = {line["id"] for line in lines}
    assert 330 < len(ids) < 470  # 400 expected, 3.7 standard deviations of 19
    assert manifest["counts"]["dropped"] == {"not-sampled": 4000 - len(ids)}
    turned, _ = prepared(tmp_path, records[::-1], sample=0.1)
    assert {line["id"] for line in turned} == ids
    other, _ = prepared(tmp_path, records, sample=0.1, seed=7)
    assert {line["id"] for line in other} != ids
    assert all(is_sampled(f"i{i}", PreparationOptions()) for i in range(100))


def test_equal_inputs_give_equal_bytes_and_the_result_is_a_corpus(tmp_path):
    spec = table(tmp_path, [{"text": f"Grüße an alle {i}", "label": "b"} for i in range(2000)])
    tokens = Words()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        prepare_corpus(spec, tmp_path / name / "out.jsonl", tokens=tokens)
    assert max(tokens.batches) == 512
    for name in ("out.jsonl", "out.jsonl.manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    documents = list(CorpusFile(CorpusSpec(path=str(tmp_path / "one" / "out.jsonl"))).documents())
    assert documents[0] == CorpusDocument(id="1", text="grüße an alle 0", label="b")
    assert len(documents) == 2000


def test_a_prepared_corpus_is_made_once_and_again_when_it_is_damaged(tmp_path):
    spec = table(tmp_path, [{"text": f"Some text of document {i}"} for i in range(30)])
    tokens = Words()
    first = prepared_corpus(spec, tmp_path / "cache", tokens=tokens)
    assert prepared_corpus(spec, tmp_path / "cache", tokens=tokens) == first
    assert len(tokens.batches) == 1
    output = Path(first.path)
    content = output.read_text()
    output.write_text(content + "{}\n")
    assert prepared_corpus(spec, tmp_path / "cache", tokens=tokens) == first
    assert len(tokens.batches) == 2
    assert output.read_text() == content


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"text": " "}], "holds no text"),
        ([{"text": "tiny"}] * 3, r"nothing is left of 3 rows \(\{'short-text': 3\}\)"),
        ([{"id": "a", "text": "a text of some length"}] * 2, ":2: id 'a' was used on line 1"),
    ],
)
def test_what_cannot_become_a_corpus_leaves_no_file(tmp_path, records, message):
    spec = table(tmp_path, records)
    with pytest.raises(DataError, match=message):
        prepare_corpus(spec, tmp_path / "out.jsonl", tokens=Words())
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_file_that_changes_between_the_passes_is_refused(tmp_path):
    spec = table(tmp_path, [{"text": f"Some text of document {i}"} for i in range(30)])

    class Meddling(Words):
        def __call__(self, texts):
            table(tmp_path, [{"text": "other text of some length"}] * 29)
            return super().__call__(texts)

    with pytest.raises(DataError, match="changed while it was read"):
        prepare_corpus(spec, tmp_path / "out.jsonl", tokens=Meddling())
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("output", ["out.csv", "in.jsonl"])
def test_an_output_that_cannot_be_one(tmp_path, output):
    spec = table(tmp_path, [{"text": "a text of some length"}])
    with pytest.raises(UsageError, match=r"expected a \.jsonl file other than the input"):
        prepare_corpus(spec, tmp_path / output, tokens=Words())


@pytest.mark.parametrize("text", NO_JSON)
def test_a_manifest_of_something_else_is_made_again(tmp_path, text):
    spec = table(tmp_path, [{"text": f"Some text of document {i}"} for i in range(3)])
    found = prepared_corpus(spec, tmp_path / "cache", tokens=Words())
    manifest = manifest_path(Path(found.path))
    sound = manifest.read_bytes()
    manifest.write_bytes(text)
    assert prepared_corpus(spec, tmp_path / "cache", tokens=Words()) == found
    assert manifest.read_bytes() == sound
