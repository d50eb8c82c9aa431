"""Right padding is exact on every kind of decoder graph, left padding is not.

The three kinds: optimum's (position_ids), the genai builder's (GroupQueryAttention, positions
counted by the operator) and one that numbers positions by slot, where no padding is right at all.
"""

import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO, TokenDecoder, builder_folder, session_of
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder

RNG = np.random.default_rng(4)
LONG, SHORT = (RNG.integers(3, 1000, size).tolist() for size in (21, 6))
NEXT = [17, 30, 45]


def number_positions_by_slot(model):
    """Replace the input position_ids by the slots' numbers, as some old exports do."""
    graph = model.graph
    for place, node in enumerate(graph.input):
        if node.name == "position_ids":
            del graph.input[place]
            break
    one = numpy_helper.from_array(np.array(1, dtype=np.int64), "slot_one")
    axis = numpy_helper.from_array(np.array([0], dtype=np.int64), "slot_axis")
    graph.initializer.extend([one, axis])
    nodes = [
        helper.make_node("Shape", ["input_ids"], ["slot_ids"]),
        helper.make_node("Gather", ["slot_ids", "slot_one"], ["slot_new"]),
        helper.make_node("Shape", ["attention_mask"], ["slot_mask"]),
        helper.make_node("Gather", ["slot_mask", "slot_one"], ["slot_all"]),
        helper.make_node("Sub", ["slot_all", "slot_new"], ["slot_first"]),
        helper.make_node("Range", ["slot_first", "slot_all", "slot_one"], ["slot_numbers"]),
        helper.make_node("Unsqueeze", ["slot_numbers", "slot_axis"], ["slot_row"]),
        helper.make_node("Expand", ["slot_row", "slot_ids"], ["position_ids"]),
        *graph.node,
    ]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("graphs")
    by_slot = root / "by-slot"
    shutil.copytree(DEMO, by_slot)
    model = onnx.load(str(DEMO / "model.onnx"))
    onnx.save(number_positions_by_slot(model), str(by_slot / "model.onnx"))
    return {"optimum": DEMO, "builder": builder_folder(root / "builder"), "by-slot": by_slot}


def run(session, rows, width):
    """Return the last row's logits after its prompt and after each of some further tokens."""
    first, cache = session.prefill(rows, width)
    return np.stack([first[-1, 0], *(session.step(cache, [one] * len(rows))[-1] for one in NEXT)])


@pytest.mark.parametrize("kind", ["optimum", "builder"])
def test_right_padding_is_exact(folders, kind):
    session = session_of(folders[kind])
    assert session.pads
    alone = run(session, [SHORT], len(SHORT))
    shared = run(session, [LONG, SHORT], 24)
    assert np.abs(alone - shared).max() <= 1e-5 * max(1.0, np.abs(alone).max())
    assert (alone.argmax(axis=1) == shared.argmax(axis=1)).all()


@pytest.mark.whole
def test_a_graph_that_numbers_positions_by_slot_is_found_out_and_never_padded(folders):
    session = session_of(folders["by-slot"])
    assert not session.pads
    prompts = [f"Is the text toxic? {'Really. ' * n}\nAnswer:" for n in range(6)]
    requests = [GenerationRequest(prompt=prompt) for prompt in prompts]
    decoding = Decoding(max_new_tokens=6)
    plain = dict(OnnxDecoder(DEMO, decoding=decoding).generate(requests))
    exact = dict(OnnxDecoder(folders["by-slot"], decoding=decoding).generate(requests))
    assert exact == plain


@pytest.mark.walk(1)
@pytest.mark.parametrize("kind", ["optimum", "builder", "by-slot"])
def test_no_bit_depends_on_companions_or_threads(folders, kind):
    prompts = [f"{'Never again. ' * (n % 5)}It is number {n}.\nAnswer:" for n in range(17)]
    requests = [
        GenerationRequest(prompt=prompt, seed=n, labels=("it", "the"))
        for n, prompt in enumerate(prompts)
    ]
    decoding = Decoding(temperature=1.5, top_p=0.95, max_new_tokens=5)
    engine = OnnxDecoder(folders[kind], decoding=decoding, threads=1)
    expected = dict(engine.generate(requests))
    for batch_size, threads in ((1, 1), (7, 2), (32, 2)):
        engine = OnnxDecoder(
            folders[kind], decoding=decoding, batch_size=batch_size, threads=threads
        )
        assert dict(engine.generate(requests)) == expected


