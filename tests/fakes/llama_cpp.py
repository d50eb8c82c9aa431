"""The bundled model behind llama.cpp's own server, for `make test-systems`.

`demo_gguf` writes the same weights, vocabulary and merges as GGUF: two engines, one model. Needs onnx,
gguf and xllamacpp, which are no dependencies of FairGate.
"""

import contextlib
import json
import urllib.request
from pathlib import Path

import numpy as np

import fairgate

MODEL = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
AS_IT_IS = "{% for message in messages %}{{ message.content }}{% endfor %}"
"""The bundled model has no chat template: it reads the prompt as it is."""
_CONTROL, _NORMAL = 3, 1
"""GGUF's types of tokens."""
_PARTS = {
    "attn_q": "q_proj", "attn_k": "k_proj", "attn_v": "v_proj", "attn_output": "o_proj",
    "ffn_gate": "gate_proj", "ffn_up": "up_proj", "ffn_down": "down_proj",
}  # fmt: skip


def demo_gguf(path):
    """Write the bundled model as GGUF and return the path."""
    config = json.loads((MODEL / "config.json").read_text())
    return _written(path, "llama", config, _tensors(config))


def model_gguf(model, path, *, architecture=None, tokenizer=True):
    """Write a Llama or Qwen 2 of transformers as GGUF, with the bundled model's tokenizer.

    `architecture` is what the file says that it is, if that is another.
    """
    import gguf

    config, kind = model.config.to_dict(), model.config.model_type
    architectures = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(architectures[kind], config["num_hidden_layers"])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}

    def tensors():
        for name, tensor in model.state_dict().items():
            turned = kind == "llama" and heads.get(name.split(".")[-2])
            array = tensor.float().numpy()
            found = names.get_name(name, try_suffixes=(".weight", ".bias"))
            yield found, _interleaved(array, turned) if turned else array

    return _written(path, architecture or kind, config, tensors(), tokenizer=tokenizer)


def _written(path, architecture, config, tensors, *, tokenizer=True):
    import gguf

    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name(path.stem)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if tokenizer:
        _add_tokenizer(writer, json.loads((MODEL / "config.json").read_text()))
    for name, array in tensors:
        writer.add_tensor(name, np.ascontiguousarray(array, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer, config):
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    special = {entry["content"] for entry in tokenizer["added_tokens"] if entry["special"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([_CONTROL if token in special else _NORMAL for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token("<s>" in json.dumps(tokenizer.get("post_processor")))
    writer.add_chat_template(AS_IT_IS)


def _tensors(config):
    """Yield name and weights, which ONNX keeps transposed in unnamed products."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(MODEL / "model.onnx")).graph
    weights = {entry.name: numpy_helper.to_array(entry) for entry in graph.initializer}
    products = {
        node.name: weights[node.input[1]].T
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in weights
    }
    yield "token_embd.weight", weights["model.embed_tokens.weight"]
    yield "output_norm.weight", weights["model.norm.weight"]
    for layer in range(config["num_hidden_layers"]):
        inside = f"model.layers.{layer}"
        yield f"blk.{layer}.attn_norm.weight", weights[f"{inside}.input_layernorm.weight"]
        yield f"blk.{layer}.ffn_norm.weight", weights[f"{inside}.post_attention_layernorm.weight"]
        for name, part in _PARTS.items():
            (array,) = (
                array
                for node, array in products.items()
                if f"layers.{layer}/" in node and f"/{part}/" in node
            )
            heads = config["num_attention_heads"]
            turned = name in ("attn_q", "attn_k")
            yield f"blk.{layer}.{name}.weight", _interleaved(array, heads) if turned else array


def _interleaved(array, heads):
    """Return rows in llama.cpp's order: halves of each head interleaved, for its rotation."""
    rows, width = array.shape
    halves = array.reshape(heads, 2, rows // heads // 2, width)
    return halves.swapaxes(1, 2).reshape(rows, width)


@contextlib.contextmanager
def llama_server(model):
    """Serve a GGUF model until the block ends; yields the address with its version."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {"demo-slm"}
    parameters.n_ctx = 4096
    parameters.n_parallel = 2
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.cache_prompt = False
    server = xllamacpp.Server(parameters)
    address = server.listening_address
    with urllib.request.urlopen(f"{address}/health", timeout=120):  # noqa: S310  # ours
        yield f"{address}/v1"
    del server
