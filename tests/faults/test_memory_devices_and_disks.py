"""Memory, disk or card run out or are not there: exit code 4, what to do, and nothing is lost."""

from __future__ import annotations

import pytest
from faults.test_whole_runs import Place

from fairgate.adapters.onnx_decoder import OnnxDecoder
from fairgate.adapters.onnx_engine.decoder_session import DecoderSession
from fairgate.adapters.onnx_engine.runtime_errors import mapped_errors
from fairgate.domain.errors import ExitCode


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

    def counted(self, row, logits):
        take(self, row, logits)
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
    first, second = answered
    assert 0 < kept == first - second


def test_memory_that_holds_fewer_prompts_is_told_and_changes_no_byte(place, monkeypatch):
    assert place.run() == 0
    expected = place.record()
    run = DecoderSession._run

    def limited(self, ids, *given, **options):
        with mapped_errors("the decoder failed", "Export it again."):
            if len(ids) > 7:
                raise MemoryError
        return run(self, ids, *given, **options)

    monkeypatch.setattr(DecoderSession, "_run", limited)
    assert place.run("--cache", "other") == 0
    assert place.record() == expected
    assert "memory ran out with 16 prompts at a time" in place.err
