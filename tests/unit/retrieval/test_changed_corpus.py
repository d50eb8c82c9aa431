"""A corpus that changes: what is new is embedded, and the index is that of a build from nothing."""

import json
import random
import threading

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.embedder import HashEmbedder

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.ports import SILENT, Progress
from fairgate.retrieval import flat_index
from fairgate.retrieval.embedding_cache import CachedEmbedder
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.retrieval.index_folder import ROWS
from fairgate.systems.result_store import SqliteResultStore

TEXTS = [f"text number {i}" for i in range(300)]


def built(folder, corpus, embedder=None):
    """Build an index; return its files' bytes and which texts were embedded."""
    embedder = embedder or HashEmbedder()
    index = FlatIndex(corpus, embedder, cache_dir=folder)
    assert index.size
    assert index.notices == []
    where = folder / "indexes" / index.fingerprint
    return {path.name: path.read_bytes() for path in where.iterdir()}, embedder.embedded


def folders(root):
    return {path.name for path in (root / "indexes").iterdir()}


def changed(seed):
    """Return documents of a later version: edited, removed, added, moved, repeated, renamed."""
    rng = random.Random(seed)
    documents = [CorpusDocument(id=f"d{i}", text=text) for i, text in enumerate(TEXTS)]
    for number in rng.sample(range(len(documents)), 6):
        documents[number] = CorpusDocument(id=f"d{number}", text=f"edited {rng.random()}")
    documents = rng.sample(documents, rng.randint(150, len(documents)))
    if rng.random() < 0.5:
        documents.sort(key=lambda document: document.id)
    copies = rng.sample(documents, 5)
    documents += [CorpusDocument(id=f"{d.id}-copy", text=d.text, label="l") for d in copies]
    documents.insert(rng.randrange(100), CorpusDocument(id="new", text=f"added {rng.random()}"))
    return documents


@pytest.mark.parametrize("seed", range(6))
def test_a_change_costs_what_is_new_and_gives_the_bytes_of_a_build_from_nothing(
    tmp_path, monkeypatch, seed
):
    monkeypatch.setattr(flat_index, "_EMBED_AT_ONCE", random.Random(seed).choice([1, 3, 4096]))
    monkeypatch.setattr(flat_index, "_ROWS_AT_ONCE", random.Random(-seed).choice([1, 7, 8192]))
    documents = changed(seed)
    built(tmp_path, ListCorpus(TEXTS))
    files, embedded = built(tmp_path, ListCorpus(documents, "c2"))
    assert set(embedded) == {document.text for document in documents} - set(TEXTS)
    monkeypatch.undo()
    assert files == built(tmp_path / "alone", ListCorpus(documents, "c2"))[0]


def test_another_embedder_gets_no_vector_of_this_one(tmp_path):
    built(tmp_path, ListCorpus(TEXTS))
    _, embedded = built(tmp_path, ListCorpus(TEXTS, "c2"), HashEmbedder(fingerprint="other"))
    assert embedded == TEXTS


def flipped(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 0x10
    path.write_bytes(raw)


ROW, VECTOR = ROWS.itemsize, 16 * 4
DAMAGE = {
    "a bit of a vector": (lambda f: flipped(f / "vectors.npy", -VECTOR * 7 + 3), TEXTS[-7:-6]),
    "a bit of a key": (lambda f: flipped(f / "rows.npy", -ROW * 4), TEXTS[-4:-3]),
    "a bit of a checksum": (lambda f: flipped(f / "rows.npy", -1), TEXTS[-1:]),
    "vectors cut": (lambda f: (f / "vectors.npy").write_bytes(b"\x93NUMPY"), TEXTS),
    "rows gone": (lambda f: (f / "rows.npy").unlink(), TEXTS),
    "rows of zeros": (lambda f: np.save(f / "rows.npy", np.zeros(300, dtype=ROWS)), TEXTS),
    "rows missing": (lambda f: np.save(f / "rows.npy", np.zeros(299, dtype=ROWS)), TEXTS),
    "numbers of eight bytes": (lambda f: np.save(f / "vectors.npy", np.ones((300, 16))), TEXTS),
    "vectors of one row": (lambda f: np.save(f / "vectors.npy", np.ones(16, "f4")), TEXTS),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), TEXTS),
    "a manifest that is a list": (lambda f: (f / "manifest.json").write_text("[]"), TEXTS),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_of_a_damaged_earlier_index_only_what_is_sound_is_taken(tmp_path, damage):
    built(tmp_path, ListCorpus(TEXTS))
    (folder,) = (tmp_path / "indexes").iterdir()
    harm, again = DAMAGE[damage]
    harm(folder)
    files, embedded = built(tmp_path, ListCorpus(TEXTS, "c2"))
    assert sorted(embedded) == sorted(again)
    assert files == built(tmp_path / "alone", ListCorpus(TEXTS, "c2"))[0]


