"""Where an index is built: one process at a time, and it appears whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from fairgate.domain.errors import StoreError
from fairgate.domain.ports import SILENT, Progress

_PREFIX = ".build-"


@contextlib.contextmanager
def sole_builder(target: Path, progress: Progress | None = None) -> Iterator[None]:
    """Wait until no other process builds `target`; then none does within the block.

    Leftovers of killed processes are removed. Raises StoreError where nothing can be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target.parent)
        with _held(_lock_path(target), progress or SILENT):
            yield
    except OSError as error:
        raise StoreError.of_os_error(error, path=target, option="--cache") from error


@contextlib.contextmanager
def build_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder that takes `target`'s place at the end of the block, or vanishes.

    Within `sole_builder`, which says what OSErrors mean.
    """
    building = target.with_name(f"{_PREFIX}{target.name}")
    try:
        building.mkdir()
        yield building
        remove_whole(target)
        building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def remove_whole(folder: Path) -> None:
    """Remove an index at once: nobody ever sees a part of it. Where there is none, do nothing."""
    aside = folder.with_name(f"{_PREFIX}{secrets.token_hex(8)}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _held(path: Path, progress: Progress) -> Iterator[None]:
    while True:
        with path.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.note("another process builds this index; waiting until it has")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_same(path, lock.fileno()):
                continue  # its holder removed the file: whoever comes next locks another one
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock_path(target: Path) -> Path:
    return target.with_name(f"{_PREFIX}{target.name}.lock")


def _remove_leftovers(parent: Path) -> None:
    """Remove build folders whose process has ended: their lock is free."""
    names = {path.name.removesuffix(".lock") for path in parent.glob(f"{_PREFIX}*")}
    for name in sorted(names):
        with if_free(parent / name.removeprefix(_PREFIX)) as free:
            if free:
                shutil.rmtree(parent / name, ignore_errors=True)


@contextlib.contextmanager
def if_free(target: Path) -> Iterator[bool]:
    """Say whether no process builds `target`; if so, none does within the block."""
    path = _lock_path(target)
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(path.open("ab"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = _is_same(path, lock.fileno())
        except OSError:
            free = False
        yield free
        if free:
            path.unlink(missing_ok=True)
