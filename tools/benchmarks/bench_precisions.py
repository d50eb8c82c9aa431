"""How near a model in fewer bits stays to float32: cosine of logits, and the likeliest token.

    python tools/benchmarks/bench_precisions.py [--model FOLDER] [--policy FILE] [--prompts 216]

`--model` is what `fairgate export` makes of a decoder in float32 (the bundled `demo-slm` without
it). Its graph is stored in every precision as `fairgate export --precision` stores it (int8 and
int4 need `onnx-ir`), and reads a policy's own prompts, of which `--runs` takes as many runs of
neighbours (see `bench_prefixes.py`), and after each float32's likeliest token. No time is taken.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from bench_prefixes import ROOT, chosen, prompts_of
from engine_models import DEMO, write_precision

from fairgate.features.onnx_export.precision import Precision
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.onnx.trials import open_decoder


def logits_of(
    folder: Path, prompts: Sequence[Sequence[int]], then: Sequence[int] | None = None
) -> Any:
    """Return `[2, prompts, vocabulary]`: after each prompt, and after one token more.

    `then` are these tokens; each prompt's likeliest without it.
    """
    session = open_decoder(ModelFolder.find(folder), device="cpu", threads=1)
    first, second = [], []
    for place, prompt in enumerate(prompts):
        found, cache = session.prefill([prompt, prompt], len(prompt))  # a lone row is no batch
        first.append(found[0, 0].astype(np.float64))
        token = int(first[-1].argmax()) if then is None else then[place]
        second.append(session.step(cache, [token, token])[0].astype(np.float64))
    return np.stack([first, second])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=DEMO)
    parser.add_argument("--policy", type=Path, default=ROOT / "policies" / "rag-sentiment.yaml")
    parser.add_argument("--prompts", type=int, default=216, help="0: all")
    parser.add_argument("--runs", type=int, default=4)
    options = parser.parse_args()
    logging.disable(logging.INFO)  # the quantiser names every node
    tokenizer = PromptTokenizer(ModelFolder.find(options.model))
    requests = chosen(prompts_of(options.policy), options.prompts, options.runs)
    prompts = tokenizer.encode([request.prompt for request in requests])
    exact = logits_of(options.model, prompts)
    likeliest = exact.argmax(axis=-1)
    print(f"{len(prompts)} prompts and a token after each, beside float32\n")
    print("| precision | least cosine of logits | likeliest token the same |\n|---|--:|--:|")
    for precision in get_args(Precision):
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_precision(options.model, Path(scratch) / precision, precision)
            found = logits_of(folder, prompts, likeliest[0].tolist())
        lengths = np.linalg.norm(found, axis=-1) * np.linalg.norm(exact, axis=-1)
        cosines = (found * exact).sum(axis=-1) / lengths
        same = found.argmax(axis=-1) == likeliest
        print(f"| {precision} | {cosines.min():.6f} | {same.sum()} of {same.size} |", flush=True)


if __name__ == "__main__":
    main()
