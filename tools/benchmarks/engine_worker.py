"""One engine in a process of its own: prompts come in, answers and seconds go out.

    python tools/benchmarks/engine_worker.py ENGINE FOLDER --threads 1

Started by `bench_engines.py` in the environment that has the engine; `FOLDER` is what
`engine_models.py` writes. One JSON object a line: `{"prompts": …, "labels": …, "new_tokens": …}` in,
`{"wall": …, "processor": …, "peak_mib": …, "answers": …}` out; the first one comes when the engine
has answered a short prompt. Every engine is greedy and keeps nothing of an earlier round.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

BATCH = 16
LONG = 16
"""New tokens from which on llama.cpp's server answers a batch at a time; below, it is fastest with
one prompt at a time, in the order of their tokens, each of which begins as the one before."""
PADDING = 2

Work = Callable[[], list[str]]
"""What is timed; returns the answers."""
Engine = Callable[[list[str], list[str], int], Work]
"""From prompts, labels that may end an answer, and how many tokens it has at most."""


def fairgate(folder: Path, threads: int) -> Engine:
    """Return this engine, asked as a gate asks it."""
    from fairgate.domain.executions import Decoding, GenerationRequest
    from fairgate.onnx.decoder import OnnxDecoder

    engines: dict[int, OnnxDecoder] = {}

    def ask(prompts: list[str], labels: list[str], new_tokens: int) -> list[str]:
        requests = [GenerationRequest(prompt=one, labels=tuple(labels)) for one in prompts]
        answers = dict(engines[new_tokens].generate(requests))
        return [answers[place].text for place in range(len(prompts))]

    def engine(prompts: list[str], labels: list[str], new_tokens: int) -> Work:
        if new_tokens not in engines:
            decoding = Decoding(max_new_tokens=new_tokens)
            engines[new_tokens] = OnnxDecoder(folder / "onnx", decoding=decoding, threads=threads)
            ask(["Never again."], [], new_tokens)
        return partial(ask, prompts, labels, new_tokens)

    return engine


def torch_model(folder: Path, threads: int, *, batch: int) -> Engine:
    """Return transformers on torch; one prompt at a time is the paper's loop."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(str(folder / "hf")).eval()
    return by_generate(model, folder, batch)


def optimum_model(folder: Path, threads: int, *, batch: int) -> Engine:
    """Return optimum on ONNX Runtime, with the graph that this engine reads."""
    import onnxruntime
    from optimum.onnxruntime import ORTModelForCausalLM

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = ORTModelForCausalLM.from_pretrained(str(folder / "onnx"), session_options=options)
    return by_generate(model, folder, batch)


def by_generate(model: Any, folder: Path, batch: int) -> Engine:
    """Return what asks a model through `generate`: padded on the left, sorted by length."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder / "hf"), padding_side="left")

    def ask(prompts: list[str], new_tokens: int) -> list[str]:
        answers = [""] * len(prompts)
        for places in in_batches(prompts, batch):
            inputs = tokenizer(
                [prompts[place] for place in places],
                return_tensors="pt",
                padding=True,
                return_token_type_ids=False,
            )
            with torch.inference_mode():
                out = model.generate(**inputs, max_new_tokens=new_tokens, do_sample=False)
            new = out[:, inputs["input_ids"].shape[1] :]
            texts = tokenizer.batch_decode(new, skip_special_tokens=True)
            for place, text in zip(places, texts, strict=True):
                answers[place] = text
        return answers

    return lambda prompts, _, new_tokens: partial(ask, prompts, new_tokens)


def genai_model(folder: Path, threads: int, *, batch: int) -> Engine:
    """Return onnxruntime-genai with its builder's graph, padded on the right."""
    import numpy as np
    import onnxruntime_genai as og

    config = og.Config(str(folder / "genai"))
    options = {"session_options": {"intra_op_num_threads": threads}}
    config.overlay(json.dumps({"model": {"decoder": options}}))
    model = og.Model(config)
    tokenizer = tokenizer_of(folder)
    runs_on = is_endless(folder)

    def ask(prompts: list[str], new_tokens: int) -> list[str]:
        ids = [found.ids for found in tokenizer.encode_batch(prompts)]
        answers = [""] * len(prompts)
        for places in in_batches(ids, batch):
            width = max(len(ids[place]) for place in places)
            rows = np.full((len(places), width), PADDING, dtype=np.int32)
            for row, place in zip(rows, places, strict=True):
                row[: len(ids[place])] = ids[place]
            most = width + new_tokens
            params = og.GeneratorParams(model)
            params.set_search_options(
                batch_size=len(places), max_length=most, min_length=most * runs_on, do_sample=False
            )
            generator = og.Generator(model, params)
            generator.append_tokens(rows)
            while not generator.is_done():
                generator.generate_next_token()
            for row, place in enumerate(places):
                new = [int(token) for token in generator.get_sequence(row)[width:]]
                answers[place] = tokenizer.decode(new, skip_special_tokens=True)
        return answers

    return lambda prompts, _, new_tokens: partial(ask, prompts, new_tokens)


