"""Batches fit memory: halved where it ran out, without changing a bit or asking anything twice."""

import contextlib
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from fakes.decoders import DEMO, TokenDecoder
from fakes.encoders import write_encoder

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import batches, decoder_session
from fairgate.onnx.batches import MOST, BatchSize
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.encoder import EncoderSession, OnnxEncoder
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import mapped_errors
from fairgate.onnx.trials import open_decoder

RNG = np.random.default_rng(3)
PROMPTS = [RNG.integers(3, 1000, size).tolist() for size in (3, 5, 9, 30, 33, 34, 35, 40, 70, 99)]
STEPS = 4
SAID = [
    RuntimeError("Error in execution: bfc_arena.cc Failed to allocate memory for requested buffer"),
    RuntimeError("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : bad allocation"),
    MemoryError("std::bad_alloc"),
]


def leave_room_for(most, error, shapes, monkeypatch):
    """Let memory run out where more rows than that are read or stepped."""

    def limited(run):
        def asked(self, first, *given, **options):
            rows = len(first[0] if isinstance(first, list) else first)
            shapes.append(rows)
            with mapped_errors("the decoder failed", "Export it again."):
                if rows > most:
                    raise error
            return run(self, first, *given, **options)

        return asked

    monkeypatch.setattr(DecoderSession, "_run", limited(DecoderSession._run))
    monkeypatch.setattr(DecoderSession, "step_in_place", limited(DecoderSession.step_in_place))


@pytest.fixture(scope="module")
def expected():
    return TokenDecoder(DEMO, STEPS).answers(PROMPTS)


@pytest.mark.walk(3)
@pytest.mark.parametrize(
    ("error", "joins"), [(SAID[0], True), (SAID[2], False)], ids=["joined", "by width"]
)
def test_memory_that_runs_out_halves_the_batch_and_changes_no_token(
    expected, error, joins, monkeypatch
):
    engine, shapes = TokenDecoder(DEMO, STEPS), []
    engine._session.joins = joins
    leave_room_for(2, error, shapes, monkeypatch)
    assert engine.answers(PROMPTS) == expected
    # Pieces of prompts run twice as many rows together as prompts do.
    assert engine._batch.rows in (1, 2)
    assert engine.notices[0].startswith("memory ran out with 16 prompts at a time; the run went on")
    shapes.clear()
    assert engine.answers(PROMPTS) == expected
    assert max(shapes) <= 2


def test_no_room_for_one_row_is_an_error_with_what_to_do(monkeypatch):
    engine = TokenDecoder(DEMO, STEPS)
    engine._session  # noqa: B018 loads it
    leave_room_for(1, SAID[1], [], monkeypatch)
    with pytest.raises(ModelError, match=r"bad allocation\. Memory ran out with one row at a time"):
        engine.answers(PROMPTS)
    assert [notice.split(";")[0].split()[-5] for notice in engine.notices] == ["16", "8", "4", "2"]


def asked(engine, how):
    requests = [GenerationRequest(prompt="Who was late?", options=("Maria", "He"))] * 3
    return dict(engine.generate(requests)) if how == "generate" else engine.score_options(requests)


@pytest.mark.parametrize("how", ["generate", "score"])
def test_memory_without_room_for_the_model_is_not_tried_again_with_fewer_rows(how, monkeypatch):
    loaded = []

    def no_room(*given, **options):
        loaded.append(1)
        raise OutOfMemoryError("the graph cannot be loaded", "Use more memory.")

    monkeypatch.setattr(decoder_session, "open_session", no_room)
    engine = OnnxDecoder(DEMO, decoding=Decoding())
    assert list(engine.generate([])) == engine.score_options([]) == []
    assert not loaded
    with pytest.raises(ModelError) as found:
        asked(engine, how)
    assert str(found.value) == "the graph cannot be loaded. Use more memory."
    assert (len(loaded), engine.notices) == (1, [])


def done_once(function):
    """Return a function that gives what the first call gave."""
    found = []

    def first(*given, **options):
        if not found:
            found.append(function(*given, **options))
        return found[0]

    return first


def test_memory_that_runs_out_in_a_trial_ends_it_and_decides_nothing(monkeypatch):
    """What a trial finds decides which kernels run: it must not depend on the free memory."""
    folder, calls, fatal = ModelFolder.find(DEMO), [], []

    def counted(run):
        def fails(self, *given, **options):
            calls.append(1)
            if [len(calls)] == fatal:
                raise OutOfMemoryError("the decoder failed", "Use more memory.")
            return run(self, *given, **options)

        return fails

    monkeypatch.setattr(DecoderSession, "_run", counted(DecoderSession._run))
    monkeypatch.setattr(DecoderSession, "step_in_place", counted(DecoderSession.step_in_place))
    for name in ("read_decoder_graph", "open_session"):  # once, not for each trial
        monkeypatch.setattr(decoder_session, name, done_once(getattr(decoder_session, name)))
    open_decoder(folder, device="cpu", threads=1)
    number = len(calls)
    assert number > 10
    for place in range(1, number + 1):
        calls.clear()
        fatal[:] = [place]
        with pytest.raises(OutOfMemoryError):
            open_decoder(folder, device="cpu", threads=1)


