"""What stands at a file's place, a reader that leaves, a locale, a limit: told by its own name."""

import errno
import os
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from functional.conftest import Workspace

from fairgate.cli import explain
from fairgate.domain.errors import DataError, StoreError
from fairgate.io.durable import check_parts, write_parts, write_text
from fairgate.systems.result_store import SqliteResultStore

GATES = "  - {metric: asr/generation, max: 0.9, regression: 0.1, budget: 0.1}\n"


@pytest.fixture
def place(workspace):
    workspace.policy(gates=GATES)
    workspace.answers(lambda _: "positive")
    return workspace


def started(place: Workspace, *arguments, limit=None, **environment):
    """Run the command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "fairgate", *arguments],
        cwd=place.root, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "FAIRGATE_CACHE": str(place.root / "cache"), **environment},
        preexec_fn=limit,
    )  # fmt: skip


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))  # a short name, as sockets need


ODD = {
    "folder": lambda path: path.mkdir(),
    "dangling link": lambda path: path.symlink_to("nowhere.json"),
    "link to a folder": lambda path: path.symlink_to(path.parent),
    "pipe": os.mkfifo,
    "socket": bound_socket,
}


def test_what_is_no_file_at_the_place_of_a_baseline_is_no_first_run(place):
    wrong = []
    folder = place.root / "baselines"
    folder.mkdir()
    for kind, put in ODD.items():
        for name, option in (
            ("small.json", ()), ("small.anchor.json", ()),
            ("other.json", ("--baseline", "baselines/other.json")),
        ):  # fmt: skip
            path = folder / name
            put(path)
            for command in ("run", "check"):
                if command == "check" and option:
                    continue
                out = ("--out", "out", *option) if command == "run" else ()
                code = place.run(command, "policy.yaml", *out)
                wanted = 3 if command == "run" else 2
                said = " at the place of the " in place.err and "remove it" in place.err
                if code != wanted or not said or (place.root / "out").exists():
                    wrong.append((kind, name, command, code, place.err[-300:]))
            path.rmdir() if kind == "folder" else path.unlink()
    assert not wrong


def test_what_is_no_folder_at_the_place_of_baselines_is_no_first_run(place):
    wrong = []
    for kind, put in ODD.items():
        if "folder" in kind:
            continue
        for name in ("baselines", "elsewhere/baselines"):
            path = place.root / name
            path.parent.mkdir(exist_ok=True)
            put(path)
            option = () if name == "baselines" else ("--baseline", f"{name}/small.json")
            code = place.run("run", "policy.yaml", "--out", "out", *option)
            if code != 3 or " at the place of the folder of the " not in place.err:
                wrong.append((kind, name, code, place.err[-300:]))
            path.unlink()
    assert not wrong
    (place.root / "baselines").write_text("a file")
    assert place.run("run", "policy.yaml", "--out", "out") == 3
    assert "baselines: no folder is at the place of the folder" in place.err


@pytest.mark.whole
def test_a_reader_that_has_enough_ends_a_command_quietly(place):
    script = 'for n in "plan policy.yaml" "check policy.yaml" "relations list"; do "$0" -m fairgate $n | true; done'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable],
        cwd=place.root, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    # How many questions there are is said beside the plan.
    assert re.fullmatch(r"460 questions: [^\n]*\n", done.stderr)


def test_a_file_that_the_system_does_not_read_is_called_unreadable_and_not_edited(
    tmp_path, monkeypatch
):
    write_parts(tmp_path, {"a.json": ["{}"], "b.json": ["{}"]})
    check_parts(tmp_path, ["a.json"])
    opened, codes = os.open, []

    def refused(path, *arguments, **options):
        if Path(path).name == "b.json":
            raise OSError(codes[-1], os.strerror(codes[-1]), str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refused)
    for code in (errno.EACCES, errno.EIO, errno.ESTALE):
        codes.append(code)
        with pytest.raises(DataError, match=r"b\.json: cannot be read \(") as caught:
            check_parts(tmp_path, ["a.json"])
        assert "edited" not in str(caught.value)


def test_a_name_that_the_locale_cannot_hold_is_no_wrong_name(place):
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (place.root / "é.yaml").write_text((place.root / "policy.yaml").read_text())
    done = started(place, "check", "é.yaml", **ascii_only)
    assert done.returncode == 2
    assert "is UTF-8, but the locale's encoding is" in done.stderr
    assert "PYTHONUTF8=1" in done.stderr
    assert "rename" not in done.stderr
    assert started(place, "check", "é.yaml", **ascii_only | {"PYTHONUTF8": "1"}).returncode == 0


def test_a_limit_of_files_sizes_is_called_by_its_name(place, tmp_path, monkeypatch):
    # Python does not notice that a compiled module was cut, and could not import it any more.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))

    done = started(place, "run", "policy.yaml", "--out", "out", limit=small)
    assert done.returncode == 4, done.stderr
    assert "ulimit -f" in done.stderr
    assert "disk is full" not in done.stderr
    assert not (place.root / "out" / "run.json").exists()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(StoreError, match="ulimit -f"):
            SqliteResultStore(tmp_path / "new.sqlite")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    store = SqliteResultStore(tmp_path / "store.sqlite")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError, match="ulimit -f"):
            store.put_many("kind", [("key", "x" * 200_000)])
        with pytest.raises(StoreError, match="ulimit -f"):
            write_text(tmp_path / "file", "x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.close()


def test_a_store_is_one_file_once_a_run_has_ended(tmp_path):
    path = tmp_path / "store.sqlite"
    store = SqliteResultStore(path)
    store.put_many("kind", [("key", "x" * 50_000)])
    log = tmp_path / "store.sqlite-wal"
    assert log.stat().st_size > 0
    store.fold()
    assert log.stat().st_size == 0
    other = SqliteResultStore(path)
    store.put_many("kind", [("more", "y")])
    with other._lock, other._connection:
        other._connection.execute("BEGIN")
        other._connection.execute("SELECT count(*) FROM results").fetchone()
        store.fold()  # somebody reads: no error, nothing lost
        other._connection.execute("COMMIT")
    assert dict(other.get_many("kind", ["key", "more"])) == {"key": "x" * 50_000, "more": "y"}
    store.close()
    other.close()


ENDING = """
import ctypes, threading, os
def exit(status):
    ctypes.CDLL(None).exit(status)
