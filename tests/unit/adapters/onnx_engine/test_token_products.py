"""Products in 8 bits on scales of single tokens: exact sums, the same beside any others."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import fairgate
from fairgate.adapters.onnx_decoder import OnnxDecoder
from fairgate.adapters.onnx_engine import (
    decoder_graph,
    decoder_opening,
    position_steps,
    token_products,
)
from fairgate.adapters.onnx_engine.batch_scaling import refuse_batch_scaling
from fairgate.adapters.onnx_engine.decoder_session import DecoderSession
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.precision import change_precision
from fairgate.adapters.onnx_engine.token_products import (
    TOKEN_PRODUCT,
    pairs_saturate,
    widen_products,
    with_token_products,
)
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest

DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
TEXTS = [f"{'The tram was late again. ' * n}Is it good?\nAnswer:" for n in range(7)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return the embedded model in 8 bits."""
    folder = tmp_path_factory.mktemp("w8a8") / "demo"
    shutil.copytree(DEMO, folder)
    change_precision(folder / "model.onnx", "w8a8", decoder=True)
    return folder


def session_of(folder):
    return DecoderSession(ModelFolder.find(folder), device="cpu", threads=1)


def product_model(weights, version):
    tensor = numpy_helper.from_array(weights, "weights")
    shapes = [[None, None, size] for size in weights.shape]
    given, found = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip("xy", shapes, strict=True)
    )
    node = helper.make_node("MatMul", ["x", "weights"], ["y"])
    graph = helper.make_graph([node], "g", [given], [found], [tensor])
    imports = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run(model, numbers):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": numbers})[0]


def numbers_of(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("version", [13, 17, 18, 21])
def test_a_product_is_the_exact_sum_of_rounded_numbers_on_both_sides_scales(version):
    weights, numbers = numbers_of(96, 40), numbers_of(2, 5, 96, seed=1)
    numbers[1, 2] = 0
    found = run(with_token_products(product_model(weights, version)), numbers)
    columns = np.abs(weights).max(axis=0) / np.float32(127)
    tokens = np.abs(numbers).max(axis=-1, keepdims=True) / np.float32(127)
    tokens[1, 2] = 1
    codes = np.rint(numbers / tokens).astype(np.int64)
    sums = codes @ np.rint(weights / columns).astype(np.int64)
    assert found == pytest.approx(sums * columns.astype(float) * tokens.astype(float), rel=1e-6)
    exact = numbers @ weights
    assert np.abs(found - exact).max() < 0.02 * np.abs(exact).max()
    assert not found[1, 2].any()


def test_wider_numbers_for_processors_without_exact_pairs_give_the_same_bits():
    weights, numbers = numbers_of(200, 64), numbers_of(1, 33, 200, seed=2)
    weights[:, 0], numbers[0, 0] = 1, 1  # the largest sums there are
    model = with_token_products(product_model(weights, 18))
    plain = None if pairs_saturate() else run(model, numbers)
    assert widen_products(model)
    assert not widen_products(model)
    wide = run(model, numbers)
    assert wide[0, 0, 0] == pytest.approx(200)
    assert plain is None or np.array_equal(plain, wide)


def test_a_session_widens_where_the_processor_would_cut_sums_off(demo, monkeypatch):
    rows = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]
    before, _ = session_of(demo).prefill(rows, 5)
    asked = []
    monkeypatch.setattr(decoder_graph, "pairs_saturate", lambda: True)
    monkeypatch.setattr(
        decoder_graph, "widen_products", lambda model: asked.append(widen_products(model)) or True
    )
    after, _ = session_of(demo).prefill(rows, 5)
    assert asked == [True]
    assert pairs_saturate() or np.array_equal(before, after)


@pytest.mark.parametrize("flaw", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 17, 95])
def test_a_number_that_is_not_finite_is_not_rounded_to_one(flaw, place):
    numbers = numbers_of(1, 3, 96)
    numbers[0, 1, place] = flaw
    found = run(with_token_products(product_model(numbers_of(96, 40), 18)), numbers)
    assert np.isnan(found[0, 1]).all()
    assert np.isfinite(found[0, [0, 2]]).all()


