"""One engine in a process of its own: prompts come in, answers and seconds go out.

    python tools/benchmarks/engine_worker.py ENGINE FOLDER --threads 1 --padding 2

Started by `bench_engines.py` in the environment that has the engine; `FOLDER` is what
`engine_models.py` writes, `--padding` a token of no prompt. One JSON object a line:
`{"requests": …, "ids": …, "new_tokens": …}` in, `{"wall": …, "processor": …, "peak_mib": …,
"answers": …}` out. This engine takes requests as a gate asks them, others take the tokens that it
makes of them. Every engine is greedy and keeps nothing of an earlier round.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

BATCH = 16

Ids = list[list[int]]
Work = Callable[[], list[str]]
"""What is timed; returns the answers."""
Engine = Callable[[list[dict[str, Any]], Ids, int], Work]
"""From requests, their prompts' tokens, and how many tokens an answer has at most."""


def fairgate(folder: Path, threads: int, _: int, *, graph: str = "onnx") -> Engine:
    """Return this engine, asked as a gate asks it; `graph`: the folder of the model."""
    from fairgate.domain.executions import Decoding
    from fairgate.onnx.decoder import OnnxDecoder

    engines: dict[int, OnnxDecoder] = {}

    def ask(requests: list[Any], decoder: OnnxDecoder) -> list[str]:
        answers = dict(decoder.generate(requests))
        return [answers[place].response for place in range(len(requests))]

    def engine(requests: list[dict[str, Any]], _: Ids, new_tokens: int) -> Work:
        if new_tokens not in engines:
            engines.clear()
            decoding = Decoding(max_new_tokens=new_tokens)
            engines[new_tokens] = OnnxDecoder(folder / graph, decoding=decoding, threads=threads)
        return partial(ask, [*map(request_of, requests)], engines[new_tokens])

    return engine


def request_of(told: dict[str, Any]) -> Any:
    """Return a request from its fields as JSON has them."""
    from fairgate.domain.executions import GenerationRequest, Stop

    def as_tuples(value: Any) -> Any:
        return tuple(map(as_tuples, value)) if isinstance(value, list) else value

    stop = told["stop"] and Stop(**{name: as_tuples(v) for name, v in told["stop"].items()})
    return GenerationRequest(prompt=told["prompt"], labels=tuple(told["labels"]), stop=stop)


def torch_model(folder: Path, threads: int, padding: int, *, batch: int) -> Engine:
    """Return transformers on torch; one prompt at a time is the paper's loop."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(str(folder / "hf")).eval()
    return by_generate(model, folder, padding, batch)


def optimum_model(folder: Path, threads: int, padding: int, *, batch: int) -> Engine:
    """Return optimum on ONNX Runtime, with the graph that this engine reads."""
    import onnxruntime
    from optimum.onnxruntime import ORTModelForCausalLM

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = ORTModelForCausalLM.from_pretrained(str(folder / "onnx"), session_options=options)
    return by_generate(model, folder, padding, batch)


def by_generate(model: Any, folder: Path, padding: int, batch: int) -> Engine:
    """Return what asks a model through `generate`: padded on the left, sorted by length."""
    import torch

    tokenizer = tokenizer_of(folder)

    def ask(ids: Ids, new_tokens: int) -> list[str]:
        answers = [""] * len(ids)
        for places in in_batches(ids, batch):
            width = max(len(ids[place]) for place in places)
            lengths = [(width - len(ids[place]), len(ids[place])) for place in places]
            rows = [[padding] * no + ids[at] for at, (no, _) in zip(places, lengths, strict=True)]
            with torch.inference_mode():
                out = model.generate(
                    input_ids=torch.tensor(rows),
                    attention_mask=torch.tensor([[0] * no + [1] * yes for no, yes in lengths]),
                    max_new_tokens=new_tokens,
                    do_sample=False,
                    pad_token_id=padding,
                )
            for place, new in zip(places, out[:, width:].tolist(), strict=True):
                answers[place] = tokenizer.decode(new, skip_special_tokens=True)
        return answers

    return lambda _, ids, new_tokens: partial(ask, ids, new_tokens)


def genai_model(folder: Path, threads: int, padding: int, *, batch: int) -> Engine:
    """Return onnxruntime-genai with its builder's graph, padded on the right."""
    import numpy as np
    import onnxruntime_genai as og

    config = og.Config(str(folder / "genai"))
    options = {"session_options": {"intra_op_num_threads": threads}}
    config.overlay(json.dumps({"model": {"decoder": options, "pad_token_id": padding}}))
    model = og.Model(config)
    tokenizer = tokenizer_of(folder)

    def ask(ids: Ids, new_tokens: int) -> list[str]:
        answers = [""] * len(ids)
        for places in in_batches(ids, batch):
            width = max(len(ids[place]) for place in places)
            rows = np.full((len(places), width), padding, dtype=np.int32)
            for row, place in zip(rows, places, strict=True):
                row[: len(ids[place])] = ids[place]
            most = {"batch_size": len(places), "max_length": width + new_tokens}
            params = og.GeneratorParams(model)
            params.set_search_options(**most, do_sample=False)
            generator = og.Generator(model, params)
            generator.append_tokens(rows)
            while not generator.is_done():
                generator.generate_next_token()
            for row, place in enumerate(places):
                new = [int(token) for token in generator.get_sequence(row)[width:]]
                answers[place] = tokenizer.decode(new, skip_special_tokens=True)
        return answers

    return lambda _, ids, new_tokens: partial(ask, ids, new_tokens)


