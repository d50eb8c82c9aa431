"""Half precision keeps its hands off positions, in our exports and in graphs that users bring."""

import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO
from fakes.graphs import graph_of, model_of
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError
from fairgate.features.onnx_export.precision import change_precision
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import has_half_angles
from fairgate.onnx.trials import open_decoder

LENGTHS = (3, 200, 700)
RNG = np.random.default_rng(3)
ROWS = [RNG.integers(3, 2000, length).tolist() for length in LENGTHS]


@pytest.fixture(scope="module")
def halved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("half") / "model"
    shutil.copytree(DEMO, folder)
    change_precision(folder / "model.onnx", "fp16")
    return folder


@pytest.fixture(scope="module")
def plainly_halved(tmp_path_factory):
    """Return the folder as converters of whole graphs write it, and `fairgate export` did."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    folder = tmp_path_factory.mktemp("plain") / "model"
    shutil.copytree(DEMO, folder)
    model = convert_float_to_float16(onnx.load(str(DEMO / "model.onnx")), disable_shape_infer=True)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def last_logits(folder):
    session = open_decoder(ModelFolder.find(folder), device="cpu", threads=1)
    found = [session.prefill([row, row], len(row)) for row in ROWS]
    return np.stack([logits[0, 0].astype(np.float64) for logits, _ in found])


def test_late_tokens_are_as_near_to_float32_as_early_ones(halved):
    exact = last_logits(DEMO)
    away = np.abs(last_logits(halved) - exact).max(axis=1) / np.abs(exact).max()
    assert away.max() < 0.01, dict(zip(LENGTHS, away, strict=True))
    assert away[-1] < 4 * away[0] + 0.002


def test_angles_in_half_precision_are_refused(plainly_halved):
    with pytest.raises(ModelError, match=r"angles in half precision.*--precision fp16"):
        last_logits(plainly_halved)


def test_means_of_squares_stay_in_float32(halved):
    model = onnx.load(str(halved / "model.onnx"))
    onnx.checker.check_model(model)
    types = {
        one.name: one.type.tensor_type.elem_type
        for one in onnx.shape_inference.infer_shapes(model).graph.value_info
    }
    squares = [node for node in model.graph.node if node.op_type == "Pow"]
    assert len(squares) >= 3
    assert {types[node.output[0]] for node in squares} == {TensorProto.FLOAT}
    assert sum(one.data_type == TensorProto.FLOAT16 for one in model.graph.initializer) > 10


HALF_WEIGHTS = numpy_helper.from_array(np.ones(4, dtype=np.float16), "w")
WEIGHTS = numpy_helper.from_array(np.ones(4, dtype=np.float32), "w")


@pytest.mark.parametrize(("nodes", "weights", "half"), [
    ([("Mul", ["x", "w"], "angle"), ("Cos", ["angle"], "c")], WEIGHTS, False),
    ([("Mul", ["x", "w"], "angle"), ("Cos", ["angle"], "c")], HALF_WEIGHTS, True),
    ([("Mul", ["x", "w"], "a"), ("Cast", ["a"], "angle"), ("Sin", ["angle"], "c")], HALF_WEIGHTS, True),
    ([("Mul", ["x", "w"], "a"), ("Shape", ["a"], "angle"), ("Sin", ["angle"], "c")], HALF_WEIGHTS, False),
    ([("Cos", ["x"], "c"), ("Mul", ["c", "w"], "y")], HALF_WEIGHTS, False),
])  # fmt: skip
def test_only_what_leads_to_angles_counts(nodes, weights, half):
    made = [helper.make_node(op, inputs, [output]) for op, inputs, output in nodes]
    for node in made:
        if node.op_type == "Cast":
            node.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
    assert has_half_angles(model_of(graph_of(node=made, initializer=[weights]))) is half