def test_a_damaged_index_keeps_the_vectors_that_are_sound(tmp_path):
    files, _ = built(tmp_path, ListCorpus(TEXTS))
    (folder,) = (tmp_path / "indexes").iterdir()
    flipped(folder / "vectors.npy", -1)
    embedder = HashEmbedder()
    index = FlatIndex(ListCorpus(TEXTS), embedder, cache_dir=tmp_path)
    index.retrieve(["q"], 4)
    assert embedder.embedded == [TEXTS[-1], "q"]
    assert "vectors.npy has a wrong checksum" in index.notices[0]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


def test_an_index_of_another_version_is_built_again_without_a_word(tmp_path):
    files, _ = built(tmp_path, ListCorpus(TEXTS))
    (folder,) = (tmp_path / "indexes").iterdir()
    (folder / "manifest.json").write_text(json.dumps({"schema_version": 1}))
    (folder / "table.json").write_text("{}")
    assert built(tmp_path, ListCorpus(TEXTS))[0] == files


def test_an_earlier_index_with_vectors_of_another_length_is_told(tmp_path):
    built(tmp_path, ListCorpus(TEXTS), HashEmbedder(dimensions=8))
    index = FlatIndex(ListCorpus([*TEXTS, "new"], "c2"), HashEmbedder(), cache_dir=tmp_path)
    with pytest.raises(RetrievalError, match=r"vectors of 16 numbers where .* holds 8; .* delete"):
        index.retrieve(["q"], 4)
    assert len(folders(tmp_path)) == 1


class Waiting(HashEmbedder):
    """An embedder that waits for a word before it embeds documents."""

    def __init__(self):
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def embed(self, texts):
        self.begun.set()
        assert self.go.wait(60)
        return super().embed(texts)


class Notes(Progress):
    """Keeps what it is told."""

    def __init__(self):
        self.told = threading.Event()
        self.steps = []

    def start(self, stage, total, cached):
        self.steps.append((stage, total, cached))

    def advance(self, steps):
        self.steps.append(steps)

    def finish(self):
        self.steps.append("end")

    def note(self, text):
        self.steps.append(text)
        self.told.set()


def test_who_comes_second_waits_and_embeds_nothing(tmp_path):
    first, second, notes = Waiting(), HashEmbedder(), Notes()
    sizes = []

    def build(embedder, progress):
        index = FlatIndex(ListCorpus(TEXTS), embedder, cache_dir=tmp_path, progress=progress)
        sizes.append(index.size)

    threads = [threading.Thread(target=build, args=(first, SILENT))]
    threads[0].start()
    assert first.begun.wait(60)
    threads.append(threading.Thread(target=build, args=(second, notes)))
    threads[1].start()
    assert notes.told.wait(60)
    first.go.set()
    for thread in threads:
        thread.join()
    assert sizes == [300, 300]
    assert (len(first.embedded), second.embedded) == (300, [])
    assert notes.steps == ["another process builds this index; waiting until it has"]
    assert not [name for name in folders(tmp_path) if name.startswith(".")]


def test_who_comes_second_builds_where_the_first_fails(tmp_path):
    class Failing(Waiting):
        def embed(self, texts):
            super().embed(texts)
            raise KeyboardInterrupt

    first, second, notes = Failing(), HashEmbedder(), Notes()
    failed = []

    def fail():
        try:
            built(tmp_path, ListCorpus(TEXTS), first)
        except KeyboardInterrupt:
            failed.append(True)

    one = threading.Thread(target=fail)
    one.start()
    assert first.begun.wait(60)
    index = FlatIndex(ListCorpus(TEXTS), second, cache_dir=tmp_path, progress=notes)
    two = threading.Thread(target=lambda: index.retrieve(["q"], 4))
    two.start()
    assert notes.told.wait(60)
    first.go.set()
    one.join()
    two.join()
    assert failed == [True]
    assert second.embedded == [*TEXTS, "q"]
    assert notes.steps[1:] == [("index", 300, 0), 300, "end"]


def test_progress_counts_what_is_embedded(tmp_path):
    built(tmp_path, ListCorpus(TEXTS))
    notes = Notes()
    corpus = ListCorpus([*TEXTS, "new"], "c2")
    assert FlatIndex(corpus, HashEmbedder(), cache_dir=tmp_path, progress=notes).size == 301
    assert notes.steps == [("index", 301, 300), 1, "end"]


@pytest.mark.parametrize(("most", "left"), [(299, {"q"}), (300, {"q", *TEXTS})])
def test_vectors_of_great_indexes_are_not_in_the_store_and_those_of_queries_are(
    tmp_path, monkeypatch, most, left
):
    monkeypatch.setattr(flat_index, "MOST_IN_STORE", most)
    store = SqliteResultStore(tmp_path / "store.sqlite")
    index = FlatIndex(ListCorpus(TEXTS), CachedEmbedder(HashEmbedder(), store), cache_dir=tmp_path)
    index.retrieve(["q"], 4)
    inner = HashEmbedder()
    CachedEmbedder(inner, store).embed(["q", *TEXTS])
    assert set(inner.embedded) == {"q", *TEXTS} - left
    assert folders(tmp_path) == {index.fingerprint}
    store.close()