def test_padding_never_reaches_beyond_the_context(tmp_path):
    # 241 to 247 tokens would be padded to 256, and nine more are more positions than the graph has.
    folder = builder_folder(tmp_path / "builder")
    prompts = [RNG.integers(3, 1000, size).tolist() for size in (40, 241, 247)]
    together = TokenDecoder(folder, 9).answers(prompts)
    assert [TokenDecoder(folder, 9).answers([prompt])[0] for prompt in prompts] == together
    with pytest.raises(ModelError, match="1 of 1 prompts are too long"):
        TokenDecoder(folder, 9).answers([[3] * 248])


def quantise(folder, accuracy_level):
    """Store the matrices of a decoder as MatMulNBits (4 bits, blocks of 32)."""
    model = onnx.load(str(folder / "model.onnx"))
    arrays = {one.name: one for one in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in arrays:
            continue
        weights = numpy_helper.to_array(arrays[node.input[1]])
        rows, columns = weights.shape
        blocks = np.ascontiguousarray(weights.T).reshape(columns, rows // 32, 32)
        scales = np.maximum(np.abs(blocks).max(axis=2) / 7.0, 1e-8).astype(np.float32)
        codes = np.clip(np.rint(blocks / scales[:, :, None]) + 8, 0, 15).astype(np.uint8)
        packed = codes[:, :, 0::2] | (codes[:, :, 1::2] << 4)
        name = f"{node.name}.q4"
        model.graph.initializer.extend(
            [
                numpy_helper.from_array(packed, f"{name}.codes"),
                numpy_helper.from_array(scales.reshape(-1), f"{name}.scales"),
            ]
        )
        node.CopyFrom(
            helper.make_node(
                "MatMulNBits",
                [node.input[0], f"{name}.codes", f"{name}.scales"],
                list(node.output),
                name=node.name,
                domain="com.microsoft",
                K=rows,
                N=columns,
                bits=4,
                block_size=32,
                accuracy_level=accuracy_level,
            )
        )
    if all(one.domain != "com.microsoft" for one in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, str(folder / "model.onnx"))


@pytest.mark.walk(1)
@pytest.mark.parametrize("accuracy_level", [0, 4])
def test_block_quantised_weights_keep_answers_independent_of_the_batch(tmp_path, accuracy_level):
    # With accuracy level 0 a batch of one takes another kernel and differs by 1e-5 in the logits:
    # the reason why the decoder never runs a row by itself.
    folder = tmp_path / "quantised"
    shutil.copytree(DEMO, folder)
    quantise(folder, accuracy_level)
    requests = [
        GenerationRequest(
            prompt=f'Is the text toxic?\n\n"{"Never again. " * n}"\nAnswer:',
            labels=("toxic", "non-toxic"),
        )
        for n in range(9)
    ]
    decoding = Decoding(max_new_tokens=8)
    expected = dict(OnnxDecoder(folder, decoding=decoding, threads=1).generate(requests))
    assert any(answer.margin is not None for answer in expected.values())
    for batch_size, threads in ((1, 1), (4, 2)):
        engine = OnnxDecoder(folder, decoding=decoding, batch_size=batch_size, threads=threads)
        assert dict(engine.generate(requests)) == expected
    assert engine._session.cut


def halve_caches(model):
    """Store keys and values in float16, around a graph that computes in float32."""
    graph = model.graph
    caches = {
        node.name: f"{node.name}.wide"
        for node in [*graph.input, *graph.output]
        if node.name.startswith(("past_key_values.", "present."))
    }
    for node in [*graph.input, *graph.output]:
        if node.name in caches:
            node.type.tensor_type.elem_type = TensorProto.FLOAT16
    for node in graph.node:
        node.input[:] = [caches.get(name, name) for name in node.input]
        node.output[:] = [caches.get(name, name) for name in node.output]
    past = [name for name in caches if name.startswith("past")]
    widen = [
        helper.make_node("Cast", [name], [caches[name]], to=TensorProto.FLOAT) for name in past
    ]
    narrow = [
        helper.make_node("Cast", [wide], [name], to=TensorProto.FLOAT16)
        for name, wide in caches.items()
        if name not in past
    ]
    nodes = [*widen, *graph.node, *narrow]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def test_caches_in_half_precision_are_kept_so(tmp_path):
    folder = tmp_path / "half"
    shutil.copytree(DEMO, folder)
    model = onnx.load(str(DEMO / "model.onnx"))
    onnx.save(halve_caches(model), str(folder / "model.onnx"))
    session = session_of(folder)
    assert session.pads
    logits, cache = session.prefill([SHORT, SHORT], 8)
    assert cache.values[0].numpy().dtype == np.float16
    expected, _ = session_of(DEMO).prefill([SHORT, SHORT], 8)
    assert np.abs(logits - expected).max() < 0.1
    kept = session.select(cache, [1, 1])
    assert session.step(kept, [5, 5]).shape[0] == 2
