"""Files appear whole or not at all."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from fairgate.domain.errors import StoreError, UsageError
from fairgate.io.durable import durable_file, write_bytes, write_lines, write_text


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_folder_is_no_name_of_a_file(path):
    with pytest.raises(UsageError, match="--output names the folder"):
        write_text(path, "x", option="--output")


def test_content_checksum_and_mode(tmp_path):
    path = tmp_path / "new" / "folder" / "report.md"
    write_text(path, "grün\n")
    assert path.read_bytes() == "grün\n".encode()
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    found = write_lines(path, (f"line {i}" for i in range(3000)))
    assert found == hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.read_bytes().count(b"\n") == 3000


@pytest.fixture
def path(tmp_path):
    """Return a file with `old` in it; at the end no temporary file may stand beside it."""
    write_bytes(tmp_path / "a.txt", b"old")
    yield tmp_path / "a.txt"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_nothing_is_seen_before_the_end_and_an_error_leaves_the_old_file(path):
    def lines():
        yield "half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines(path, lines())
    with durable_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.ENOSPC, "the disk is full.*--out"), (errno.EROFS, "Read-only file system.*--out")],
)
def test_a_full_or_read_only_disk_leaves_the_old_file(path, monkeypatch, call, code, message):
    def refuse(*_arguments):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(StoreError, match=message):
            write_bytes(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_file_where_a_folder_is_needed(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"file/a\.txt: cannot be written.*--output"):
        write_bytes(tmp_path / "file" / "a.txt", b"", option="--output")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    for path in (pipe, tmp_path / "link"):
        # Both ends here: opening one would wait for the other.
        end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        try:
            write_text(path, "text\n")
            assert os.read(end, 100) == b"text\n"
        finally:
            os.close(end)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "pipe"]
    assert pipe.is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_a_device_stays_one(tmp_path):
    """Replaced by an account that may, `/dev/null` would be a file for every program."""
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    write_lines(link, ["x"] * 10)
    assert link.is_char_device()
    if (full := Path("/dev/full")).exists():
        (tmp_path / "full").symlink_to(full)
        with pytest.raises(StoreError, match="full"):
            write_text(tmp_path / "full", "x")
