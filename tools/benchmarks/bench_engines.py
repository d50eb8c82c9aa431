"""This engine beside others on one model and the same prompts, in one run.

    python tools/benchmarks/bench_engines.py --shape 30m [--work tokens] [--threads 2]

Every engine runs in a process of its own, in the environment that has it; they take turns, and the
medians of the rounds' ratios count. A number behind an engine's name: prompts that run together.
`--work labels`: the first prompts of a policy's own gate, at most two tokens answered, which is
what a label of the embedded model takes. `--work tokens`: 150 tokens each, from a model without an
end token. `.venv-export` has transformers and optimum;
`.venv-genai` needs `onnxruntime-genai onnx onnx-ir torch transformers`, `.venv-llama` needs
`xllamacpp gguf tokenizers numpy`. What is missing there is a row of the table, with the reason.

The limit: the products with weights of every prompt's tokens and of the answers', none of them
shared, at the rate that one such product alone reaches in ONNX Runtime in the same rounds.
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
from pathlib import Path
from typing import Any

from bench_prefixes import chosen, prompts_of
from engine_models import SHAPES
from engine_table import OWN, Measured, table
from engine_worker import ENGINES, tokenizer_of
from matrix_rate import product_rate

from fairgate.relations.oracles.label import first_label

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = {
    "transformers": ".venv-export",
    "optimum": ".venv-export",
    "genai": ".venv-genai",
    "llama.cpp": ".venv-llama",
}
FILES = (
    ("graph", "onnx", "optimum"),
    ("genai", "genai", "genai"),
    ("gguf", "q8_0.gguf", "llama.cpp"),
)
"""Kinds of files, the last one written, and what needs them."""
NEW_TOKENS = {"labels": 2, "tokens": 150}


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
def started(python: Path, engine: str, folder: Path, threads: int) -> Iterator[Worker]:
    """Start a worker and end it."""
    log = folder / f"{engine}.log"
    call = [str(python), str(HERE / "engine_worker.py"), engine, str(folder)]
    with log.open("w") as told:
        process = subprocess.Popen(
            [*call, "--threads", str(threads)],
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


def prepare(folder: Path, shape: str, *, endless: bool, engines: Sequence[str]) -> None:
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
        call += ["--shape", shape, *(["--endless"] if endless else [])]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if subprocess.run(call, env=environment, stdout=sys.stderr, check=False).returncode:
            raise SystemExit(f"{' '.join(call)} failed")


def measure(
    folder: Path, work: dict[str, Any], options: argparse.Namespace
) -> tuple[dict[str, Measured], float]:
    """Return every engine's figures, and operations a second of a product alone."""
    found = {name: Measured() for name in options.engines}
    rates = []
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name, one in found.items():
            start = time.perf_counter()
            try:
                python = python_of(name)
                workers[name] = stack.enter_context(started(python, name, folder, options.threads))
                workers[name].reply()
                one.start = time.perf_counter() - start
                workers[name].ask({**work, "prompts": work["prompts"][:2]})  # warm
            except NotMeasured as reason:
                one.failure = str(reason)
        for number in range(options.rounds):
            for name, one in found.items():
                if not one.failure:
                    one.add(workers[name].ask(work))
            # One thread's rate is not that of its neighbours, who may share the processor.
            clock = time.process_time if options.threads == 1 else time.perf_counter
            rates.append(product_rate(threads=options.threads, rounds=1, clock=clock))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return found, statistics.median(rates)


def needed(folder: Path, prompts: Sequence[str], new_tokens: int) -> float:
    """Return the operations of all products with weights, of every token that is read or written.

    The last layer's, onto the vocabulary, count for written tokens only.
    """
    told = json.loads((folder / "hf" / "config.json").read_text())
    hidden, inner = told["hidden_size"], told["intermediate_size"]
    shared = hidden * told["num_key_value_heads"] // told["num_attention_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * shared + 3 * hidden * inner
    read = sum(len(found.ids) for found in tokenizer_of(folder).encode_batch(list(prompts)))
    written = len(prompts) * new_tokens
    weights = layer * told["num_hidden_layers"] * (read + written - len(prompts))
    return 2.0 * (weights + hidden * told["vocab_size"] * written)


def arguments() -> argparse.Namespace:
    """Return what is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", choices=list(SHAPES), default="demo-slm")
    parser.add_argument("--work", choices=list(NEW_TOKENS), default="labels")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--runs", type=int, default=0, help="see bench_prefixes.py; 0: the first")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--policy", type=Path, default=ROOT / "policies" / "rag-sentiment.yaml")
    parser.add_argument("--models", type=Path, default=ROOT / ".benchmarks" / "models")
    found = parser.parse_args()
    found.engines = [OWN, *(name for name in found.engines if name != OWN)]
    return found


def main() -> None:
    """Make the model, measure, and print the table."""
    options = arguments()
    endless = options.work == "tokens" or options.shape != "demo-slm"
    folder = options.models / (options.shape + "-endless" * endless)
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder, options.shape, endless=endless, engines=options.engines)
    requests = chosen(prompts_of(options.policy), options.prompts, options.runs)
    prompts, new_tokens = [one.prompt for one in requests], NEW_TOKENS[options.work]
    labels = list(requests[0].labels) if options.work == "labels" else []
    work = {"prompts": prompts, "labels": labels, "new_tokens": new_tokens}
    found, rate = measure(folder, work, options)
    if options.shape == "demo-slm":  # what random weights answer holds no label
        for one in found.values():
            one.answers = [str(first_label(text, requests[0].labels)) for text in one.answers]
    print(
        f"\n{options.shape}, {len(prompts)} prompts, {new_tokens} new tokens, threads: "
        f"{options.threads}, rounds: {options.rounds}\n\n{table(found)}"
    )
    print(
        f"\nlimit: {rate / 1e9:.0f} GFLOP/s; the products of all tokens, none shared, take "
        f"{needed(folder, prompts, new_tokens) / rate:.2f} seconds at that rate"
    )
    own = found[OWN].answers
    wrong = [name for name, one in found.items() if not one.failure and one.answers != own]
    if options.shape == "demo-slm" and set(wrong) - {"llama.cpp-q8_0"}:
        raise SystemExit(f"labels differ from this engine's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
