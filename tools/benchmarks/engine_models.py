"""One model for every engine: a torch checkpoint, and from it the files each engine reads.

    .venv-export/bin/python tools/benchmarks/engine_models.py graph  FOLDER --shape 30m
    .venv-export/bin/python tools/benchmarks/engine_models.py int8-rows FOLDER
    .venv-genai/bin/python  tools/benchmarks/engine_models.py genai  FOLDER
    .venv-llama/bin/python  tools/benchmarks/engine_models.py gguf   FOLDER

`graph` writes `FOLDER/hf` (checkpoint and tokenizer), `FOLDER/onnx` (what `fairgate export` makes of
it) and, of a `--model` that is a GGUF file, `FOLDER/given.gguf`, a copy. `int8-rows` writes the
graph in integers of one term and of two, `genai` builds `FOLDER/genai` from the checkpoint with
onnxruntime-genai's builder, `gguf` writes `FOLDER/q8_0.gguf`, from `FOLDER/f32.gguf` where no GGUF
file was given. Weights of `demo-slm` are the bundled model's; those of other shapes are random, of
SmolLM2-135M's (all of its 30 layers, or 8 of them and the bundled model's vocabulary), and have no
end token: speed does not depend on what weights say.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgate.features.onnx_export.int8_rows import Terms
    from fairgate.features.onnx_export.precision import Precision

DEMO = Path(__file__).parents[2] / "fairgate" / "data" / "models" / "demo-slm"
SHAPES = {"demo-slm": (0, 0), "30m": (8, 2048), "135m": (30, 49152)}
"""Layers and vocabulary."""
NEVER = 1_000_000_000
"""A token id that no model has."""
CONTROL = 3
"""GGUF's type of a token that is no text."""
FILE_TYPE = "general.file_type"
GIVEN = "given.gguf"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def write_checkpoint(folder: Path, shape: str) -> None:
    """Write a torch checkpoint with its tokenizer."""
    import torch
    from graph_to_torch import load_llama
    from transformers import LlamaConfig, LlamaForCausalLM

    layers, vocabulary = SHAPES[shape]
    if not layers:
        model = load_llama(DEMO)
    else:
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=layers,
            num_attention_heads=9,
            num_key_value_heads=3,
            max_position_embeddings=2048,
            initializer_range=0.05,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=2,
        )
        model = LlamaForCausalLM(config).eval()
    model.save_pretrained(str(folder))
    for name in TOKENIZER:
        shutil.copyfile(DEMO / name, folder / name)
    if vocabulary > SHAPES["30m"][1]:
        widen(folder / "tokenizer.json", vocabulary)


def widen(tokenizer: Path, vocabulary: int) -> None:
    """Give a tokenizer so many tokens; those that are added come from no text."""
    told = json.loads(tokenizer.read_text(encoding="utf-8"))
    known = told["model"]["vocab"]
    known |= {f"Ġunused{number}": number for number in range(len(known), vocabulary)}
    tokenizer.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")


def write_given(folder: Path, model: Path) -> None:
    """Write the checkpoint and tokenizer of a GGUF file, or of a folder as transformers has it."""
    from fairgate.features.onnx_export.command import ExportSource, without_gguf

    if without_gguf(ExportSource(name=str(model)), folder, decoder=True).gguf is None:
        shutil.copytree(model, folder)


def take_end_away(folder: Path) -> None:
    """Let every answer of a folder's model have full length."""
    for name in ("generation_config.json", "config.json"):
        file = folder / name
        settings = json.loads(file.read_text()) if file.is_file() else {}
        file.write_text(json.dumps(settings | {"eos_token_id": NEVER, "pad_token_id": 2}))


def take_end_away_from_gguf(file: Path) -> None:
    """Do the same for llama.cpp, which knows end tokens by their names, too.

    The vocabulary's last token, which is hardly ever said, is the end, and control tokens begin
    with another character.
    """
    from gguf import GGUFReader

    fields = GGUFReader(file, "r+").fields
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    fields["tokenizer.ggml.eos_token_id"].parts[-1][0] = len(tokens.data) - 1
    for token, kind in zip(tokens.data, kinds.data, strict=True):
        if kinds.parts[kind][0] == CONTROL:
            tokens.parts[token][0] = ord("_")


def write_graph(folder: Path, shape: str, model: Path | None, *, endless: bool) -> None:
    """Write checkpoint and graph, and a copy of the GGUF file that they are made of."""
    from fairgate.features.onnx_export.command import export_model

    if model:
        write_given(folder / "hf", model)
        if model.is_file():
            given = Path(shutil.copyfile(model, folder / GIVEN))
            if endless:
                take_end_away_from_gguf(given)
    else:
        write_checkpoint(folder / "hf", shape)
    if shape == "demo-slm":
        shutil.copytree(DEMO, folder / "onnx")
    else:
        export_model(str(folder / "hf"), folder / "onnx", say=print)
    if endless:
        take_end_away(folder / "onnx")
        take_end_away(folder / "hf")


def write_precision(source: Path, target: Path, precision: Precision, *, terms: Terms = 2) -> Path:
    """Write what `fairgate export --precision` makes of a model; parity is not compared."""
    from fairgate.features.onnx_export.precision import change_precision

    shutil.copytree(source, target)
    change_precision(target / "model.onnx", precision, terms=terms)
    return target


