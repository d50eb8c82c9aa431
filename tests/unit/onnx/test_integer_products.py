import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError
from fairgate.onnx import session
from fairgate.onnx.integer_products import (
    MICROSOFT,
    PRODUCT,
    inexact_product,
    rounds_by_stored_scales,
)
from fairgate.onnx.session import open_session, refuse_batch_scaling, refuse_inexact_products

CHANNELS, COLUMNS = 8, 4
STORED = {
    "levels": np.float32(127),
    "least": np.float32(1e-30),
    "step": np.float32(1),
    "zero": np.uint8(128),
    "last": np.array([-1]),
    "weights": np.random.default_rng(1).integers(-127, 128, (CHANNELS, COLUMNS)).astype(np.int8),
    "columns": np.linspace(1e-3, 2e-3, COLUMNS, dtype=np.float32),
}
PLAIN = """
    Abs x -> sizes
    ReduceMax sizes last -> largest
    Max largest least -> most
    Div levels most -> factor
    Mul x factor -> scaled
    QuantizeLinear scaled step zero -> codes
    MatMulIntegerToFloat codes weights step columns zero -> sums
"""
BY_ROW = {
    "plain": PLAIN,
    "what rounding leaves": PLAIN.replace(
        "MatMulIntegerToFloat codes",
        "DequantizeLinear codes step zero -> back\nSub scaled back -> left\n"
        "QuantizeLinear left step zero -> rest\nMatMulIntegerToFloat rest",
    ),
    "a scale of its own, stored": "QuantizeLinear x step zero -> codes\n"
    "MatMulIntegerToFloat codes weights step columns zero -> sums",
}
BY_BATCH = {
    "a computed scale": PLAIN.replace("scaled step zero", "scaled factor zero"),
    "a scale that is given": PLAIN.replace("scaled step zero", "scaled given zero"),
    "weights that are given": PLAIN.replace("codes weights", "codes matrix"),
    "a scale of columns that is given": PLAIN.replace("step columns", "step given"),
    "a zero point that is given": PLAIN.replace("columns zero", "columns point"),
    "the runtime's own": "DynamicQuantizeLinear x -> codes s z\nMatMulIntegerToFloat codes weights s columns z -> sums",
}


