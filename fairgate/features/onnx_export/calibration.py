"""Samples what a decoder multiplies with its weights, on the packaged prompts."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np

from fairgate.features.onnx_export.int8_rows import ActivationRows, Layers
from fairgate.onnx.decoder_session import cache_shape
from fairgate.onnx.graph_file import load_structure
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.onnx.session import open_session

_TOKENS = 9
"""Of each prompt, evenly spaced."""


def packaged_prompts() -> list[dict[str, Any]]:
    """Return the 28 prompts of a gate's kinds with their labels, as the package has them."""
    file = resources.files("fairgate").joinpath("data/parity/prompts.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def sample_activations(folder: ModelFolder) -> ActivationRows:
    """Return the activations that a float32 graph multiplies with weights, for tokens of prompts.

    A prompt's first token is left out: models put numbers of a thousand times the others' size
    there (Xiao et al., Efficient Streaming Language Models with Attention Sinks, ICLR 2024), beside
    which all channels would look alike. Raises ModelError where the graph cannot be run.
    """
    from onnx import TensorProto, helper

    model, weights = load_structure(folder.graph)
    names = Layers.of(model).activations
    model.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names
    )
    content = bytes(model.SerializeToString())
    session = open_session(folder.graph, device="cpu", content=content, folder=weights)
    samples: dict[str, list[Any]] = {name: [] for name in names}
    texts = [row["prompt"] for row in packaged_prompts()]
    for prompt in PromptTokenizer(folder).encode(texts):
        outputs = session.run(names, _feeds(folder, session, prompt))
        for name, output in zip(names, outputs, strict=True):
            rows = output.reshape(-1, output.shape[-1])
            places = np.linspace(1, len(rows) - 1, _TOKENS).round().astype(int)
            samples[name].append(rows[places])
    return {name: np.concatenate(rows) for name, rows in samples.items()}


def _feeds(folder: ModelFolder, session: Any, prompt: list[int]) -> dict[str, Any]:
    """Return a graph's inputs for one prompt without anything before it."""
    ids = np.array([prompt], dtype=np.int64)
    plain = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "position_ids": np.arange(len(prompt), dtype=np.int64)[None],
    }
    feeds = {}
    for node in session.get_inputs():
        if node.name in plain:
            feeds[node.name] = plain[node.name]
        elif shape := cache_shape(folder, node):
            feeds[node.name] = np.zeros((1, shape[0], 0, shape[1]), dtype=np.float32)
        else:  # how many logits are kept
            feeds[node.name] = np.zeros([1] * len(node.shape), dtype=np.int64)
    return feeds