def write_genai(folder: Path) -> None:
    """Build onnxruntime-genai's folder in fp32 for the CPU."""
    source = folder / "genai-source"
    shutil.copytree(folder / "hf", source)
    told = json.loads((source / "config.json").read_text())
    for name in ("config.json", "generation_config.json"):  # the builder wants a token there is
        settings = json.loads((source / name).read_text())
        (source / name).write_text(json.dumps(settings | {"eos_token_id": 1}))
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    out = str(folder / "genai")
    where = ["-c", str(folder / "cache")]
    subprocess.run(
        [*builder, "-i", str(source), "-o", out, "-p", "fp32", "-e", "cpu", *where], check=True
    )
    shutil.rmtree(source)
    file = folder / "genai" / "genai_config.json"
    settings = json.loads(file.read_text())
    settings["model"]["eos_token_id"] = min(told["eos_token_id"], told["vocab_size"] - 1)
    file.write_text(json.dumps(settings))


def write_gguf(folder: Path, *, endless: bool) -> None:
    """Write llama.cpp's files: in float32 where no GGUF file was given, and in q8_0."""
    source = folder / GIVEN
    if not source.exists():
        source = folder / "f32.gguf"
        write_f32_gguf(source, folder / "hf")
        if endless:
            take_end_away_from_gguf(source)
    write_q8_0(source, folder / "q8_0.gguf")


def write_f32_gguf(file: Path, checkpoint: Path) -> None:
    """Write a Llama's checkpoint as GGUF in float32."""
    import gguf

    config = json.loads((checkpoint / "config.json").read_text())
    writer = gguf.GGUFWriter(str(file), "llama")
    describe(writer, config, json.loads((checkpoint / "tokenizer.json").read_text()))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for name, array in read_safetensors(checkpoint / "model.safetensors").items():
        heads = heads_of(name, config)
        writer.add_tensor(gguf_name(name), in_pairs(array, heads) if heads else array)
    finish(writer)


def write_q8_0(source: Path, target: Path) -> None:
    """Write another file's weights as 32 integers of 8 bits with a half-precision scale."""
    import gguf

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(str(target), reader.fields["general.architecture"].contents())
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in {"general.architecture", FILE_TYPE}:
            kind, inner = field.types[0], field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), kind, sub_type=inner)
    kind = gguf.GGMLQuantizationType.Q8_0
    for tensor in reader.tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if array.ndim == 1:
            writer.add_tensor(tensor.name, array)
        else:
            writer.add_tensor(tensor.name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    finish(writer)


def finish(writer: Any) -> None:
    """Write what a GGUF writer was given."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def describe(writer: Any, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    """Write what llama.cpp knows of the model beside its weights."""
    heads = config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_vocab_size(config["vocab_size"])
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if place < 3 else 1 for place in range(len(tokens))])
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(value=True)


def gguf_name(name: str) -> str:
    """Return llama.cpp's name of a Llama checkpoint's tensor."""
    for found, own in (
        ("model.layers.", "blk."),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.", "attn_"),
        ("mlp.", "ffn_"),
        ("_proj", ""),
    ):
        name = name.replace(found, own)
    return name


def heads_of(name: str, config: dict[str, Any]) -> int:
    """Return how many heads a tensor's rows belong to that are turned by position; else 0."""
    if "q_proj" in name:
        return int(config["num_attention_heads"])
    return int(config["num_key_value_heads"]) if "k_proj" in name else 0


def in_pairs(weights: Any, heads: int) -> Any:
    """Return rows in llama.cpp's order: the two halves that are turned together side by side."""
    rows, columns = weights.shape
    return (
        weights.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    )


def read_safetensors(file: Path) -> dict[str, Any]:
    """Return the float32 tensors of a file by name."""
    import numpy as np

    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    told = json.loads(content[8:start])
    told.pop("__metadata__", None)
    found = {}
    for name, one in told.items():
        if one["dtype"] != "F32":
            raise SystemExit(f"{file}: {name} is {one['dtype']}, expected F32")
        begin, end = one["data_offsets"]
        array = np.frombuffer(content[start + begin : start + end], dtype=np.float32)
        found[name] = array.reshape(one["shape"])
    return found


def write_int8_rows(folder: Path) -> None:
    """Write the graphs that `fairgate export --precision int8-rows` tries, whatever they lose."""
    write_precision(folder / "onnx", folder / "int8-rows-1", "int8-rows", terms=1)
    write_precision(folder / "onnx", folder / "int8-rows", "int8-rows")


def main() -> None:
    """Write one kind of files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=["graph", "int8-rows", "genai", "gguf"])
    parser.add_argument("folder", type=Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--shape", choices=list(SHAPES), default="demo-slm")
    which.add_argument("--model", type=Path, help="a GGUF file, or a folder as transformers has it")
    parser.add_argument("--endless", action="store_true", help="without an end token")
    options = parser.parse_args()
    shape = "" if options.model else options.shape
    endless = options.endless or SHAPES.get(shape, (0, 0))[0] > 0
    if options.kind == "graph":
        write_graph(options.folder, shape, options.model, endless=endless)
    elif options.kind == "int8-rows":
        write_int8_rows(options.folder)
    elif options.kind == "genai":
        write_genai(options.folder)
    else:
        write_gguf(options.folder, endless=endless)


if __name__ == "__main__":
    main()
