"""What the engine does differently on a CUDA device, run here: only the device's name differs."""

from itertools import pairwise

import numpy as np
import pytest
from fakes.decoders import DEMO, TokenDecoder

from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import decoder_session
from fairgate.onnx.attention import JOINT_INPUT
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession

RNG = np.random.default_rng(23)
PROMPTS = [RNG.integers(3, 1000, size).tolist() for size in (1, 7, 33, 64, 64, 65, 90)]
STEPS = 9


class Binding:
    """A real binding whose outputs on the GPU are on the CPU; notes where each one was to be."""

    def __init__(self, inner, log):
        self._inner, self._log = inner, log
        self._given, self._places = [], {}

    def bind_cpu_input(self, name, array):
        self._inner.bind_cpu_input(name, array)

    def bind_ortvalue_input(self, name, value):
        self._given.append(value)
        self._inner.bind_ortvalue_input(name, value)

    def bind_output(self, name, device):
        self._places[name] = device
        self._inner.bind_output(name, "cpu")

    def bind_ortvalue_output(self, name, value):
        raise AssertionError(f"{name} is written in place, which no GPU has been seen to do")

    def get_outputs(self):
        values = self._inner.get_outputs()
        self._log.append((self._given, self._places, values[1:]))
        return values


class OnCard:
    """A session that runs here and takes itself to be on the GPU."""

    def __init__(self, inner, log):
        self._inner, self._log = inner, log

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def io_binding(self):
        return Binding(self._inner.io_binding(), self._log)

    def run_with_iobinding(self, binding):
        self._inner.run_with_iobinding(binding._inner)


@pytest.fixture
def gpu(monkeypatch):
    """What each run was given and returned of the cache, and where it was to be."""
    log, start = [], decoder_session.open_session

    def opened(*given, **options):
        assert options.pop("device") == "cuda"
        return OnCard(start(*given, device="cpu", **options), log)

    monkeypatch.setattr(decoder_session, "open_session", opened)
    return log


def test_the_cache_stays_on_the_gpu_and_is_handed_on_without_a_copy(gpu):
    engine = TokenDecoder(DEMO, STEPS, device="cuda", batch_size=8)
    engine._session  # noqa: B018 loads it
    gpu.clear()
    engine.answers([PROMPTS[3], PROMPTS[4]])
    assert len(gpu) == STEPS
    for _, places, _ in gpu:
        assert places.pop("logits") == "cpu"
        assert set(places.values()) == {"cuda"}
    for (_, _, returned), (given, _, _) in pairwise(gpu):
        assert len(given) == len(returned)
        assert all(one is other for one, other in zip(given, returned, strict=True))


def test_no_cache_is_fetched_from_the_gpu(gpu, monkeypatch):
    monkeypatch.setattr(DecoderSession, "select", lambda *_: pytest.fail("rows were moved"))
    engine = TokenDecoder(DEMO, STEPS, device="cuda", batch_size=8)
    session = engine._session
    assert (session.selects, session.shares, session.joins) == (False, False, False)
    # Its GroupQueryAttention would be one of float32, which GPUs do not have.
    assert JOINT_INPUT not in session._inputs
    assert len(engine.answers(PROMPTS)) == len(PROMPTS)


@pytest.mark.whole
def test_answers_are_those_of_the_cpu_whatever_the_batch(gpu, monkeypatch):
    on_gpu = [
        TokenDecoder(DEMO, STEPS, device="cuda", batch_size=size).answers(PROMPTS)
        for size in (1, 3, 64)
    ]
    monkeypatch.undo()
    assert on_gpu == [TokenDecoder(DEMO, STEPS).answers(PROMPTS)] * 3