def llama_cpp(folder: Path, threads: int, _: int, *, file: str, slots: int) -> Engine:
    """Return llama.cpp's server with its prompt cache, asked for all prompts in one request.

    They are in the order of their tokens: each begins as the one before.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(folder / f"{file}.gguf")
    if not (folder / f"{file}.gguf").is_file():
        raise SystemExit(f"the model has no {file}.gguf")
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_parallel, params.n_ctx = slots, 1024 * slots
    params.verbosity = -1

    def ask(server: Any, ids: Ids, new_tokens: int) -> list[str]:
        order = sorted(range(len(ids)), key=ids.__getitem__)
        asked = {"prompt": [ids[place] for place in order], "n_predict": new_tokens}
        found = server.handle_completions({**asked, "temperature": 0, "cache_prompt": True})
        if "choices" not in found:
            raise SystemExit(f"llama.cpp's server: {str(found)[:300]}")
        texts = {order[one["index"]]: one["text"] for one in found["choices"]}
        return [texts[place] for place in range(len(ids))]

    def engine(_: list[dict[str, Any]], ids: Ids, new_tokens: int) -> Work:
        server = xllamacpp.Server(params)  # a new one: it keeps what it has read
        ask(server, [[1]], 1)
        return partial(ask, server, ids, new_tokens)

    return engine


OPENVINO = {
    "f32": {
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "KV_CACHE_PRECISION": "f32",
    },
    "default": {},
    "bf16": {"INFERENCE_PRECISION_HINT": "bf16"},
}
"""Properties of openvino-genai's ways to compute: its default rounds activations to 8 bits."""


def openvino_genai(folder: Path, threads: int, _: int, *, way: str) -> Engine:
    """Return openvino-genai with its own reading of the GGUF file, all prompts at once.

    They are in the order of their tokens, and what they begin with in common is read once.
    """
    import numpy as np
    import openvino
    import openvino_genai as ov

    file = folder / "given.gguf"
    if not file.is_file():
        raise SystemExit("the model has no given.gguf")
    tokenizer = tokenizer_of(folder)

    def ask(pipeline: Any, ids: Ids, new_tokens: int) -> list[str]:
        order = sorted(range(len(ids)), key=ids.__getitem__)
        asked = [openvino.Tensor(np.array([ids[place]], dtype=np.int64)) for place in order]
        settings = ov.GenerationConfig(max_new_tokens=new_tokens, do_sample=False)
        found = pipeline.generate(asked, [settings] * len(asked))
        texts = {
            place: tokenizer.decode(list(result.m_generation_ids[0]), skip_special_tokens=True)
            for place, result in zip(order, found, strict=True)
        }
        return [texts[place] for place in range(len(ids))]

    def engine(_: list[dict[str, Any]], ids: Ids, new_tokens: int) -> Work:
        scheduler = ov.SchedulerConfig()
        scheduler.enable_prefix_caching, scheduler.cache_size = True, 1
        properties = {"INFERENCE_NUM_THREADS": threads, **OPENVINO[way]}
        # A new one: it keeps what it has read.
        pipeline = ov.ContinuousBatchingPipeline(str(file), scheduler, "CPU", properties)
        ask(pipeline, [[1, 2]], 1)
        return partial(ask, pipeline, ids, new_tokens)

    return engine


def tokenizer_of(folder: Path) -> Any:
    """Return the model's tokenizer without what `transformers` adds to it."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "hf" / "tokenizer.json"))


def in_batches(prompts: Ids, batch: int) -> list[list[int]]:
    """Return the places of prompts that run together, by length."""
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    return [order[start : start + batch] for start in range(0, len(order), batch)]


ENGINES: dict[str, Callable[[Path, int, int], Engine]] = {  # number: prompts that run together
    "fairgate": fairgate,
    "fairgate-int8-rows": partial(fairgate, graph="int8-rows"),
    "fairgate-int8-rows-1": partial(fairgate, graph="int8-rows-1"),
    "transformers-1": partial(torch_model, batch=1),
    "transformers-16": partial(torch_model, batch=BATCH),
    "optimum-16": partial(optimum_model, batch=BATCH),
    "genai-16": partial(genai_model, batch=BATCH),
    **{f"openvino-genai-{way}": partial(openvino_genai, way=way) for way in OPENVINO},
    **{
        f"llama.cpp-{file}-{slots}": partial(llama_cpp, file=file, slots=slots)
        for file in ("given", "f32", "q8_0")
        for slots in (1, 4, BATCH)
    },
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
    parser.add_argument("--padding", type=int, required=True)
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is no reply
    engine = ENGINES[options.engine](options.folder, options.threads, options.padding)
    for line in sys.stdin:
        asked = json.loads(line)
        work = engine(asked["requests"], asked["ids"], asked["new_tokens"])
        replies.write(json.dumps(timed(work)) + "\n")


if __name__ == "__main__":
    main()
