"""Memory, disk or GPU run out or are not there: exit code 4, what to do, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3

import onnxruntime
import pytest
from faults.test_whole_runs import Place

from fairgate.domain.errors import ExitCode
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.session import mapped_errors
from fairgate.systems.result_store import SqliteResultStore


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = Place(tmp_path, capsys)
    made.policy()
    return made


@pytest.fixture
def answered(monkeypatch):
    """The prompts that were asked of the model, by their positions' number."""
    asked, generate = [], OnnxDecoder.generate

    def counted(self, requests):
        asked.append(len(requests))
        return generate(self, requests)

    monkeypatch.setattr(OnnxDecoder, "generate", counted)
    return asked


def test_memory_that_does_not_hold_one_prompt_ends_the_run_and_the_next_goes_on(
    place, answered, monkeypatch
):
    taken, take, run = [], OnnxDecoder._take, DecoderSession._run

    def counted(self, row, *given):
        take(self, row, *given)
        taken.append(row.stopped is not None)

    def limited(self, *given, **options):
        with mapped_errors("the decoder 'demo-slm' failed on 2 rows", "Export it again."):
            if sum(taken) >= 3:
                raise RuntimeError("bfc_arena.cc: Failed to allocate memory for requested buffer")
        return run(self, *given, **options)

    monkeypatch.setattr(OnnxDecoder, "_take", counted)
    monkeypatch.setattr(DecoderSession, "_run", limited)
    assert place.run("--batch-size", "2") == ExitCode.EXECUTION
    assert "Memory ran out with one row at a time" in place.err
    assert "--precision int8" in place.err
    assert not (place.root / "out").exists()
    kept = sum(taken)
    monkeypatch.setattr(DecoderSession, "_run", run)
    assert place.run() == 0
    first, second, *_ = answered  # what attribution asks comes last
    assert 0 < kept == first - second


@pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="CUDA is here"
)
def test_a_gpu_that_is_not_there_ends_the_run_with_what_is_installed(place):
    assert place.run("--device", "cuda") == ExitCode.EXECUTION
    assert f"installed: onnxruntime {onnxruntime.__version__}" in place.err
    assert "install `fairgate[cuda]` instead of `fairgate[cpu]`, or use --device cpu" in place.err
    assert not (place.root / "out").exists()
    assert place.run() == 0


def test_a_disk_that_fills_in_the_answer_store_loses_nothing(place, answered, monkeypatch):
    # SQLite's own error of a full disk: the file may have no more pages than it has by now.
    put, kept = SqliteResultStore.put_many, []

    def on_a_full_disk(self, kind, items):
        items = list(items)
        if kind == "answer" and kept:
            [pages] = self._connection.execute("PRAGMA page_count").fetchone()
            self._connection.execute(f"PRAGMA max_page_count = {pages}")
            items = [(key, value + " " * 9000) for key, value in items]
        put(self, kind, items)
        if kind == "answer":
            kept.extend(key for key, _ in items)

    monkeypatch.setattr(SqliteResultStore, "put_many", on_a_full_disk)
    monkeypatch.setattr("fairgate.systems.execute._batches", one_by_one)
    assert place.run() == ExitCode.EXECUTION
    assert "store.sqlite: the disk is full; results stored so far are kept" in place.err
    assert "--cache" in place.err
    assert not (place.root / "out").exists()
    assert len(kept) == 1
    monkeypatch.undo()
    with sqlite3.connect(place.root / "cache" / "store.sqlite") as stored:
        [number] = stored.execute("SELECT count(*) FROM results WHERE kind = 'answer'").fetchone()
    stored.close()
    assert number == 1
    os.chdir(place.root)
    assert place.run() == 0


def one_by_one(answers):
    return ([answer] for answer in answers)