def test_weights_that_are_not_finite_are_refused():
    weights = numbers_of(16, 8)
    weights[3, 2] = np.nan
    with pytest.raises(ModelError, match=r"'weights' hold numbers that are not finite"):
        with_token_products(product_model(weights, 18))


def test_a_graph_without_products_or_of_an_old_version_is_refused():
    empty = product_model(numbers_of(16, 8), 18)
    empty.graph.node[0].op_type = "Gemm"
    for model in (empty, product_model(numbers_of(16, 8), 12)):
        with pytest.raises(ModelError, match=r"expected some, in version 13 or later"):
            with_token_products(model)


def expert(chosen_by):
    """Return a graph of a product of the rows that are named by `chosen_by` or are not 0."""
    model = product_model(numbers_of(16, 8), 18)
    [product] = model.graph.node
    del model.graph.node[:]
    made = helper.make_node
    model.graph.node.extend(
        [
            made("NonZero", ["asked"], ["found"]),
            made("Split", ["found"], ["row", "place"], num_outputs=2),
            made("Squeeze", ["row"], ["rows"]),
            made("Gather", ["x", chosen_by], ["given"], axis=1),
            made("Reshape", ["given", "shape"], ["numbers"]),
        ]
    )
    product.input[0] = "numbers"
    product.name = "experts.0/up"
    model.graph.node.append(product)
    return model


def test_a_product_of_rows_of_which_there_may_be_none_is_refused():
    """As those of a mixture of experts, in the graphs that torch exports."""
    with pytest.raises(ModelError, match=r"'experts.0/up' is one of an expert.*in int8 instead"):
        with_token_products(expert("rows"))
    for others in ("shape", "x"):
        with_token_products(expert(others))


def test_it_has_everything_that_float32_has(demo):
    session = session_of(demo)
    assert not session.is_fine
    assert session.pads
    assert session.cut
    assert session.cuts_freely
    assert session.joins
    assert (demo / "model.onnx").stat().st_size < 0.6 * (DEMO / "model.onnx").stat().st_size


def test_answers_and_margins_are_the_same_in_any_batch_and_order(demo):
    requests = [
        GenerationRequest(prompt=text, labels=("positive", "negative")) for text in TEXTS * 3
    ]

    def answers(batch_size, order):
        engine = OnnxDecoder(
            demo, decoding=Decoding(max_new_tokens=6), batch_size=batch_size, threads=1
        )
        found = dict(engine.generate([requests[place] for place in order]))
        return {place: found[n] for n, place in enumerate(order)}

    first = answers(1, range(len(requests)))
    for batch_size in (7, 32):
        assert answers(batch_size, list(reversed(range(len(requests))))) == first


def test_the_embedded_models_logits_stay_near(demo):
    fine, coarse = session_of(DEMO), session_of(demo)
    least = 1.0
    for size in (3, 40, 150):
        rows = np.random.default_rng(size).integers(0, 2000, (4, size)).tolist()
        one, other = (each.prefill(rows, size)[0].astype(float) for each in (fine, coarse))
        products = (one * other).sum(axis=-1)
        lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
        least = min(least, float((products / lengths).min()))
    assert least > 0.995


def test_only_needed_positions_pass_the_last_layers_products(demo):
    model = onnx.load(str(demo / "model.onnx"))
    [last] = [node for node in model.graph.node if "logits" in node.output]
    assert last.op_type == TOKEN_PRODUCT
    varying = decoder_graph.cut_to_positions.__globals__["_depends_on_input"](model)
    _, steps = position_steps.states_before_steps(model, last, varying)
    assert sum(node.op_type == TOKEN_PRODUCT for node in steps) == 4


def changed(demo, tmp_path, change):
    model = onnx.load(str(demo / "model.onnx"))
    change(model)
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path / "model.onnx"


def another_scale(model):
    [function] = model.functions
    for node in function.node:
        if node.op_type == "ReduceMax":
            node.attribute.append(helper.make_attribute("noop_with_empty_axes", 1))


