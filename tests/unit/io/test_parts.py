"""Files that belong together: all replaced or none, and known to belong together."""

import errno
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fairgate.domain.errors import DataError, StoreError
from fairgate.io.durable import PARTS, check_parts, write_parts

OLD = {"a.md": "old a\n", "b.json": "old b\n", "c.jsonl": "old c\n"}
NEW = {"a.md": "new a\n", "b.json": "new b\n", "c.jsonl": "new c\n"}


def written(folder, texts):
    write_parts(folder, {name: iter(text) for name, text in texts.items()})


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    written(tmp_path / "run", OLD)
    return tmp_path / "run"


def test_parts_are_written_and_known_and_other_files_stay(folder):
    (folder / "mine.txt").write_text("stays")
    written(folder, NEW)
    check_parts(folder, NEW)
    found = content(folder)
    assert {name: found[name] for name in NEW} == NEW
    assert set(found) == {*NEW, PARTS, "mine.txt"}


@pytest.mark.parametrize(
    ("call", "after"), [("write", n) for n in range(3)] + [("sync", n) for n in range(4)]
)
def test_a_full_disk_changes_nothing(folder, monkeypatch, call, after):
    before, calls = content(folder), itertools.count()

    def full(*_):
        if next(calls) == after:
            raise OSError(errno.ENOSPC, "No space left on device")

    def pieces(text):
        full()
        yield text

    files = {name: pieces(text) if call == "write" else [text] for name, text in NEW.items()}
    if call == "sync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full; what was there before is unchanged"):
        write_parts(folder, files)
    assert content(folder) == before
    check_parts(folder, OLD)


@pytest.mark.parametrize("after", range(4))
def test_a_death_between_two_replacements_is_told(folder, monkeypatch, after):
    replace, calls = os.replace, itertools.count()

    def dying(*names):
        if next(calls) >= after:
            raise KeyboardInterrupt
        replace(*names)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        written(folder, NEW)
    if after == 0:
        check_parts(folder, OLD)
    else:
        with pytest.raises(DataError, match="its files are of different runs or were edited"):
            check_parts(folder, OLD)
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]


def identities(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_what_has_these_bytes_already_stays(folder):
    before = identities(folder)
    written(folder, OLD)
    assert identities(folder) == before
    written(folder, {**OLD, "b.json": "new"})
    after = identities(folder)
    assert {name for name in after if after[name] != before[name]} == {"b.json", PARTS}
    check_parts(folder, OLD)


def test_a_link_is_replaced_even_if_it_leads_to_these_bytes(folder, tmp_path):
    (tmp_path / "elsewhere").write_text(OLD["a.md"])
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(tmp_path / "elsewhere")
    written(folder, OLD)
    assert not (folder / "a.md").is_symlink()
    check_parts(folder, OLD)


def test_two_that_write_at_once_do_not_mix_their_files(tmp_path):
    together = Barrier(4)

    def write(number):
        together.wait()
        written(tmp_path, {f"{name}.txt": f"{number}" * 10 for name in "abcdef"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    check_parts(tmp_path, [])
    assert len({(tmp_path / f"{name}.txt").read_text() for name in "abcdef"}) == 1


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda f: (f / "a.md").write_text("new"), "edited: a.md is not what parts.json names"),
        (lambda f: (f / "b.json").unlink(), "b.json is not"),
        (lambda f: (f / "a.md").unlink() or (f / "a.md").mkdir(), "a.md is not"),
        (lambda f: (f / PARTS).unlink(), "parts.json: no such file"),
        (lambda f: (f / PARTS).write_text("{}"), "names no files"),
        (lambda f: (f / PARTS).write_text("[]"), "expected a JSON object"),
        (lambda f: (f / PARTS).write_text('{"parts": {"a.md": 1}}'), "names no files"),
        (lambda f: (f / PARTS).write_text('{"parts": {}}'), "a.md, b.json, c.jsonl are not"),
        (lambda f: (f / PARTS).write_text('{"parts": {"../x": "y"}}'), r"\.\./x, a.md"),
        (lambda f: (f / PARTS).write_text("[" * 10**5), "nested deeper"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_named(folder, edit, message):
    edit(folder)
    with pytest.raises(DataError, match=message):
        check_parts(folder, OLD)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        written(tmp_path / "file", NEW)


@pytest.mark.parametrize("sizes", [(1, 70_000, 0, 5), (65_535, 1, 1), (30_000,) * 7, ()])
def test_pieces_of_any_size_are_written_and_compared_in_their_order(tmp_path, sizes):
    pieces = [chr(97 + n) * size for n, size in enumerate(sizes)]
    for last in ("", "x", "", "ü", "u"):
        texts = [*pieces, last]
        write_parts(tmp_path, {"a.txt": iter(texts)})
        check_parts(tmp_path, ["a.txt"])
        assert (tmp_path / "a.txt").read_text() == "".join(texts)
