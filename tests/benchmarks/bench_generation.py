"""Generation, side by side in one run: this engine, the paper's loop, and optimum in batches.

    python tests/benchmarks/bench_generation.py [--prompts 60] [--threads 2] [--documents 4]

needs the export environment (torch, optimum). Same prompts, same model, greedy, 150 new tokens:

- `engine`: OnnxDecoder, stops when the label is certain
- `engine, no stop rule`: the same without labels, so every answer runs to its end
- `paper's loop`: transformers.generate, one prompt at a time
- `optimum`: ORTModelForCausalLM.generate, batches of 16, left padded, sorted by length

Two tables. The embedded model ends its answer right after the label, so the stop rule saves it
little; the models of the paper go on talking, which the second table shows by taking the end
token away from all engines alike. Labels must agree; the script fails where they do not. The
median of three runs counts for the engine; the slow ones run once.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graph_to_torch import load_llama

import fairgate
from fairgate.adapters.onnx_decoder import OnnxDecoder
from fairgate.domain.executions import Decoding, Document, GenerationRequest
from fairgate.engine.prompts import DEFAULT_TEMPLATE, render_prompt
from fairgate.oracles.label import first_label

DATA = Path(fairgate.__file__).parent / "data"
LABELS = ("positive", "negative", "neutral", "mixed")
INSTRUCTION = (
    "What is the sentiment of the text? Answer with one word: positive, negative, neutral or mixed."
)
NEVER = 1_000_000_000
"""A token id that no model has."""
WHO = ("A gay person", "An Asian person", "A reader", "An elderly person", "A woman")


def make_prompts(number: int, documents: int) -> list[str]:
    """Return prompts as the gate makes them: source reviews, prefixed, with documents."""
    lines = (DATA / "sources" / "demo-reviews.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    with (DATA / "corpora" / "demo" / "documents.csv").open(encoding="utf-8", newline="") as file:
        corpus = [Document(text=row["text"]) for row in csv.DictReader(file)]
    return [
        render_prompt(
            DEFAULT_TEMPLATE,
            instruction=INSTRUCTION,
            text=f'{WHO[i % len(WHO)]} says the following text: "{texts[i % len(texts)]}"',
            documents=[corpus[(7 * i + k) % len(corpus)] for k in range(documents)],
            characters=200,
        )
        for i in range(number)
    ]


def timed(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the median seconds of `repeats` runs and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def run_engine(engine: OnnxDecoder, prompts: list[str], labels: tuple[str, ...]) -> list[str]:
    """Return the answers of this engine."""
    requests = [GenerationRequest(prompt=prompt, labels=labels) for prompt in prompts]
    answers = dict(engine.generate(requests))
    return [answers[place].text for place in range(len(prompts))]


def run_paper(model: Any, tokenizer: Any, prompts: list[str], new_tokens: int) -> list[str]:
    """Return the answers of the paper's loop: one prompt at a time, to the end."""
    import torch

    answers = []
    for prompt in prompts:
        inputs = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=new_tokens, do_sample=False)
        new = out[0, inputs["input_ids"].shape[1] :]
        answers.append(tokenizer.decode(new, skip_special_tokens=True))
    return answers


def run_optimum(
    model: Any, tokenizer: Any, prompts: list[str], new_tokens: int, batch_size: int = 16
) -> list[str]:
    """Return the answers of optimum's batched generate, the rows sorted by length."""
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    answers = [""] * len(prompts)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        inputs = tokenizer(
            [prompts[place] for place in places],
            return_tensors="pt",
            padding=True,
            return_token_type_ids=False,
        )
        out = model.generate(**inputs, max_new_tokens=new_tokens, do_sample=False)
        texts = tokenizer.batch_decode(
            out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
        for place, text in zip(places, texts, strict=True):
            answers[place] = text
    return answers


def load_optimum(folder: Path, threads: int) -> Any:
    """Return optimum's model on the same graph and number of threads."""
    import onnxruntime
    from optimum.onnxruntime import ORTModelForCausalLM

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return ORTModelForCausalLM.from_pretrained(str(folder), session_options=options)


def talkative(folder: Path, scratch: Path) -> Path:
    """Return a copy of the model that has no end token, so that every answer has full length."""
    copy = scratch / "talkative"
    shutil.copytree(folder, copy)
    for name in ("generation_config.json", "config.json"):
        file = copy / name
        settings = json.loads(file.read_text()) if file.is_file() else {}
        file.write_text(json.dumps(settings | {"eos_token_id": NEVER, "pad_token_id": 2}))
    return copy


def compare(folder: Path, prompts: list[str], options: argparse.Namespace) -> None:
    """Run all engines on one model and print their table."""
    from transformers import AutoTokenizer, GenerationConfig

    new = options.new_tokens
    tokenizer = AutoTokenizer.from_pretrained(str(folder), padding_side="left")
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=new), threads=options.threads)
    model = load_llama(folder)
    model.generation_config = GenerationConfig.from_pretrained(str(folder))
    optimum = load_optimum(folder, options.threads)
    run_engine(engine, prompts[:2], LABELS)
    run_paper(model, tokenizer, prompts[:1], 4)
    run_optimum(optimum, tokenizer, prompts[:2], 4)
    report(
        {
            "engine": timed(lambda: run_engine(engine, prompts, LABELS), repeats=3),
            "engine, no stop rule": timed(lambda: run_engine(engine, prompts, ())),
            "paper's loop": timed(lambda: run_paper(model, tokenizer, prompts, new)),
            "optimum": timed(lambda: run_optimum(optimum, tokenizer, prompts, new)),
        }
    )


def main() -> None:
    """Compare the engines on the model as it is and on a talkative copy of it."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=DATA / "models" / "demo-slm")
    parser.add_argument("--prompts", type=int, default=60)
    parser.add_argument("--documents", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--new-tokens", type=int, default=150)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    prompts = make_prompts(options.prompts, options.documents)
    print(f"{options.prompts} prompts, {options.threads} threads, {options.new_tokens} new tokens")
    print("\nThe model as it is (it ends its answers by itself)")
    compare(options.model, prompts, options)
    with tempfile.TemporaryDirectory() as scratch:
        print("\nA talkative model (no end token: every full answer has all new tokens)")
        compare(talkative(options.model, Path(scratch)), prompts, options)


def report(results: dict[str, tuple[float, list[str]]]) -> None:
    """Print the table; exit with an error where labels differ."""
    own, answers = results["engine"]
    expected = [first_label(text, LABELS) for text in answers]
    print(f"{'':24}{'seconds':>10}{'engine is faster by':>22}{'same labels':>14}")
    agreed = True
    for name, (seconds, texts) in results.items():
        same = sum(
            first_label(text, LABELS) == label for text, label in zip(texts, expected, strict=True)
        )
        agreed = agreed and same == len(expected)
        print(f"{name:24}{seconds:>10.2f}{seconds / own:>21.1f}x{same:>8}/{len(expected)}")
    if not agreed:
        raise SystemExit("labels differ between the engines")


if __name__ == "__main__":
    main()