def whole_batch(model):
    [function] = model.functions
    [axis] = [node for node in function.node if "axis" in node.output]
    axis.attribute[0].t.CopyFrom(helper.make_tensor("axis", TensorProto.INT64, [3], [0, 1, 2]))


def one_more(model):
    model.graph.node.append(helper.make_node("MatMulInteger", ["a", "b"], ["c"]))


def in_another_function(model):
    copy = model.functions.add()
    copy.CopyFrom(model.functions[0])
    copy.name = "Another"


@pytest.mark.parametrize("change", [another_scale, whole_batch, one_more])
def test_integer_products_that_are_not_this_function_are_refused(demo, tmp_path, change):
    with pytest.raises(ModelError, match="scale taken from the whole batch"):
        refuse_batch_scaling(changed(demo, tmp_path, change))


def test_the_function_under_another_name_is_refused(demo, tmp_path):
    with pytest.raises(ModelError, match="MatMulIntegerToFloat"):
        refuse_batch_scaling(changed(demo, tmp_path, in_another_function))


def in_a_branch(model):
    """Move every product to where only branches call it."""
    products = [node for node in model.graph.node if node.op_type == TOKEN_PRODUCT]
    for node in products:
        inner = helper.make_node(
            TOKEN_PRODUCT, list(node.input), [f"{node.output[0]}_in"], domain=node.domain
        )
        value = helper.make_tensor_value_info(inner.output[0], TensorProto.FLOAT, None)
        branch = helper.make_graph([inner], f"{node.output[0]}_branch", [], [value])
        other = helper.make_graph([inner], f"{node.output[0]}_other", [], [value])
        node.CopyFrom(
            helper.make_node(
                "If", ["always"], list(node.output), then_branch=branch, else_branch=other
            )
        )
    always = helper.make_tensor("always", TensorProto.BOOL, [], [True])
    model.graph.initializer.append(always)


def test_products_that_only_branches_call_are_eight_bits_too(demo, tmp_path, monkeypatch):
    """Else they pass for float32, and are not widened where sums would be cut off."""
    shutil.copytree(demo, tmp_path / "model")
    changed(demo, tmp_path / "model", in_a_branch)
    rows = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]
    asked = []
    monkeypatch.setattr(decoder_graph, "pairs_saturate", lambda: True)
    monkeypatch.setattr(
        decoder_graph, "widen_products", lambda model: asked.append(widen_products(model)) or True
    )
    session = session_of(tmp_path / "model")
    assert asked == [True]
    assert not session.is_fine
    assert np.array_equal(session.prefill(rows, 5)[0], session_of(demo).prefill(rows, 5)[0])


def test_another_operator_of_that_name_is_not_the_function(demo):
    model = onnx.load(str(DEMO / "model.onnx"))
    model.graph.node.append(helper.make_node(TOKEN_PRODUCT, ["a"], ["b"], domain="another"))
    assert not token_products.has_token_products(model)


def test_opening_reads_no_weights_and_looks_at_the_file_once(demo, monkeypatch):
    """A changed graph that cannot be loaded is followed by the next one, of the same file."""
    refused, loaded = [], []
    refuse, load = decoder_opening.refuse_unsound_graph, onnx.load_model_from_string
    monkeypatch.setattr(
        decoder_opening,
        "refuse_unsound_graph",
        lambda graph: refused.append(graph) or refuse(graph),
    )
    monkeypatch.setattr(
        onnx, "load_model_from_string", lambda content: loaded.append(len(content)) or load(content)
    )
    monkeypatch.setattr(onnx, "load", None)
    opened = decoder_opening.open_session

    def damaged(graph, *, content, **options):
        return opened(graph, content=content and content[: len(content) // 2], **options)

    monkeypatch.setattr(decoder_opening, "open_session", damaged)
    assert not session_of(demo).cut
    assert refused == [demo / "model.onnx"]
    assert len(loaded) == 2
    assert max(loaded) < (demo / "model.onnx").stat().st_size / 4


def test_the_function_itself_passes(demo):
    refuse_batch_scaling(demo / "model.onnx")
    assert token_products.has_token_products(onnx.load(str(demo / "model.onnx")))
