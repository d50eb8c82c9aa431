"""This engine on an NVIDIA card beside `transformers.generate`, on one random model, in one run.

    python tools/benchmarks/bench_cuda.py FOLDER [--shape 3b] [--prompts 2200] [--rounds 5]

needs `fairgate[cuda]`, torch with CUDA, transformers, and onnxruntime-genai, whose builder writes the
graph: float16, attention in GroupQueryAttention. FOLDER keeps checkpoint and graph for the next run.
`3b` has Llama-3.2-3B's shape. The prompts are the first of a policy's own gate; 2,200 are the paper's
100 sources with 22 prompts each.

- two tokens, all prompts: what a gate takes whose labels are one token; and its prefill, as a share of
  the rate at which torch multiplies large matrices in this format on this card
- 150 tokens: this engine, `transformers.generate` in batches of `--batch`, and the paper's loop, which
  asks one prompt at a time to the end; it runs `--loop` prompts, and its time is taken for all

Without a card, `--device cpu --shape tiny --prompts 4 --batch 4 --loop 2` runs the same steps in
float32 on the graph of `fairgate export`, in the export environment: a rehearsal, not a measurement.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_prefixes import ROOT, prompts_of
from engine_models import DEMO, TOKENIZER, take_end_away, widen

from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder

LONG = 150
SHAPES: dict[str, dict[str, Any]] = {
    "3b": {
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 28,
        "num_attention_heads": 24,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 128256,
        "rope_theta": 500000.0,
    },
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 2048,
    },
}


def write_model(folder: Path, shape: str, device: str) -> None:
    """Write checkpoint, tokenizer and graph, where they are not there yet."""
    if (folder / "onnx").is_dir():
        return
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        **SHAPES[shape],
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        initializer_range=0.02,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    with torch.device(device):
        model = LlamaForCausalLM(config).to(dtype_on(device)).eval()
    source = folder / "hf"
    model.save_pretrained(str(source))
    for name in TOKENIZER:
        shutil.copyfile(DEMO / name, source / name)
    widen(source / "tokenizer.json", config.vocab_size)
    if device == "cuda":
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source)]
        written = ["-o", str(folder / "onnx"), "-c", str(folder / "cache")]
        subprocess.run([*builder, *written, "-p", "fp16", "-e", "cuda"], check=True)
        shutil.copyfile(source / "config.json", folder / "onnx" / "config.json")
    else:
        from fairgate.features.onnx_export.command import export_model

        export_model(str(source), folder / "onnx", say=print)
    take_end_away(source)
    take_end_away(folder / "onnx")


def dtype_on(device: str) -> Any:
    """Return the number format that is measured there."""
    import torch

    return torch.float16 if device == "cuda" else torch.float32


def seconds(work: Callable[[], Any], device: str) -> float:
    """Return how long work takes, until the card has done it."""
    import torch

    def done() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    done()
    start = time.perf_counter()
    work()
    done()
    return time.perf_counter() - start


def matrix_rate(device: str, size: int) -> float:
    """Return floating-point operations a second of a product of two square matrices."""
    import torch

    left, right = torch.randn(2, size, size, device=device, dtype=dtype_on(device))
    times = 10
    torch.matmul(left, right)
    taken = [
        seconds(lambda: [torch.matmul(left, right) for _ in range(times)], device) for _ in range(5)
    ]
    return 2 * size**3 * times / statistics.median(taken)


def engine_of(folder: Path, tokens: int, device: str, prompts: list[str]) -> Callable[[], Any]:
    """Return the work of this engine, warm."""
    decoding = Decoding(max_new_tokens=tokens)
    engine = OnnxDecoder(folder, decoding=decoding, batch_size=None, device=device)  # type: ignore[arg-type]
    requests = [GenerationRequest(prompt=prompt) for prompt in prompts]
    list(engine.generate(requests[:2]))
    return lambda: list(engine.generate(requests))


def transformers_of(folder: Path, device: str, prompts: list[str], batch: int) -> Callable[[], Any]:
    """Return the work of `transformers.generate`, warm; the prompts sorted by length."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), padding_side="left")
    load = AutoModelForCausalLM.from_pretrained
    model = load(str(folder), torch_dtype=dtype_on(device)).to(device).eval()
    ordered = sorted(prompts, key=len)

    def generate(texts: list[str], tokens: int) -> None:
        given = tokenizer(
            texts, return_tensors="pt", padding=len(texts) > 1, return_token_type_ids=False
        ).to(device)
        with torch.inference_mode():
            model.generate(**given, max_new_tokens=tokens, do_sample=False)

    generate(ordered[:batch], 4)
    parts = [ordered[start : start + batch] for start in range(0, len(ordered), batch)]
    return lambda: [generate(part, LONG) for part in parts]


