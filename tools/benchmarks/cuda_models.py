"""Random models for `tools/on_cuda.py`, and what is counted of them.

`3b` has Llama-3.2-3B's shape; `tiny` is for rehearsals and refusals.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_models import DEMO, TOKENIZER, take_end_away, widen

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


def weights_per_token(folder: Path) -> int:
    """Return how many weights every token of a prompt is multiplied with."""
    told = json.loads((folder / "config.json").read_text())
    wide, size = told["hidden_size"], told.get("head_dim")
    size = size or wide // told["num_attention_heads"]
    attended = 2 * wide * size * (told["num_attention_heads"] + told["num_key_value_heads"])
    return int(told["num_hidden_layers"] * (attended + 3 * wide * told["intermediate_size"]))
