"""File names and half characters that no record could hold: refused with their place."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fairgate.cli import main

NAME = os.fsdecode(b"corpus\xff.jsonl")


def corpus(path, **changes):
    row = {"id": "1", "text": "words enough to be kept here", "label": "fine"}
    path.write_text("".join(json.dumps(one) + "\n" for one in [row | changes, row | {"id": "2"}]))
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", NAME], ["corpus", "prepare", NAME, "--output", "o.jsonl"],
        ["corpus", "prepare", "c.jsonl", "--output", NAME], ["baseline", "verify", NAME],
        ["run", "p.yaml", "--out", NAME], ["metrics", NAME],
    ],
)  # fmt: skip
def test_a_name_that_is_no_utf_8_is_refused(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    corpus(tmp_path / "c.jsonl")
    assert main(arguments) == 2
    assert r"is not UTF-8; rename the file or folder" in capsys.readouterr().err


def test_a_folder_that_is_no_utf_8_or_gone_is_refused(tmp_path, monkeypatch, capsys):
    folder = tmp_path / os.fsdecode(b"\xfe")
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert main(["metrics", "list"]) == 2
    assert "the current folder is not UTF-8" in capsys.readouterr().err
    folder.rmdir()
    assert main(["metrics", "list"]) == 2
    assert "the current folder does not exist any more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"label": "\ud800"}, [], ":1: 'label' holds half a surrogate pair"),
        ({"text": "some words \udead that are long"}, [], ":1: 'text' holds half a surrogate pair"),
        ({"id": "\udfff"}, [], ":1: column 'id' holds"),
        ({"te\ud800xt": "x"}, [], None),
        ({"other": "\ud800"}, ["--label", "other"], ":1: 'other' holds half a surrogate pair"),
        ({"text": "x" * (2**20 + 1) + "\ud800"}, [], None),
    ],
)
def test_half_a_surrogate_pair_in_a_corpus_has_its_place(
    changes, options, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    corpus(tmp_path / "c.jsonl", **changes)
    command = ["corpus", "prepare", "c.jsonl", "--output", "o.jsonl", "--tokenizer", "bundled"]
    code = main([*command, *options])
    told = capsys.readouterr().err
    assert code == (0 if said is None else 4), told
    assert (said or "") in told
    assert "bug" not in told


def test_a_corpus_of_one_text_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["corpus", "prepare", "c.jsonl", "--output", "o.jsonl", "--tokenizer", "bundled"]
    corpus(tmp_path / "c.jsonl")
    assert main(command) == 0
    assert "note: all documents have the same text" in capsys.readouterr().out
    corpus(tmp_path / "c.jsonl", text="other words that are kept as well")
    assert main(command) == 0
    assert "same text" not in capsys.readouterr().out


OFFLINE = """
import socket, sys, time
from huggingface_hub import constants
from fairgate.cli import main

def unknown(*_args, **_kwargs):
    raise socket.gaierror(-2, "Name or service not known")

def wait(seconds):
    raise SystemExit(f"waits {seconds} s for a hub that cannot be reached")

socket.getaddrinfo, time.sleep, constants.HF_HUB_OFFLINE = unknown, wait, False
sys.exit(main(["corpus", "prepare", "c.jsonl", "--output", "o.jsonl"]))
"""


@pytest.mark.whole
def test_without_a_network_the_bundled_tokenizer_counts_at_once(tmp_path):
    corpus(tmp_path / "c.jsonl")
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "tokens counted by: bundled (gpt2 was not available)" in done.stdout
