"""The limit of an engine: how fast ONNX Runtime multiplies matrices on this machine, in float32."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

WIDE = (576, 1536)
"""The widest weights in each layer of SmolLM2-135M."""


def open_product(shape: tuple[int, int], *, rows: int = 512, threads: int = 1) -> Callable[[], int]:
    """Return a product with weights of this shape; called, it returns its operations."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), "w")
    places = {"x": [rows, shape[0]], "y": [rows, shape[1]]}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in places.items())
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "product", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    given = {"x": rng.normal(size=places["x"]).astype(np.float32)}

    def product() -> int:
        session.run(None, given)
        return 2 * rows * shape[0] * shape[1]

    return product


def product_rate(
    shape: tuple[int, int] = WIDE,
    *,
    threads: int = 1,
    rounds: int = 5,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return floating-point operations a second, the median of rounds of a fraction of a second."""
    product = open_product(shape, threads=threads)
    times = max(1, int(1e9 * threads / product()))
    rates = []
    for _ in range(rounds):
        start = clock()
        done = sum(product() for _ in range(times))
        rates.append(done / (clock() - start))
    return statistics.median(rates)
