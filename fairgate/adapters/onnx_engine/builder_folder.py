"""What holds for folders of the onnxruntime-genai builder: settings that its graphs leave open.

Their settings stand in `genai_config.json`. Tried with the builder of 0.18; the graphs of 0.15 to
0.17 differ in what is handled here.
"""

from __future__ import annotations

from typing import Any

from fairgate.adapters.onnx_engine.decoder_graph import GraphFacts
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.domain.errors import ModelError

_SETTINGS = "genai_config.json"


def head_size(folder: ModelFolder) -> int | None:
    """Return the width of a key of the cache, which newer graphs call `kv_cache_dim` only."""
    builder = _model(folder).get("decoder")
    config = folder.mapping("config.json")
    sizes = [
        builder.get("head_size") if isinstance(builder, dict) else None,
        config.get("head_dim"),
    ]
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        sizes.append(hidden // heads)
    return next((one for one in sizes if isinstance(one, int) and one > 0), None)


def refuse_wrong_builds(folder: ModelFolder, facts: GraphFacts) -> None:
    """Raise ModelError for folders whose graph is not the model, or that do not say enough."""
    has_config = (folder.path / "config.json").is_file()
    builder = _model(folder)
    if not builder:
        if not has_config:
            folder.file("config.json", "says how far back the model attends")
        return
    if builder.get("type") == "olmo" and "LayerNormalization" not in facts.operators:
        raise ModelError(
            f"{str(folder.graph)!r} is no OLMo: the onnxruntime-genai builder normalises by the "
            "root mean square, the model subtracts the mean first, so every answer is wrong (seen "
            "with 0.18). Export it with `fairgate export MODEL`."
        )
    if facts.cannot_window and not has_config:
        raise ModelError(
            f"{str(folder.path)!r} does not say whether its model has a sliding window, and its "
            "attention operator cannot have one. Copy the original model's config.json into the "
            "folder, or build it again with onnxruntime-genai 0.15 or later."
        )


def _model(folder: ModelFolder) -> dict[str, Any]:
    found = folder.mapping(_SETTINGS).get("model")
    return found if isinstance(found, dict) else {}