def graph_of(steps, types=None):
    value = helper.make_tensor_value_info
    nodes = []
    for line in filter(None, map(str.strip, steps.splitlines())):
        operator, *names = line.replace("->", "|").split("|")[0].split()
        domain = MICROSOFT if operator == PRODUCT else ""
        outputs = line.split("->")[1].split()
        nodes.append(helper.make_node(operator, names, outputs, domain=domain))
    shape = ["rows", "tokens", CHANNELS]
    inputs = [
        value("x", TensorProto.FLOAT, shape),
        value("given", TensorProto.FLOAT, []),
        value("matrix", TensorProto.INT8, [CHANNELS, COLUMNS]),
        value("point", TensorProto.UINT8, []),
    ]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [one for one in inputs if one.name in read],
        [value("sums", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in STORED.items() if k in read],
        value_info=[value("sizes", TensorProto.FLOAT, shape)],
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


@pytest.mark.parametrize("name", BY_ROW)
def test_products_with_stored_scales_are_accepted(name):
    assert rounds_by_stored_scales(graph_of(BY_ROW[name]))
    refuse_batch_scaling(graph_of(BY_ROW[name]), Path("model.onnx"))


@pytest.mark.parametrize("name", BY_BATCH)
def test_every_scale_that_is_not_stored_is_refused(name):
    with pytest.raises(ModelError, match="quantised dynamically"):
        refuse_batch_scaling(graph_of(BY_BATCH[name]), Path("model.onnx"))


def test_a_stored_number_that_a_caller_may_replace_is_not_stored():
    given = graph_of(PLAIN)
    given.graph.input.append(helper.make_tensor_value_info("step", TensorProto.FLOAT, []))
    assert not rounds_by_stored_scales(given)
    hidden = graph_of(PLAIN)
    for node in hidden.graph.node:
        if node.op_type == "QuantizeLinear":
            node.domain = "own.operators"
    assert not rounds_by_stored_scales(hidden)


def test_a_product_in_a_branch_is_refused_whatever_stands_before_it():
    model = graph_of(PLAIN)
    product = model.graph.node.pop()
    branch = helper.make_graph(
        [product], "b", [], [helper.make_tensor_value_info("sums", TensorProto.FLOAT, None)]
    )
    model.graph.node.append(helper.make_node("If", ["c"], ["y"], then_branch=branch))
    with pytest.raises(ModelError, match="MatMulIntegerToFloat"):
        refuse_batch_scaling(model, Path("model.onnx"))


def parts(content):
    model = onnx.load_model_from_string(content)
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    return stored["weights"].astype(np.int64), int(stored["zero"])


def exact(content, codes):
    weights, zero = parts(content)
    return (codes.astype(np.int64) - zero) @ weights


def in_pairs(content, codes):
    """What `vpmaddubsw` does: two products are summed in 16 bits."""
    weights, zero = parts(content)
    terms = codes.astype(np.int64)[:, :, None] * weights
    pairs = terms[:, 0::2]
    pairs[:, : terms[:, 1::2].shape[1]] += terms[:, 1::2]
    return pairs.clip(-(2**15), 2**15 - 1).sum(axis=1) - zero * weights.sum(axis=0)


@pytest.mark.parametrize(
    "wrong",
    [
        in_pairs,
        lambda content, codes: exact(content, codes) + (len(codes) == 1),
        lambda content, codes: exact(content, codes) + (codes.shape[1] % 2),
        lambda content, codes: exact(content, codes).astype(np.float16),
        lambda content, codes: exact(content, codes.astype(np.int8)),
    ],
    ids=["sums in pairs", "one row", "odd widths", "half precision", "signed codes"],
)
def test_a_product_that_is_not_exact_is_found(wrong):
    assert inexact_product(exact) == ""
    with np.errstate(over="ignore"):
        assert "rows of" in inexact_product(wrong)


def test_integer_products_are_exact_here_one_way_or_the_other():
    refuse_inexact_products(graph_of(PLAIN), Path("model.onnx"))


def test_a_processor_that_overflows_gets_unsigned_weights_or_a_refusal(tmp_path, monkeypatch):
    onnx.save(graph_of(PLAIN), tmp_path / "model.onnx")
    entries = []

    class Options(onnxruntime.SessionOptions):
        def add_session_config_entry(self, key, value):
            entries.append((key, value))
            super().add_session_config_entry(key, value)

    monkeypatch.setattr(onnxruntime, "SessionOptions", Options)
    for wrong, expected in (({"0": ""}, []), ({"0": "off by 9", "1": ""}, ["1"])):
        entries.clear()
        monkeypatch.setattr(session, "_inexact", wrong.__getitem__)
        refuse_inexact_products(graph_of(PLAIN), tmp_path / "model.onnx")
        open_session(tmp_path / "model.onnx", device="cpu", multiplies_integers=True)
        assert [value for key, value in entries if key.endswith("x64quantprecision")] == expected
    monkeypatch.setattr(session, "_inexact", lambda unsigned: "2 rows: off by 9")
    with pytest.raises(ModelError, match=r"not do exactly on this processor \(2 rows: off by 9\)"):
        refuse_inexact_products(graph_of(PLAIN), tmp_path / "model.onnx")


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs qemu-x86_64 (qemu-user)")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates this processor's family")
@pytest.mark.parametrize(
    ("processor", "unsigned"),
    [("Haswell", True), pytest.param("Nehalem", False, marks=pytest.mark.whole)],
)
def test_an_emulated_processor_without_vnni_is_exact_with_what_it_is_given(processor, unsigned):
    program = (
        "from fairgate.onnx import session; unsigned = session.needs_unsigned_weights(); "
        "print(unsigned, session._inexact(str(int(unsigned))))"
    )
    call = ["qemu-x86_64", "-cpu", processor, sys.executable, "-c", program]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == str(unsigned)
