"""What holds for folders of the onnxruntime-genai builder: settings that its graphs leave open.

Their settings are in `genai_config.json`. Tried with the builder of 0.18; the graphs of 0.15 to
0.17 differ in what is handled here.
"""

from __future__ import annotations

from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.onnx.decoder_graph import GraphFacts
from fairgate.onnx.folder import ModelFolder

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
    """Raise ModelError for folders with another graph than the model, or incomplete settings."""
    has_config = (folder.path / "config.json").is_file()
    builder = _model(folder)
    if not builder:
        if not has_config:
            folder.file("config.json", "states how far back the model attends")
        return
    if builder.get("type") == "olmo" and "LayerNormalization" not in facts.operators:
        raise ModelError(
            f"{str(folder.graph)!r} is no OLMo: the onnxruntime-genai builder normalises by the "
            "root mean square, the model subtracts the mean first, so every answer is wrong (seen "
            "with 0.18). Export it with `fairgate export MODEL`."
        )
    if not has_config and not facts.windows and _may_hide_a_window(builder, facts):
        raise ModelError(
            f"{str(folder.path)!r} does not say whether its model has a sliding window, and its "
            "graph has none. Copy the original model's config.json into the folder, or build it "
            "for the execution provider `cpu` or `cuda`."
        )


def _may_hide_a_window(builder: dict[str, Any], facts: GraphFacts) -> bool:
    """Return whether a folder without a window may come from a model that has one.

    For other execution providers than these two the builder leaves windows out of Mistral and
    Phi-3, and of the settings.
    """
    decoder = builder.get("decoder")
    if not isinstance(decoder, dict) or "sliding_window" in decoder:
        return False
    options = decoder.get("session_options")
    made_for = options.get("provider_options") if isinstance(options, dict) else None
    others = {
        name
        for one in (made_for if isinstance(made_for, list) else [])
        if isinstance(one, dict)
        for name in one
    } - {"cpu", "cuda"}
    windowed = str(builder.get("type")).startswith(("mistral", "ministral", "phi3"))
    return facts.cannot_window or (windowed and bool(others))


def _model(folder: ModelFolder) -> dict[str, Any]:
    found = folder.mapping(_SETTINGS).get("model")
    return found if isinstance(found, dict) else {}
