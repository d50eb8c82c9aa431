"""Whatever stands in the files of an encoder, it is read or refused in words."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from fakes.encoders import write_encoder
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairgate.domain.errors import ModelError
from fairgate.onnx.encoder import OnnxEncoder

KEYS = {
    "modules.json": ["type", "path", "idx"],
    "1_Pooling/config.json": ["pooling_mode", "pooling_mode_mean_tokens", "include_prompt"],
    "config_sentence_transformers.json": [
        "prompts", "default_prompt_name", "truncate_dim", "similarity_fn_name", "model_type",
    ],
    "sentence_bert_config.json": [
        "max_seq_length", "do_lower_case", "processing_kwargs", "transformer_task", "modality_config",
    ],
    "config.json": [
        "model_type", "max_position_embeddings", "pad_token_id", "rope_scaling", "_name_or_path", "n_positions",
        "original_max_position_embeddings",
    ],
    "tokenizer_config.json": [
        "model_max_length", "truncation_side", "add_bos_token", "bos_token", "do_lower_case", "vocab_file",
        "add_prefix_space",
    ],
    "provenance.json": ["source"],
    "tokenizer.json": ["normalizer", "pre_tokenizer", "post_processor", "truncation", "padding", "model"],
}  # fmt: skip
KNOWN = [
    "Transformer", "sentence_transformers.models.Pooling", "mean", "query", "../x", "bert", "left",
    "",
]  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.sampled_from(KNOWN)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def changes(draw):
    name = draw(st.sampled_from(sorted(KEYS)))
    if draw(st.booleans()):
        return name, draw(VALUES)
    return name, {draw(st.sampled_from(KEYS[name])): draw(VALUES)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder") / "m")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=changes())
@example(change=("modules.json", [{"type": ["Transformer"]}]))
@example(
    change=(
        "config_sentence_transformers.json",
        {"default_prompt_name": ["query"], "prompts": {"a": "b"}},
    )
)
def test_it_is_read_or_refused(folder, change):
    name, value = change
    file = folder / name
    before = file.read_text() if file.is_file() else None
    known = json.loads(before) if before else {}
    both = known | value if isinstance(known, dict) and isinstance(value, dict) else value
    file.write_text(json.dumps(both))
    try:
        with contextlib.suppress(ModelError):
            encoder = OnnxEncoder(folder)
            assert encoder.fingerprint
            assert np.isfinite(encoder.for_queries().embed(["a b", "", "soup " * 30])).all()
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before)