def llama_cpp(folder: Path, threads: int, *, file: str) -> Engine:
    """Return llama.cpp's server with its prompt cache, asked for all prompts in one request."""
    import xllamacpp

    tokenizer = tokenizer_of(folder)
    params = xllamacpp.CommonParams()
    params.model.path = str(folder / file)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = -1
    wanted = {"temperature": 0, "ignore_eos": is_endless(folder), "cache_prompt": True}

    def ask(server: Any, prompts: list[str], new_tokens: int) -> list[str]:
        ids = [found.ids for found in tokenizer.encode_batch(prompts)]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        asked = {"prompt": [ids[place] for place in order], "n_predict": new_tokens, **wanted}
        found = server.handle_completions(asked)
        if "choices" not in found:
            raise SystemExit(f"llama.cpp's server: {str(found)[:300]}")
        texts = {order[one["index"]]: one["text"] for one in found["choices"]}
        return [texts[place] for place in range(len(prompts))]

    def engine(prompts: list[str], _: list[str], new_tokens: int) -> Work:
        slots = BATCH if new_tokens >= LONG else 1
        params.n_parallel, params.n_ctx = slots, 1024 * slots
        server = xllamacpp.Server(params)  # a new one: it keeps what it has read
        ask(server, ["Never again."], 1)
        return partial(ask, server, prompts, new_tokens)

    return engine


def tokenizer_of(folder: Path) -> Any:
    """Return the model's tokenizer without what `transformers` adds to it."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "hf" / "tokenizer.json"))


def is_endless(folder: Path) -> bool:
    """Return whether the model has no end token."""
    config = json.loads((folder / "hf" / "config.json").read_text())
    return bool(config["eos_token_id"] >= config["vocab_size"])


def in_batches(prompts: Sequence[Sequence[Any]], batch: int) -> list[list[int]]:
    """Return the places of prompts that run together, by length."""
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    return [order[start : start + batch] for start in range(0, len(order), batch)]


ENGINES: dict[str, Callable[[Path, int], Engine]] = {  # the number: prompts that run together
    "fairgate": fairgate,
    "transformers-1": partial(torch_model, batch=1),
    "transformers-16": partial(torch_model, batch=BATCH),
    "optimum-16": partial(optimum_model, batch=BATCH),
    "genai-16": partial(genai_model, batch=BATCH),
    "llama.cpp-f32": partial(llama_cpp, file="f32.gguf"),
    "llama.cpp-q8_0": partial(llama_cpp, file="q8_0.gguf"),
}


def peak_mib() -> float:
    """Return the most memory that this process had; `ru_maxrss` begins with its parent's."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def timed(work: Work) -> dict[str, Any]:
    """Return what a piece of work took and gave."""
    wall, processor = time.perf_counter(), time.process_time()
    answers = work()
    return {
        "wall": time.perf_counter() - wall,
        "processor": time.process_time() - processor,
        "peak_mib": peak_mib(),
        "answers": answers,
    }


def main() -> None:
    """Open an engine and answer until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is no reply
    engine = ENGINES[options.engine](options.folder, options.threads)
    replies.write(json.dumps(timed(engine(["Never again."], [], 1))) + "\n")
    for line in sys.stdin:
        asked = json.loads(line)
        work = engine(asked["prompts"], asked["labels"], asked["new_tokens"])
        replies.write(json.dumps(timed(work)) + "\n")


if __name__ == "__main__":
    main()
