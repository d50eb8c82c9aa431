"""This engine beside others on one model and the same prompts, in one run.

    python tools/benchmarks/bench_engines.py --shape 30m [--work tokens] [--threads 2]
    python tools/benchmarks/bench_engines.py --model FILE.gguf --new-tokens 6

Every engine runs in a process of its own, in the environment that has it; they take turns, and the
medians of the rounds' ratios count. A number behind an engine's name: prompts that run together.
`--model`: a GGUF file or a folder as transformers has it, asked the prompts of
`policies/smollm2-sentiment.yaml`, whose own model must be there (`make demo-slm`); `--shape`: the
bundled model, or random weights.
`--work labels`: the first prompts of a policy's own gate, at most so many tokens answered as a
label takes; where it is certain earlier, this engine stops. `--work tokens`: 150 tokens each, from
a model without an end token. `.venv-export` has transformers and optimum;
`.venv-genai` needs `onnxruntime-genai onnx onnx-ir torch transformers`, `.venv-llama` needs
`xllamacpp gguf tokenizers numpy`, `.venv-openvino` needs `openvino-genai tokenizers`. What is missing there is a row of the table, with the reason.

The limit: the products with weights of every prompt's tokens and of the answers', none of them
shared, and each beginning counted once, at the rate that one such product alone reaches in ONNX
Runtime in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench_prefixes import chosen, prompts_of
from engine_models import SHAPES
from engine_table import OWN, Measured, table
from engine_worker import ENGINES, tokenizer_of
from matrix_rate import product_rate

from fairgate.domain.executions import GenerationRequest
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.relations.oracles.label import first_label

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = {
    "transformers": ".venv-export",
    "optimum": ".venv-export",
    "genai": ".venv-genai",
    "llama.cpp": ".venv-llama",
    "openvino": ".venv-openvino",
}
FILES = (
    ("graph", "onnx", "optimum"),
    ("int8-rows", "int8-rows", "fairgate-int8-rows"),
    ("genai", "genai", "genai"),
    ("gguf", "q8_0.gguf", "llama.cpp"),
)
"""Kinds of files, the last one written, and what needs them."""
NEW_TOKENS = {"labels": 2, "tokens": 150}
"""At most; a label of the bundled model takes two."""
OPENING = [GenerationRequest(prompt="Never again.")]


class NotMeasured(Exception):  # noqa: N818 it is a result
    """Why an engine has no figures."""


class Worker:
    """An engine in its own process."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def reply(self) -> dict[str, Any]:
        """Return what comes next. Raises NotMeasured where the process has ended."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            told = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((one for one in reversed(told) if one.strip()), "it ended without a word")
            raise NotMeasured(last.strip().replace("|", "/")[:200])
        return dict(json.loads(line))

    def ask(self, work: dict[str, Any]) -> dict[str, Any]:
        """Return what one round took."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(work) + "\n")
        self._process.stdin.flush()
        return self.reply()


@contextmanager
def started(
    python: Path, engine: str, folder: Path, threads: int, padding: int
) -> Iterator[Worker]:
    """Start a worker and end it."""
    log = folder / f"{engine}.log"
    call = [str(python), str(HERE / "engine_worker.py"), engine, str(folder)]
    with log.open("w") as told:
        process = subprocess.Popen(
            [*call, "--threads", str(threads), "--padding", str(padding)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        )
    try:
        yield Worker(process, log)
    finally:
        process.kill()
        process.communicate()


def python_of(engine: str) -> Path:
    """Return the interpreter of an engine's environment. Raises NotMeasured where it is missing."""
    name = ENVIRONMENTS.get(engine.split("-", maxsplit=1)[0])
    found = Path(sys.executable) if name is None else ROOT / name / "bin" / "python"
    if not found.exists():
        raise NotMeasured(f"there is no {name}")
    return found


def prepare(folder: Path, which: list[str], engines: Sequence[str]) -> None:
    """Write what is missing of a model's files, where the environment for it is there."""
    families = {*engines, *(name.split("-", maxsplit=1)[0] for name in engines)}
    for kind, file, engine in FILES:
        if (folder / file).exists() or (kind != "graph" and engine not in families):
            continue
        try:
            python = python_of(engine)
        except NotMeasured as reason:
            if kind == "graph":
                raise SystemExit(f"{reason}, which makes the models") from None
            continue  # the engine's row says so
        call = [str(python), str(HERE / "engine_models.py"), kind, str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*call, *which], env=environment, stdout=sys.stderr, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join([*call, *which])} failed")


def work_of(
    requests: Sequence[GenerationRequest], tokenizer: PromptTokenizer, new_tokens: int
) -> dict[str, Any]:
    """Return what a worker is asked."""
    ids = tokenizer.encode([one.prompt for one in requests])
    return {"requests": [*map(asdict, requests)], "ids": ids, "new_tokens": new_tokens}