@contextlib.contextmanager
def address_space(spare):
    """Let this process take so many bytes more, and no others."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = batches._in_kilobytes(batches._STATUS, "VmSize:")
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _answers_of_a_small_process():
    """Ask for more at once than the process may hold; return what came of it."""
    # Attention of whole prompts takes 4 heads * 1200 * 1200 * 4 bytes a row, for scores and mask.
    prompts = [RNG.integers(3, 1000, 1200).tolist() for _ in range(16)]
    engine = TokenDecoder(DEMO, 1, threads=1)
    engine.answers([[5, 6, 7]])
    with address_space(320 * 2**20):
        found = engine.answers(prompts)
    expected = TokenDecoder(DEMO, 1, threads=1, batch_size=2).answers(prompts[3:5])
    return engine._batch.rows, bool(engine.notices), found[3:5] == expected


@pytest.mark.whole
@pytest.mark.skipif(not batches._STATUS.exists(), reason="there is no /proc here")
def test_a_process_that_may_not_take_more_goes_on_with_fewer_rows():
    # A process of its own: one that ran other tests holds memory that it can use again.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        rows, has_notice, is_equal = process.submit(_answers_of_a_small_process).result()
    assert rows < MOST
    assert has_notice
    assert is_equal


@pytest.mark.parametrize(
    ("free", "on_cpu", "rows"),
    [
        (None, True, MOST),
        (10**12, True, MOST),
        (4 * 1000 * 5 + 1, True, 5),
        (0, True, 1),
        (0, False, 64),
    ],
)
def test_auto_takes_as_many_rows_as_memory_holds(free, on_cpu, rows, monkeypatch):
    monkeypatch.setattr(batches, "free_bytes", lambda: free)
    chosen = BatchSize(None)
    chosen.fit(1000, on_cpu=on_cpu)
    assert chosen.rows == rows
    chosen.fit(10**15, on_cpu=True)
    assert chosen.rows == rows


def test_the_engine_fits_its_batch_to_the_longest_prompt_and_answer(monkeypatch):
    engine = TokenDecoder(DEMO, STEPS, batch_size=None)
    longest = max(map(len, PROMPTS)) + STEPS
    row = engine._session.token_bytes * longest
    monkeypatch.setattr(batches, "free_bytes", lambda: 4 * row * 3 + 1)
    engine.answers(PROMPTS)
    assert engine._batch.rows == 3


def test_free_memory_is_the_least_of_what_is_left(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:   5000 kB\n")
    (tmp_path / "status").write_text("Name:\tpython\nVmSize:\t  1000 kB\n")
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text("4000000\n")
    (tmp_path / "used").write_text("1000000\n")
    monkeypatch.setattr(batches, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(batches, "_STATUS", tmp_path / "status")
    limits = {"now": (resource.RLIM_INFINITY, resource.RLIM_INFINITY)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    cgroup = [(tmp_path / "max", tmp_path / "used"), (tmp_path / "none", tmp_path / "none")]
    monkeypatch.setattr(batches, "_CGROUPS", cgroup)
    assert batches.free_bytes() == 5000 * 1024
    cgroup[1] = (tmp_path / "limit", tmp_path / "used")
    assert batches.free_bytes() == 3_000_000
    limits["now"] = (2000 * 1024, -1)
    assert batches.free_bytes() == 1000 * 1024
    limits["now"] = (500 * 1024, -1)
    assert batches.free_bytes() == 0
    (tmp_path / "meminfo").write_text("nothing of use")
    limits["now"] = (resource.RLIM_INFINITY, -1)
    cgroup.clear()
    assert batches.free_bytes() is None


def test_an_encoder_goes_on_with_fewer_texts(tmp_path, monkeypatch):
    folder = tmp_path / "encoder"
    write_encoder(folder)
    texts = [f"a text number {n}" for n in range(12)]
    expected = OnnxEncoder(folder).embed(texts)
    engine, sizes, run = OnnxEncoder(folder), [], EncoderSession._run

    def limited(self, rows, width):
        sizes.append(len(rows))
        if len(rows) > 5:
            raise OutOfMemoryError("the encoder failed", "Use more memory.")
        return run(self, rows, width)

    monkeypatch.setattr(EncoderSession, "_run", limited)
    assert np.array_equal(engine.embed(texts), expected)
    refused = sum(size > 5 for size in sizes)
    engine.embed(texts[::-1])
    assert sum(size > 5 for size in sizes) == refused
    monkeypatch.setattr(EncoderSession, "_run", lambda *_: limited(engine._session, range(9), 8))
    with pytest.raises(ModelError, match="the encoder failed"):
        engine.embed(["one"])
