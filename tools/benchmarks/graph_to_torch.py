"""Reads the weights of a Llama graph exported by optimum back into a torch model.

So the benchmarks compare engines on one model without keeping its weights twice in the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def load_llama(folder: Path) -> Any:
    """Return the `LlamaForCausalLM` whose graph is `folder/model.onnx`."""
    import onnx
    import torch
    from onnx import numpy_helper
    from transformers import LlamaConfig, LlamaForCausalLM

    graph = onnx.load(str(folder / "model.onnx")).graph
    arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    weights = {
        node.name.strip("/").removesuffix("/MatMul").replace("/", ".") + ".weight": arrays[
            node.input[1]
        ].T
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in arrays
    }
    weights |= {name: array for name, array in arrays.items() if name.endswith(".weight")}
    model = LlamaForCausalLM(LlamaConfig(**json.loads((folder / "config.json").read_text())))
    model.load_state_dict(
        {name: torch.tensor(array.copy()) for name, array in weights.items()}, strict=True
    )
    return model.eval()
