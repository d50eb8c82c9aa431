"""Output that cannot be written or encoded: never a traceback, and no answer of a command changes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from functional.conftest import Workspace

from fairgate.cli import cli, main

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
NONE = ("--baseline", "none", "--quiet", "--report-only")
COMMANDS = {
    "init": [],
    "run": ["policy.yaml", "--out", "other", *NONE],
    "merge": ["policy.yaml", "parts", "--out", "merged", *NONE],
    "check": ["policy.yaml"],
    "doctor": ["policy.yaml"],
    "plan": ["policy.yaml"],
    "rescore": ["out", "--out", "again", "--report-only"],
    "explain": ["out", "s0"],
    "record": ["out", "--out", "record.json"],
    "table": ["table.csv", "--limit", "0.2", "--out", "judged", "--quiet", "--report-only"],
    "comment": ["out"],
    "power": ["policy.yaml"],
    "blame": ["before", "after", "--policy", "policy.yaml"],
    "baseline accept": ["out", "--reason", "é", "--output", "b.json"],
    "baseline anchor": ["out", "--reason", "é", "--output", "b.anchor.json"],
    "baseline diff": ["base.json", "other.json"],
    "baseline verify": ["base.json"],
    "corpus prepare": ["corpus.jsonl", "--output", "prepared.jsonl"],
    "generate": ["template", "--out", "cases.jsonl", "--limit", "5", "--force"],
    "judge evaluate": ["judge.yaml", "labelled.jsonl"],
    "export": ["no/model"],
    "github comment": [],
    "github merge": [],
    "github run": [],
    "relations explain": ["set-equivalence"],
    "relations list": [],
    "metrics list": [],
}
ANSWERED = {
    "run", "merge", "check", "doctor", "rescore", "record", "table", "baseline accept",
    "baseline anchor",
    "baseline diff", "baseline verify", "github comment", "github merge", "github run",
}  # fmt: skip
"""Their exit code is the answer, or says that a file is written; the others print their result."""
DONE = {
    "init", "run", "merge", "check", "doctor", "plan", "rescore", "record", "table", "power", "baseline accept",
    "baseline anchor", "baseline diff", "baseline verify", "comment", "corpus prepare", "generate",
    "relations explain", "relations list", "metrics list",
}  # fmt: skip
"""Those that end with 0 in this folder."""
SILENT = {"generate"}
"""They print nothing on stdout where all is well."""


def closed_pipe():
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w")


def encoded(name):
    return lambda: io.TextIOWrapper(io.BytesIO(), encoding=name)


BROKEN = {"full": FULL.open, "pipe": closed_pipe, "closed": lambda *_: None}
ENCODED = {"ascii": encoded("ascii"), "latin-1": encoded("latin-1")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("outputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("FAIRGATE_CACHE", str(root / "cache"))
        workspace = Workspace(root)
        rows = [{"id": f"s{n}", "text": f"Das schöne Café № {n} 😀."} for n in range(6)]
        (root / "sources.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        workspace.policy(gates="  - {metric: asr/generation, max: 0.001}\n")
        workspace.answers(lambda key: "negative" if key.endswith("/woman") else "positive")
        lines = [json.dumps({"id": f"d{n}", "text": f"text {n} of some length"}) for n in range(30)]
        (root / "corpus.jsonl").write_text("\n".join(lines))
        pair = {"relation": "substitute-one", "source": "A man naps.", "follow_up": "A woman naps."}
        (root / "pairs.jsonl").write_text(json.dumps({**pair, "valid": True}) + "\n")
        outcomes = [f"q{n},{who},{n % 3}" for n in range(40) for who in ("woman", "man", "control")]
        (root / "table.csv").write_text("\n".join(["source,who,outcome", *outcomes]))
        for name in ("before", "after"):
            (root / name).mkdir()
        for arguments in (
            ["run", "policy.yaml", "--out", "out", *NONE],
            ["run", "policy.yaml", "--shard", "1/1", "--out", "parts"],
            ["baseline", "accept", "out", "--reason", "é", "--output", "base.json"],
            ["baseline", "accept", "out", "--reason", "ü", "--output", "other.json"],
        ):
            assert workspace.run(*arguments) == 0, arguments
    return root


def leaves(command, path=()):
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), (*path, name))


def test_every_command_is_walked():
    assert {*leaves(cli)} == {*COMMANDS}


def ended(command, monkeypatch, out=io.StringIO, err=io.StringIO):
    with monkeypatch.context() as patch:
        streams = [make("w") if make is FULL.open else make() for make in (out, err)]
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        code = main([*command.split(), *COMMANDS[command]])
    said = streams[1].getvalue() if isinstance(streams[1], io.StringIO) else ""
    for stream in streams:
        if stream is not None and not isinstance(stream, io.StringIO):
            if isinstance(stream.buffer.raw if hasattr(stream.buffer, "raw") else 0, io.FileIO):
                stream.close()
            else:
                stream.flush()
                stream.buffer.getvalue().decode(stream.encoding)
    return code, said


@pytest.mark.walk(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_broken_output_changes_an_answer(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FAIRGATE_CACHE", str(folder / "cache"))
    code, said = ended(command, monkeypatch)
    assert (code == 0) == (command in DONE), (code, said)
    wrong = []
    for name, broken in (BROKEN | ENCODED).items():
        lost = code == 0 and name in BROKEN and command not in (ANSWERED | SILENT)
        for place, streams, wanted in (
            ("out", {"out": broken}, 4 if lost else code),
            ("err", {"err": broken}, code),
            ("both", {"out": broken, "err": broken}, 4 if lost else code),
        ):
            found, said = ended(command, monkeypatch, **streams)
            if found != wanted or "Traceback" in said or "internal error" in said:
                wrong.append((name, place, found, wanted, said[-200:]))
            if name in BROKEN and place == "out" and code == 0 and command not in SILENT:
                is_told = name != "pipe"  # its reader has left, as `head` does
                assert said.count("the output cannot be written (") == is_told, said
    assert wrong == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_lines_of_json_stay_lines_of_json(folder, monkeypatch, encoding):
    monkeypatch.chdir(folder)
    stream = encoded(encoding)()
    with contextlib.redirect_stdout(stream):
        assert main(["plan", "policy.yaml"]) == 0
    stream.flush()
    lines = stream.buffer.getvalue().decode(encoding).splitlines()
    assert any("Café № 3 😀" in json.loads(line)["prompt"] for line in lines)


START = (sys.executable, "-m", "fairgate")


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ("--help >/dev/full", 4), ("run --help >/dev/full", 4), ("--version >&-", 4),
        ("--version 2>&-", 0), ("check policy.yaml >&-", 0), ("check none.yaml >&- 2>&-", 2),
        ("run policy.yaml --out o --baseline none >&-", 1),
        ("run policy.yaml --out o --baseline none >&- 2>&- <&-", 1),
        ("run policy.yaml --out o --baseline none >/dev/full 2>/dev/full", 1),
        ("run policy.yaml --out o --baseline none | true", 1),
    ],
)  # fmt: skip
def test_so_it_is_for_processes(folder, shown, code):
    script = f'"$0" -m fairgate {shown}' + '; exit "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "FAIRGATE_CACHE": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
