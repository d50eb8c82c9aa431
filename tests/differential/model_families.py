"""Real decoder architectures in miniature: two layers, random weights, a window that is exceeded."""

from dataclasses import dataclass, field
from typing import Any

VOCABULARY = 512
WINDOW = 64
SWITCH = 256
"""Tokens up to which the LongRoPE models use their short factors."""
_TOKENS = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
_LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.2,
    "tie_word_embeddings": False,
    **_TOKENS,
}
_GPT_2 = {
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 2048,
    "initializer_range": 0.2,
    "tie_word_embeddings": False,
    **_TOKENS,
}
_FALCON = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "new_decoder_architecture": False,
    "max_position_embeddings": 2048,
    "initializer_range": 0.2,
    "tie_word_embeddings": False,
    **_TOKENS,
}
_HEAD = {"head_dim": 16}
_WIDE = {"hidden_size": 128}
_ALTERNATING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": WINDOW}
_LLAMA_3_ROPE = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": SWITCH,
}  # fmt: skip
_LONGROPE = {
    "original_max_position_embeddings": SWITCH,
    "rope_scaling": {
        "type": "longrope",
        "short_factor": [1.0 + 0.1 * step for step in range(8)],
        "long_factor": [2.0 + 0.5 * step for step in range(8)],
    },
}


@dataclass(frozen=True, kw_only=True)
class Family:
    """One architecture with one set of settings."""

    name: str
    kind: str
    """Start of the names of its classes in transformers."""
    settings: dict[str, Any] = field(default_factory=dict)
    exported: bool = True
    """Whether optimum-onnx 0.1.0 knows it."""
    built: bool = False
    """Whether the builder of onnxruntime-genai 0.18 makes a graph of it."""
    soft_caps: bool = False
    """Attention has a soft cap, which the builder's graphs keep and `sdpa` leaves out."""


def _family(name: str, kind: str, *settings: dict[str, Any], **rest: Any) -> Family:
    merged = {key: value for part in settings for key, value in part.items()}
    return Family(name=name, kind=kind, settings=merged, **rest)


def _llama(name: str, kind: str, *settings: dict[str, Any], **rest: Any) -> Family:
    return _family(name, kind, _LLAMA, *settings, **rest)


FAMILIES: tuple[Family, ...] = (
    _llama("Llama 2", "Llama", built=True),
    _llama("Llama 3.1", "Llama", {"rope_scaling": _LLAMA_3_ROPE}, built=True),
    _llama("Mistral 0.3", "Mistral", {"sliding_window": None}, built=True),
    _llama("Mistral 0.1 (window)", "Mistral", {"sliding_window": WINDOW}, built=True),
    _llama(
        "Phi-3", "Phi3",
        {"sliding_window": None, "original_max_position_embeddings": 2048}, built=True,
    ),
    _llama(
        "Phi-3 4k (window)", "Phi3",
        {"sliding_window": WINDOW, "original_max_position_embeddings": 2048}, built=True,
    ),
    _llama("Phi-3 128k (LongRoPE)", "Phi3", {"sliding_window": None}, _LONGROPE, built=True),
    _llama("Phi-2", "Phi", {**_WIDE, "num_key_value_heads": 4}, built=True),
    _llama("Gemma", "Gemma", _HEAD, built=True),
    _llama(
        "Gemma 2 (windows)", "Gemma2",
        {**_HEAD, "sliding_window": WINDOW, "query_pre_attn_scalar": 16}, built=True, soft_caps=True,
    ),
    _llama("Gemma 3 (windows)", "Gemma3Text", {**_HEAD, **_ALTERNATING, "query_pre_attn_scalar": 16}),
    _llama("Qwen 2", "Qwen2", built=True),
    _llama(
        "Qwen 2 (window)", "Qwen2",
        {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}, built=True,
    ),
    _llama("Qwen 3", "Qwen3", _HEAD, built=True),
    _llama(
        "Qwen 3 MoE", "Qwen3Moe",
        {**_HEAD, "moe_intermediate_size": 48, "num_experts": 4, "num_experts_per_tok": 2},
    ),
    _llama("Granite", "Granite", built=True),
    _llama("SmolLM3 (a layer without RoPE)", "SmolLM3", {"no_rope_layers": [1, 0]}),
    _llama("Cohere", "Cohere"),
    _llama("Helium", "Helium", _HEAD),
    _llama("GLM-4", "Glm", _HEAD),
    _llama("Arcee", "Arcee"),
    _llama("Nemotron", "Nemotron", _WIDE, built=True),
    _llama("OLMo", "Olmo"),
    _llama("OLMo 2", "Olmo2"),
    _llama("StableLM", "StableLm"),
    _llama(
        "GPT-OSS (windows, sinks)", "GptOss",
        {**_HEAD, **_ALTERNATING, "num_local_experts": 4, "num_experts_per_tok": 2}, built=True,
    ),
    _llama(
        "DeepSeek V3", "DeepseekV3",
        {
            "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
            "topk_group": 1, "moe_intermediate_size": 48, "n_shared_experts": 1, "q_lora_rank": 32,
            "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
            "first_k_dense_replace": 1,
        },
    ),
    _family("GPT-2", "GPT2", _GPT_2),
    _family("GPT-J", "GPTJ", _GPT_2, {"rotary_dim": 8}),
    _family("GPT BigCode (StarCoder)", "GPTBigCode", _GPT_2, {"multi_query": True}),
    _family("CodeGen", "CodeGen", _GPT_2, {"rotary_dim": 8, "n_ctx": 2048}),
    _family(
        "GPT-Neo (local layers)", "GPTNeo", _TOKENS,
        {
            "hidden_size": 64, "num_layers": 2, "num_heads": 4, "window_size": WINDOW,
            "attention_types": [[["global", "local"], 1]], "intermediate_size": 96,
            "max_position_embeddings": 2048, "initializer_range": 0.2,
        },
    ),
    _family(
        "GPT-NeoX (Pythia)", "GPTNeoX",
        {key: value for key, value in _LLAMA.items() if key != "num_key_value_heads"},
    ),
    _family(
        "OPT", "OPT", _TOKENS,
        {
            "hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 2048, "word_embed_proj_dim": 64, "init_std": 0.2,
            "tie_word_embeddings": False,
        },
    ),
    _family(
        "BLOOM (ALiBi)", "Bloom", _TOKENS,
        {
            "hidden_size": 64, "n_layer": 2, "n_head": 4, "initializer_range": 0.2,
            "tie_word_embeddings": False,
        },
    ),
    _family(
        "MPT (ALiBi)", "Mpt", _TOKENS,
        {
            "d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 2048,
            "initializer_range": 0.2, "tie_word_embeddings": False,
        },
    ),
    _family("Falcon", "Falcon", _FALCON, {"multi_query": True, "alibi": False}),
    _family("Falcon RW (ALiBi)", "Falcon", _FALCON, {"multi_query": False, "alibi": True}),
    _llama("ERNIE 4.5", "Ernie4_5", _HEAD, exported=False, built=True),
    _llama("Hunyuan", "HunYuanDenseV1", _HEAD, exported=False, built=True),
    _llama(
        "Granite 4 (attention only)", "GraniteMoeHybrid",
        {
            "layer_types": ["attention", "attention"], "num_local_experts": 0,
            "shared_intermediate_size": 96, "position_embedding_type": "rope",
        },
        exported=False, built=True,
    ),
    _llama(
        "LFM2 (convolutions)", "Lfm2", {"layer_types": ["conv", "full_attention"]},
        exported=False, built=True,
    ),
)  # fmt: skip
