"""Results by content in one SQLite file."""

import contextlib
import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from fairgate.domain.errors import StoreError
from fairgate.systems.result_store import SqliteResultStore, checksum


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "results.sqlite"


@pytest.fixture
def opened():
    stores = []

    def open_store(path):
        stores.append(SqliteResultStore(path))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(path, opened):
    return opened(path)


def directly(path, *statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(*statement)


def test_what_was_put_is_there_for_the_next_run(path, store, opened):
    store.put_many("answer", [("k1", '{"a": "ü"}'), ("k2", "2")])
    store.put_many("other", [("k1", "3")])
    store.close()
    again = opened(path)
    found = again.get_many("answer", ["k2", "missing", "k1", "k2"])
    assert found == {"k2": "2", "k1": '{"a": "ü"}'}
    assert again.get_many("other", ["k1", "k2"]) == {"k1": "3"}
    assert again.notices == []


def test_thousands_of_keys_at_once_and_second_values(store):
    keys = [f"key {i}" for i in range(3210)]
    for suffix in ("", " again"):
        store.put_many("answer", ((key, key + suffix) for key in keys))
        found = store.get_many("answer", keys[::-1])
        assert list(found.items()) == [(key, key + suffix) for key in keys[::-1]]
    assert store.get_many("answer", []) == {}


def test_a_batch_is_stored_whole_or_not_at_all(store):
    def failing():
        yield "a", "1"
        raise ValueError("the generator of results failed")

    with pytest.raises(ValueError, match="failed"):
        store.put_many("answer", failing())
    assert store.get_many("answer", ["a"]) == {}


def test_vectors_come_back_bit_by_bit(store):
    vectors = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
    store.put_vectors(zip("abc", vectors, strict=True))
    found = store.get_vectors(["c", "x", "a"])
    assert list(found) == ["c", "a"]
    assert found["c"].tobytes() == vectors[2].tobytes()
    assert found["c"].dtype == np.float32


def test_threads_share_one_store(store):
    def work(name):
        for i in range(20):
            store.put_many("answer", [(f"{name}{i}", name)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, "abcd"))
    keys = [f"{name}{i}" for name in "abcd" for i in range(20)]
    assert len(store.get_many("answer", keys)) == 80


def open_and_write(path, together, name, said):
    together.wait()
    try:
        store = SqliteResultStore(path)
        store.put_many("answer", [(name, "v")])
        said.put("; ".join(store.notices))
    except StoreError as error:
        said.put(str(error))


def test_processes_that_make_one_store_at_once_wait_for_each_other(tmp_path):
    fork = multiprocessing.get_context("fork")
    for attempt in range(8):
        path, together, said = tmp_path / f"{attempt}.sqlite", fork.Barrier(4), fork.Queue()
        given = [(path, together, name, said) for name in "abcd"]
        processes = [fork.Process(target=open_and_write, args=args) for args in given]
        for process in processes:
            process.start()
        assert [said.get() for _ in processes] == [""] * 4
        for process in processes:
            process.join()
        store = SqliteResultStore(path)
        assert list(store.get_many("answer", list("abcd"))) == list("abcd")
        store.close()


@pytest.mark.parametrize(
    ("name", "change"), [("bad", "value = CAST('3' AS BLOB)"), ("other", "key = 'bad'")]
)
def test_a_row_with_a_wrong_checksum_is_forgotten_and_said(path, store, name, change):
    store.put_many("answer", [("good", "1"), (name, "2")])
    directly(path, f"UPDATE results SET {change} WHERE key = '{name}'")  # noqa: S608
    assert store.get_many("answer", ["good", "bad"]) == {"good": "1"}
    assert len(store.notices) == 1
    assert "1 stored results (answer) had a wrong checksum" in store.notices[0]
    store.put_many("answer", [("bad", "2")])
    assert store.get_many("answer", ["bad"]) == {"bad": "2"}


@pytest.mark.parametrize(
    "content", [b"not a database " * 100, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_moved_aside_and_said(path, opened, content):
    path.parent.mkdir()
    path.write_bytes(content)
    store = opened(path)
    store.put_many("answer", [("k", "1")])
    assert store.get_many("answer", ["k"]) == {"k": "1"}
    assert path.with_name("results.sqlite.corrupt-1").read_bytes() == content
    assert "moved to results.sqlite.corrupt-1 and rebuilt" in store.notices[0]


@pytest.mark.parametrize("damage", ["overwritten", "cut"])
def test_what_is_readable_in_a_damaged_file_is_kept(path, store, opened, damage):
    keys = [f"key {i}" for i in range(2000)]
    store.put_many("answer", ((key, key * 20) for key in keys))
    store.close()
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 20_000] = b"\xff" * 20_000
    path.write_bytes(raw[:9000] if damage == "cut" else raw)
    again = opened(path)
    found = again.get_many("answer", keys)
    assert all(found[key] == key * 20 for key in found)
    assert len(found) < 2000
    assert damage == "cut" or len(found) > 100
    assert path.with_name("results.sqlite.corrupt-1").exists()
    assert "rebuilt with the" in again.notices[0]
    again.put_many("answer", ((key, "new") for key in keys))
    assert len(again.get_many("answer", keys)) == 2000


def test_a_database_of_another_program_is_not_touched_as_ours(path, opened):
    path.parent.mkdir()
    directly(path, "CREATE TABLE results (something TEXT)")
    store = opened(path)
    assert path.with_name("results.sqlite.corrupt-1").exists()
    assert store.get_many("answer", ["k"]) == {}


def test_a_store_of_a_newer_version_and_a_folder_that_cannot_be_made_are_refused(path, opened):
    opened(path).close()
    directly(path, "PRAGMA user_version = 9")
    with pytest.raises(StoreError, match=r"version 9.*expected version 1.*--cache"):
        SqliteResultStore(path)
    with pytest.raises(StoreError, match="--cache"):
        SqliteResultStore(path / "results.sqlite")


@pytest.mark.parametrize("content", [b"", b"damaged" * 1000])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
def test_no_file_of_a_store_leads_elsewhere(path, tmp_path, suffix, content):
    """Whoever can put a link into a cache would have another file written, or emptied."""
    other = tmp_path / "other"
    path.parent.mkdir()
    other.write_bytes(content or b"kept")
    if suffix:
        path.write_bytes(content)
    path.with_name(f"{path.name}{suffix}").symlink_to(other)
    with pytest.raises(StoreError, match="is a link"):
        SqliteResultStore(path)
    assert other.read_bytes() == (content or b"kept")
    assert sorted(tmp_path.glob("**/*corrupt*")) == []


def test_a_store_held_by_another_process_is_said(path, opened, monkeypatch):
    monkeypatch.setattr("fairgate.systems.result_store._BUSY_SECONDS", 0.05)
    store = opened(path)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process"):
        store.put_many("answer", [("k", "1")])
    holder.close()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("answer", value) for value in (b"\xff", "text", 7, 0.5, "")),
        *(("embedding", np.float32(number).tobytes()) for number in ("nan", "inf")),
        ("embedding", b"abc"),
    ],
)
def test_a_value_of_another_form_is_forgotten_whatever_its_checksum(
    path, store, opened, kind, value
):
    store.put_many(kind, [("k", "text"), ("other", "four")])
    store.close()
    change = "UPDATE results SET value = ?, checksum = ? WHERE key = 'k'"
    directly(path, change, (value, checksum(kind, "k", value)))
    again = opened(path)
    find = again.get_vectors if kind == "embedding" else partial(again.get_many, kind)
    assert list(find(["k", "other"])) == ["other"]
    assert "were forgotten" in again.notices[0]