def test_rows_that_are_complete_go_on_beside_the_others_and_answer_once(gpu):
    decoding = Decoding(temperature=2.0, max_new_tokens=25)
    requests = [GenerationRequest(prompt="Reader: the soup", seed=seed) for seed in range(12)]
    engine = OnnxDecoder(DEMO, decoding=decoding, device="cuda", batch_size=12)
    engine._prompts.end_tokens = frozenset(range(3, 900))
    engine._session  # noqa: B018 loads it
    gpu.clear()
    answers = list(engine.generate(requests))
    assert sorted(position for position, _ in answers) == list(range(12))
    assert len({answer.tokens for _, answer in answers}) > 1
    assert {given[0].shape()[0] for given, _, _ in gpu} == {12}
    assert len(gpu) == 1 + max(answer.tokens for _, answer in answers)


def test_batches_on_a_gpu_have_one_number_of_rows_whatever_is_asked(gpu):
    # A GPU's libraries choose kernels, and so the order of sums, by the number of rows.
    engine = TokenDecoder(DEMO, STEPS, device="cuda", batch_size=8)
    engine._session  # noqa: B018 loads it
    for asked in (PROMPTS, PROMPTS[:1], PROMPTS[::-1], PROMPTS[2:5]):
        gpu.clear()
        answers = engine.answers(asked)
        assert len(answers) == len(asked)
        assert {given[0].shape()[0] for given, _, _ in gpu} == {8}


def test_vectors_on_a_gpu_are_computed_in_batches_of_one_number_of_rows(monkeypatch):
    from fairgate.onnx import encoder

    sizes, start = [], encoder.open_session
    monkeypatch.setattr(
        encoder, "open_session", lambda *given, device, **more: start(*given, device="cpu", **more)
    )
    run = encoder.EncoderSession.run
    monkeypatch.setattr(
        encoder.EncoderSession,
        "run",
        lambda self, rows, width: sizes.append(len(rows)) or run(self, rows, width),
    )
    texts = [f"A listener wrote down verse {number}." for number in range(5)]
    options = {"choice": encoder.EmbedderChoice(query_prompt="", document_prompt="")}
    here = encoder.OnnxEncoder(DEMO.parent / "minilm", **options).embed(texts)
    sizes.clear()
    there = encoder.OnnxEncoder(DEMO.parent / "minilm", device="cuda", batch_size=7, **options)
    assert np.array_equal(there.embed(texts), here)
    assert 7 in sizes
    assert set(sizes) <= {2, 7}, "two rows are those of the trial of padding"


def test_memory_that_runs_out_on_a_gpu_is_told_as_what_can_move_a_margin(gpu, monkeypatch):
    run = DecoderSession._run

    def limited(self, ids, *given, **options):
        if len(ids) > 4:
            raise MemoryError
        return run(self, ids, *given, **options)

    engine = TokenDecoder(DEMO, STEPS, device="cuda", batch_size=8)
    engine._session  # noqa: B018 loads it
    monkeypatch.setattr(DecoderSession, "_run", limited)
    assert len(engine.answers(PROMPTS)) == len(PROMPTS)
    [notice] = engine.notices
    assert "went on with 4" in notice
    assert "last digits of a margin" in notice


def test_logits_in_half_precision_leave_the_graph_in_float32_with_the_same_values(tmp_path):
    import onnx.reference
    from onnx import TensorProto, helper, numpy_helper

    from fairgate.onnx.decoder_graph import widen_logits

    value = helper.make_tensor_value_info
    weights = RNG.normal(size=(4, 9)).astype(np.float16)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["logits"])],
        "g",
        [value("x", TensorProto.FLOAT16, ["rows", 4])],
        [value("logits", TensorProto.FLOAT16, ["rows", 9])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    before = onnx.reference.ReferenceEvaluator(model)
    x = RNG.normal(size=(3, 4)).astype(np.float16)
    [half] = before.run(None, {"x": x})
    assert widen_logits(model)
    onnx.checker.check_model(model)
    [full] = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    assert (half.dtype, full.dtype) == (np.float16, np.float32)
    assert np.array_equal(half.astype(np.float32), full)
    assert not widen_logits(model), "nothing is left to do"