def measure(
    folder: Path, opening: dict[str, Any], work: dict[str, Any], options: argparse.Namespace
) -> tuple[dict[str, Measured], float]:
    """Return every engine's figures, and operations a second of a product alone."""
    found = {name: Measured() for name in options.engines}
    padding = padding_of(folder, work["ids"])
    few = {**work, "requests": work["requests"][:2], "ids": work["ids"][:2]}
    rates = []
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name, one in found.items():
            start = time.perf_counter()
            try:
                python = python_of(name)
                start_it = started(python, name, folder, options.threads, padding)
                workers[name] = stack.enter_context(start_it)
                workers[name].ask(opening)
                one.start = time.perf_counter() - start
                workers[name].ask(few)  # warm
            except NotMeasured as reason:
                one.failure = str(reason)
        for number in range(options.rounds):
            for name, one in found.items():
                if not one.failure:
                    one.add(workers[name].ask(work))
            # One thread's rate is not that of its neighbours, who may share the processor.
            clock = time.process_time if options.threads == 1 else time.perf_counter
            rates.append(product_rate(threads=options.threads, rounds=1, clock=clock))
            taken = (
                f"{name} {one.processor[-1]:.2f}" for name, one in found.items() if one.processor
            )
            print(f"round {number + 1} of {options.rounds}: {', '.join(taken)}", file=sys.stderr)
    return found, statistics.median(rates)


def padding_of(folder: Path, ids: Sequence[Sequence[int]]) -> int:
    """Return a control token that no prompt holds."""
    known = tokenizer_of(folder).get_added_tokens_decoder()
    used = {token for prompt in ids for token in prompt}
    return int(max(token for token, one in known.items() if one.special and token not in used))


def beginnings(ids: Sequence[Sequence[int]]) -> int:
    """Return how many tokens prompts have where what they begin with in common counts once."""
    return len({tuple(one[: end + 1]) for one in ids for end in range(len(one))})


def needed(folder: Path, prompts: int, read: int, new_tokens: int) -> float:
    """Return the operations of all products with weights, of every token that is read or written.

    The last layer's, onto the vocabulary, count for written tokens only.
    """
    told = json.loads((folder / "hf" / "config.json").read_text())
    hidden, inner = told["hidden_size"], told["intermediate_size"]
    shared = hidden * told["num_key_value_heads"] // told["num_attention_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * shared + 3 * hidden * inner
    written = prompts * new_tokens
    weights = layer * told["num_hidden_layers"] * (read + written - prompts)
    return 2.0 * (weights + hidden * told["vocab_size"] * written)


def arguments() -> argparse.Namespace:
    """Return what is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--shape", choices=list(SHAPES), default="demo-slm")
    which.add_argument("--model", type=Path, help="a GGUF file, or a folder as transformers has it")
    parser.add_argument("--work", choices=list(NEW_TOKENS), default="labels")
    parser.add_argument("--new-tokens", type=int, help="at most (default: by --work, 2 and 150)")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--runs", type=int, default=0, help="see bench_prefixes.py; 0: the first")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), help="(default: all)")
    parser.add_argument("--policy", type=Path, help="(default: by --model or --shape)")
    parser.add_argument("--models", type=Path, default=ROOT / ".benchmarks" / "models")
    found = parser.parse_args()
    absent = "-f32-" if found.model and found.model.is_file() else "-given-"
    names = found.engines or [name for name in ENGINES if absent not in name]
    found.engines = [OWN, *(name for name in names if name != OWN)]
    return found


def main() -> None:
    """Make the model, measure, and print the table."""
    options = arguments()
    name = options.model.stem if options.model else options.shape
    has_labels = options.work == "labels" and (options.model or name == "demo-slm")
    folder = options.models / (name + "-endless" * (not has_labels))
    folder.mkdir(parents=True, exist_ok=True)
    which = ["--model", str(options.model)] if options.model else ["--shape", name]
    prepare(folder, [*which, *(["--endless"] if not has_labels else [])], options.engines)
    policy = "smollm2-sentiment" if options.model else "rag-sentiment"
    asked = prompts_of(options.policy or ROOT / "policies" / f"{policy}.yaml")
    requests = chosen(asked, options.prompts, options.runs)
    labels = requests[0].labels
    if not has_labels:  # what random weights answer holds none
        requests = [GenerationRequest(prompt=one.prompt) for one in requests]
    tokenizer = PromptTokenizer(ModelFolder.find(folder / "onnx"))
    new_tokens = options.new_tokens or NEW_TOKENS[options.work]
    work = work_of(requests, tokenizer, new_tokens)
    found, rate = measure(folder, work_of(OPENING, tokenizer, 1), work, options)
    if has_labels:
        for one in found.values():
            one.answers = [str(first_label(text, labels)) for text in one.answers]
    print(
        f"\n{name}, {len(requests)} prompts, {new_tokens} new tokens, threads: "
        f"{options.threads}, rounds: {options.rounds}\n\n{table(found)}"
    )
    read = sum(map(len, work["ids"])), beginnings(work["ids"])
    alone, shared = (needed(folder, len(requests), one, new_tokens) / rate for one in read)
    print(
        f"\nlimit: {rate / 1e9:.0f} GFLOP/s; the products of all tokens, none shared, take "
        f"{alone:.2f} seconds at that rate, and {shared:.2f} with each beginning read once"
    )
    own = found[OWN].answers
    wrong = [name for name, one in found.items() if not one.failure and one.answers != own]
    wrong = [
        name
        for name in wrong
        if not name.startswith(
            ("llama.cpp-given", "llama.cpp-q8_0", "openvino-genai-", "fairgate-int8-rows")
        )
    ]
    if has_labels and wrong:
        raise SystemExit(f"labels differ from this engine's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
