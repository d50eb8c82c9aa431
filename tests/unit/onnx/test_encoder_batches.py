"""Batches of an encoder run at the same time: all rows once, few in memory, errors first."""

from __future__ import annotations

import json
import threading
from functools import partial

import numpy as np
import pytest
from fakes.encoders import write_encoder

from fairgate.domain.errors import ModelError
from fairgate.onnx.classifier import OnnxClassifier
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_session import EncoderSession, Row

LENGTHS = [3, 40, 9, 9, 9, 17, 200, 1, 9, 33, 8, 8]


class Session(EncoderSession):
    """Counts the rows that run at one time; a row's state is its length."""

    pads = True

    def __init__(self, threads, fails_at=None, device="cpu"):
        super().__init__(None, device=device, threads=threads)
        self.running = self.most = self.batches = 0
        self.names = set()
        self._fails_at = fails_at
        self._lock = threading.Lock()

    def run(self, rows, width):
        with self._lock:
            self.running += len(rows)
            self.batches += 1
            self.most = max(self.most, self.running)
            self.names.add(threading.current_thread().name)
        if self._fails_at == width:
            raise ModelError(f"failed at {width}")
        states = np.array([[len(row.ids)] for row in rows])
        with self._lock:
            self.running -= len(rows)
        return states


def rows():
    return [Row(ids=[0] * length, types=[0] * length) for length in LENGTHS]


def taken(session, batch_size):
    def take(places, states):
        return dict(zip(places, states[:, 0].tolist(), strict=True))

    parts = session.each_batch(rows(), batch_size, int, take)
    return [item for part in parts for item in part.items()]


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("batch_size", [1, 2, 5, 32])
def test_every_row_is_taken_once_and_few_run_at_a_time(threads, batch_size):
    session = Session(threads)
    found = taken(session, batch_size)
    assert sorted(found) == list(enumerate(LENGTHS))
    # Each thread has one row at least.
    assert session.most <= max(batch_size + threads - 1, threads)


@pytest.mark.parametrize(("device", "most"), [("cpu", 16), ("cuda", 64)])
def test_without_a_number_as_many_run_as_the_device_gains_from(device, most):
    session, many = Session(1, device=device), [Row(ids=[0], types=[0])] * 100
    parts = session.each_batch(many, None, int, lambda places, states: len(states))
    assert sum(parts) == 100
    assert session.most == most


@pytest.mark.parametrize("made", [OnnxEncoder, partial(OnnxClassifier, labels={}, allowed=None)])
def test_encoders_and_classifiers_leave_the_number_to_the_device(made, tmp_path, monkeypatch):
    write_encoder(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["id2label"] = {"0": "good", "1": "bad"}
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    asked = []
    monkeypatch.setattr(
        EncoderSession, "each_batch", lambda self, rows, size, *_: asked.append(size) or iter(())
    )
    engine = made(tmp_path / "m")
    with pytest.raises(KeyError):  # nothing was answered
        engine.embed(["a"]) if made is OnnxEncoder else engine.classify(["a"])
    assert asked == [None]


def test_no_rows_load_nothing():
    class Unloaded(Session):
        @property
        def pads(self):
            raise AssertionError

    session = Unloaded(2)
    assert list(session.each_batch([], 32, int, lambda places, states: places)) == []


def test_one_thread_is_the_callers():
    session = Session(1)
    taken(session, 4)
    assert session.names == {threading.current_thread().name}


def test_an_error_ends_the_rest_and_no_thread_goes_on():
    session = Session(2, fails_at=208)  # the widest, which runs first
    before = threading.active_count()
    with pytest.raises(ModelError, match="failed at 208"):
        taken(session, 1)
    assert threading.active_count() == before
    assert session.batches < len(LENGTHS)


def test_a_reader_that_stops_early_ends_the_rest():
    session = Session(2)
    parts = session.each_batch(rows(), 1, int, lambda places, states: places)
    assert next(parts) == [6]
    parts.close()
    assert session.running == 0
