"""Builds a small decoder graph with GroupQueryAttention, as onnxruntime-genai's builder lays it out.

No position_ids: the operator counts each row's tokens by the sum of its attention mask and turns
the rotary embedding itself. Written from the operator's documentation, not taken from the builder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class GqaGraph:
    """A Llama-architecture graph from named float32 arrays in transformers' layout."""

    def __init__(self, weights: dict[str, np.ndarray], config: dict[str, object]):
        self.weights = weights
        self.layers = int(config["num_hidden_layers"])
        self.heads = int(config["num_attention_heads"])
        self.kv_heads = int(config["num_key_value_heads"])
        self.hidden = int(config["hidden_size"])
        self.size = self.hidden // self.heads
        self.theta = float(config.get("rope_theta", 10000.0))
        self.epsilon = float(config.get("rms_norm_eps", 1e-6))
        self.context = int(config["max_position_embeddings"])
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def build(self) -> onnx.ModelProto:
        self._lengths_and_rotation()
        state = self._node("Gather", [self._weight("model.embed_tokens.weight"), "input_ids"])
        for layer in range(self.layers):
            state = self._layer(layer, state)
        state = self._norm(state, "model.norm.weight")
        head = "lm_head.weight" if "lm_head.weight" in self.weights else "model.embed_tokens.weight"
        self.nodes.append(
            helper.make_node("MatMul", [state, self._weight(head, turn=True)], ["logits"])
        )
        caches = [f"{layer}.{part}" for layer in range(self.layers) for part in ("key", "value")]
        inputs = [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"]),
            *(self._cache(f"past_key_values.{name}", "past") for name in caches),
        ]
        outputs = [
            helper.make_tensor_value_info(
                "logits", TensorProto.FLOAT, ["batch", "sequence", "vocabulary"]
            ),
            *(self._cache(f"present.{name}", "total") for name in caches),
        ]
        graph = helper.make_graph(self.nodes, "gqa", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def _lengths_and_rotation(self) -> None:
        one = self._constant("one", np.array([1], dtype=np.int64))
        total = self._node("ReduceSum", ["attention_mask", one], keepdims=0)
        less = self._node("Sub", [total, one])
        self.nodes.append(helper.make_node("Cast", [less], ["seqlens_k"], to=TensorProto.INT32))
        shape = self._node("Shape", ["attention_mask"])
        width = self._node("Gather", [shape, self._constant("axis", np.array(1, dtype=np.int64))])
        self.nodes.append(helper.make_node("Cast", [width], ["total_length"], to=TensorProto.INT32))
        steps = np.arange(0, self.size, 2, dtype=np.float32) / self.size
        angles = np.outer(np.arange(self.context, dtype=np.float32), 1.0 / self.theta**steps)
        self._constant("cos", np.cos(angles).astype(np.float32))
        self._constant("sin", np.sin(angles).astype(np.float32))

    def _layer(self, layer: int, state: str) -> str:
        name = f"model.layers.{layer}"
        inside = self._norm(state, f"{name}.input_layernorm.weight")
        query, key, value = (
            self._linear(inside, f"{name}.self_attn.{part}_proj.weight") for part in "qkv"
        )
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        mixed = f"mixed.{layer}"
        self.nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [query, key, value, *past, "seqlens_k", "total_length", "cos", "sin"],
                [mixed, *present],
                domain="com.microsoft",
                num_heads=self.heads,
                kv_num_heads=self.kv_heads,
                do_rotary=1,
            )
        )
        state = self._node("Add", [state, self._linear(mixed, f"{name}.self_attn.o_proj.weight")])
        inside = self._norm(state, f"{name}.post_attention_layernorm.weight")
        gate = self._linear(inside, f"{name}.mlp.gate_proj.weight")
        gate = self._node("Mul", [gate, self._node("Sigmoid", [gate])])
        raised = self._node("Mul", [gate, self._linear(inside, f"{name}.mlp.up_proj.weight")])
        return self._node("Add", [state, self._linear(raised, f"{name}.mlp.down_proj.weight")])

    def _norm(self, state: str, weight: str) -> str:
        return self._node(
            "SimplifiedLayerNormalization",
            [state, self._weight(weight)],
            axis=-1,
            epsilon=self.epsilon,
            stash_type=1,
        )

    def _linear(self, state: str, weight: str) -> str:
        return self._node("MatMul", [state, self._weight(weight, turn=True)])

    def _node(self, kind: str, inputs: list[str], **attributes: object) -> str:
        output = f"value.{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _weight(self, name: str, *, turn: bool = False) -> str:
        array = self.weights[name]
        stored = f"{name}.T" if turn else name
        return self._constant(stored, np.ascontiguousarray(array.T if turn else array))

    def _constant(self, name: str, array: np.ndarray) -> str:
        if all(one.name != name for one in self.constants):
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def _cache(self, name: str, length: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(
            name, TensorProto.FLOAT, ["batch", self.kv_heads, length, self.size]
        )


def random_weights(config: dict[str, object], seed: int) -> dict[str, np.ndarray]:
    """Return random float32 weights of a Llama of this configuration."""
    rng = np.random.default_rng(seed)
    hidden, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    kv = hidden // int(config["num_attention_heads"]) * int(config["num_key_value_heads"])
    vocabulary = int(config["vocab_size"])
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, hidden),
        "lm_head.weight": (vocabulary, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(int(config["num_hidden_layers"])):
        name = f"model.layers.{layer}"
        shapes |= {
            f"{name}.self_attn.q_proj.weight": (hidden, hidden),
            f"{name}.self_attn.k_proj.weight": (kv, hidden),
            f"{name}.self_attn.v_proj.weight": (kv, hidden),
            f"{name}.self_attn.o_proj.weight": (hidden, hidden),
            f"{name}.mlp.gate_proj.weight": (inner, hidden),
            f"{name}.mlp.up_proj.weight": (inner, hidden),
            f"{name}.mlp.down_proj.weight": (hidden, inner),
            f"{name}.input_layernorm.weight": (hidden,),
            f"{name}.post_attention_layernorm.weight": (hidden,),
        }
    return {
        name: np.ones(shape, dtype=np.float32)
        if len(shape) == 1
        else rng.normal(0.0, 0.15, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


CONFIG: dict[str, object] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": 2048,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def write_gqa_model(
    folder: Path,
    tokenizer_from: Path,
    weights: dict[str, np.ndarray] | None = None,
    config: dict[str, object] | None = None,
) -> Path:
    """Write graph, config and another model's tokenizer into `folder`; random unless given."""
    config = config or CONFIG
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(tokenizer_from / name, folder / name)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    graph = GqaGraph(weights or random_weights(config, 0), config)
    onnx.save(graph.build(), str(folder / "model.onnx"))
    return folder