def weights_per_token(folder: Path) -> int:
    """Return how many weights every token of a prompt is multiplied with."""
    told = json.loads((folder / "config.json").read_text())
    wide, size = told["hidden_size"], told.get("head_dim")
    size = size or wide // told["num_attention_heads"]
    attended = 2 * wide * size * (told["num_attention_heads"] + told["num_key_value_heads"])
    return int(told["num_hidden_layers"] * (attended + 3 * wide * told["intermediate_size"]))


def main() -> None:
    """Print one table; every round takes all of them in turn."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=list(SHAPES), default="3b")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--prompts", type=int, default=2200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--loop", type=int, default=8, help="prompts of the paper's loop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--policy", type=Path, default=ROOT / "policies" / "rag-sentiment.yaml")
    options = parser.parse_args()
    device, source, graph = options.device, options.folder / "hf", options.folder / "onnx"
    write_model(options.folder, options.shape, device)
    prompts = [one.prompt for one in prompts_of(options.policy)][: options.prompts]
    few = prompts[: options.batch]
    work = {
        "FairGate, one token": engine_of(graph, 1, device, prompts),
        "FairGate, two tokens": engine_of(graph, 2, device, prompts),
        "FairGate, 150 tokens": engine_of(graph, LONG, device, few),
        "transformers in a batch, 150 tokens": transformers_of(source, device, few, options.batch),
        "the paper's loop, 150 tokens": transformers_of(source, device, few[: options.loop], 1),
    }
    asked = dict(zip(work, [len(prompts)] * 2 + [len(few)] * 2 + [options.loop], strict=True))
    rate = matrix_rate(device, 8192 if device == "cuda" else 1024)
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(options.rounds):
        for name, one in work.items():
            taken[name].append(seconds(one, device) / asked[name])
    each = {name: statistics.median(found) for name, found in taken.items()}
    print(f"{len(prompts)} prompts, {device}, medians of {options.rounds} rounds\n")
    print(f"| | prompts | ms a prompt | {len(prompts)} prompts, s |\n|---|--:|--:|--:|")
    for name, one in each.items():
        print(f"| {name} | {asked[name]} | {1000 * one:.2f} | {one * len(prompts):.1f} |")
    engine = OnnxDecoder(graph, decoding=Decoding())
    tokens = sum(map(len, engine._prompts.encode(prompts))) / len(prompts)
    reached = 2 * weights_per_token(graph) * tokens / each["FairGate, one token"]
    loop = each["the paper's loop, 150 tokens"]
    print(
        f"\n{tokens:.0f} tokens a prompt. Prefill reaches {reached / rate:.2f} of the matrix rate, "
    )
    print(
        f"{rate / 1e12:.2f} TFLOP/s. The paper's loop takes {loop / each['FairGate, two tokens']:.0f} "
    )
    print("times as long as two tokens, ", end="")
    print(f"{loop / each['FairGate, 150 tokens']:.1f} times as long as 150 tokens.")


if __name__ == "__main__":
    main()