def thread(status):
    other = threading.Thread(target=exit, args=(status,)); other.start(); other.join()
def held(status):
    ctypes.PyDLL(None).exit(status)
{how}({status})
"""


@pytest.mark.whole
def test_a_library_that_ends_the_process_gives_no_verdict(place):
    """As OpenBLAS does with 1 where it finds no memory: by the C library, on any thread."""
    wrong = []
    path = place.root / "own"
    path.mkdir()
    gone = f"import sys; sys.path.insert(0, {str(path)!r}); sys.argv = ['fairgate', 'run', 'policy.yaml']; "
    for how, status in (("exit", 0), ("exit", 1), ("thread", 1), ("held", 1)):
        (path / "giving_up.py").write_text(ENDING.format(how=how, status=status))
        patched = (
            gone + "import fairgate.gate.gate as gate\n"
            "def run_gate(*_, **__):\n    import giving_up\n"
            "gate.run_gate = run_gate\nfrom fairgate.__main__ import main\nsys.exit(main())"
        )
        done = subprocess.run(
            [sys.executable, "-c", patched],
            cwd=place.root, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        if done.returncode != 4 or "or a library ended it" not in done.stderr:
            wrong.append((how, status, done.returncode, done.stderr[-300:]))
    assert not wrong


@pytest.mark.whole
def test_the_exit_code_of_a_process_is_still_its_own(place):
    place.answers(lambda key: "negative" if "/" in key and "neutral" not in key else "positive")
    for arguments, code in (
        (["--help"], 0), (["check", "none.yaml"], 2), (["check", "policy.yaml"], 0),
        (["run", "policy.yaml", "--out", "out", "--quiet"], 1),
    ):  # fmt: skip
        done = started(place, *arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert "a library" not in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("can't start new thread"),
        RuntimeError("std::bad_alloc"),
        BaseException("ThreadPoolBuildError { kind: IOError(Os { code: 11, kind: WouldBlock }) }"),
        MemoryError(),
    ],
)
def test_a_lack_of_memory_or_threads_is_no_bug_of_ours(error, capsys):
    assert explain(error) == 4
    said = capsys.readouterr().err
    assert "not enough memory" in said
    assert "This is a bug" not in said
