"""Whatever was done to an index on disk, it is found and built again, or refused in words."""

import hashlib
import json
import random

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder
from fakes.mutations import NO_JSON, STRANGE, mutated

from fairgate.domain.errors import RetrievalError
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.retrieval.index_folder import IDS, ROWS

TEXTS = [f"text number {i}" for i in range(20)]
QUERIES = ["one", "two"]


@pytest.fixture
def built(tmp_path):
    """Return the folder of a sound index, what it answers, and a way to ask it again."""
    index = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
    answers = index.retrieve(QUERIES, 3)

    def again():
        fresh = FlatIndex(ListCorpus(TEXTS), HashEmbedder(), cache_dir=tmp_path)
        assert fresh.size == len(TEXTS)
        return fresh.retrieve(QUERIES, 3), fresh.notices

    return tmp_path / "indexes" / index.fingerprint, answers, again


def put(folder, name, data):
    """Replace a part, and its size and checksum in the manifest, as somebody might who means it."""
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("text", NO_JSON)
def test_a_manifest_that_is_no_json_of_ours_is_built_again(built, text):
    folder, answers, again = built
    (folder / "manifest.json").write_bytes(text)
    found, notices = again()
    assert found == answers
    assert "the index was damaged" in notices[0]
    assert again() == (answers, [])


@pytest.mark.walk(20)
@pytest.mark.parametrize("seed", range(60))
def test_an_edited_manifest_is_built_again_or_changes_nothing(built, seed):
    folder, answers, again = built
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(json.dumps(mutated(manifest, random.Random(seed))))
    assert again()[0] == answers


@pytest.mark.walk(24)
@pytest.mark.parametrize("name", ["vectors.npy", "offsets.npy", "rows.npy", "ids.npy"])
@pytest.mark.parametrize(
    "array",
    [
        np.zeros((20, 16)), np.zeros((3, 16), dtype="<f4"), np.zeros((0, 16), dtype="<f4"),
        np.zeros(21, dtype="<i8"), np.arange(21)[::-1], np.full(21, -1), np.full(21, 2**62),
        np.array("x"), np.zeros((20, 16), dtype="<f4", order="F"), np.zeros(20, dtype=IDS),
        np.zeros(19, dtype=ROWS), np.full(20, 1, dtype=IDS),
    ],
)  # fmt: skip
def test_arrays_of_another_form_are_built_again(built, tmp_path, name, array):
    folder, answers, again = built
    np.save(tmp_path / "new.npy", array)
    put(folder, name, (tmp_path / "new.npy").read_bytes())
    assert again()[0] == answers


def test_vectors_that_are_no_numbers_are_told(built, tmp_path):
    folder, _, again = built
    np.save(tmp_path / "new.npy", np.full((20, 16), np.nan, dtype="<f4"))
    put(folder, "vectors.npy", (tmp_path / "new.npy").read_bytes())
    with pytest.raises(RetrievalError, match="no number; delete the folder"):
        again()


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"x" * 1000, *(b"%d" % n for n in range(2))])
@pytest.mark.parametrize("name", ["vectors.npy", "offsets.npy", "rows.npy", "ids.npy"])
def test_what_is_no_array_is_built_again(built, name, data):
    folder, answers, again = built
    put(folder, name, data)
    assert again()[0] == answers


@pytest.mark.walk(24)
@pytest.mark.parametrize("field", ["id", "text", "label"])
@pytest.mark.parametrize("value", STRANGE)
def test_an_edited_document_is_told_or_read(built, field, value):
    folder, _, again = built
    lines = (folder / "documents.jsonl").read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        record = {"id": "x", "text": "x", "label": None} | {field: value}
        text = json.dumps(record).encode()
        lines[number] = text[: len(line) - 1].ljust(len(line) - 1) + b"\n"
    put(folder, "documents.jsonl", b"".join(lines))
    is_text = isinstance(value, str) or (field == "label" and value is None)
    if is_text and len(value or "") < 20 and value != "\ud800":
        found, _ = again()
        assert {getattr(d, field) for documents in found for d in documents} == {value}
    else:
        with pytest.raises(RetrievalError, match="delete the folder"):
            again()
