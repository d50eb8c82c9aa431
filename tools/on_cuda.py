"""FairGate on an NVIDIA GPU, tried in one command of a few minutes: right, fast, and its faults.

    python tools/on_cuda.py OUT --gguf FILE --reviews FOLDER [--sections ...]

needs `fairgate[cuda]`, torch with CUDA, transformers, and onnxruntime-genai, whose builder writes
graphs in float16 for CUDA. Each section runs in a process of its own, with a limit of time; each adds lines
to one table, which is printed last and written to OUT with everything else. `--reviews` is a folder
with `corpus.jsonl` and `reviews.csv` of `tools/smollm2/reviews.yaml` and `executions.jsonl` of
its run on a CPU, which `tools/smollm2/recordings.py` restores. Rehearsal without a GPU: `--device cpu --quick`, which asks
fewer questions, and tiny random models where no SmolLM2 is given and in place of the large one.

- `start`: driver, GPU, versions, seconds to a first answer
- `policies`: `fairgate run --device` of three policies beside the CPU: exit codes and labels
- `bytes`: answers across batch sizes, orders and a second run; vectors beside the CPU's
- `models`: writes SmolLM2 (from its GGUF) and a random model of Llama-3.2-3B's shape
- `smollm2`: labels, options and 150 tokens beside `transformers.generate`, a gate from start to verdict
- `3b`: the same and prefill as a share of the GPU's own matrix rate
- `faults`: a graph with operators that CUDA lacks, too little memory, no GPU, an old driver
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "benchmarks"), str(ROOT)]

SECTIONS = ("start", "policies", "bytes", "models", "smollm2", "3b", "faults")
LIMITS = {
    "start": 60,
    "policies": 150,
    "bytes": 100,
    "models": 200,
    "smollm2": 150,
    "3b": 200,
    "faults": 90,
}
"""Seconds."""
POLICIES = ("rag-sentiment", "rag-social-bias", "rag-people")
DOCUMENTS_OF_A_REHEARSAL = 100
LABEL_TOKENS = 8
"""The longest label of the reviews in SmolLM2's tokens, with a word before it."""
STUB = r"""
int cuDriverGetVersion(int *version) { *version = %(served)d; return 0; }
int cuInit(unsigned flags) { return %(status)d; }
int cuDeviceGetCount(int *count) { *count = 0; return %(status)d; }
int cuGetProcAddress(const char *name, void **found, int version, unsigned long flags) { return %(status)d; }
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long flags, void *status) { return %(status)d; }
"""
"""A library in the driver's place: `served` is 1000 times the CUDA version, `status` what it returns."""


class Table:
    """Lines of the section at work, kept as they come: a section that is cut off loses nothing."""

    def __init__(self, file: Path, section: str) -> None:
        self._file, self._section = file, section

    def add(self, name: str, value: object) -> None:
        """Write a line."""
        line = f"| {self._section} | {name} | {value} |"
        with self._file.open("a", encoding="utf-8") as table:
            table.write(line + "\n")
        print(line, flush=True)

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Make a failure in the block a line of the table, so that what follows is tried, too."""
        start = time.perf_counter()
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001 every failure is a result
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.add(name, f"FAILED after {time.perf_counter() - start:.1f} s: {reason[:700]}")


def command(*arguments: str, **environment: str) -> tuple[int, str, float]:
    """Run FairGate's command line; return exit code, what it printed, and seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "fairgate", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, time.perf_counter() - start


def responses(run: Path) -> dict[str, str]:
    """Return the answers of a run by suite and key."""
    lines = (run / "executions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return {f"{row.get('suite')} {row['key']}": row.get("response", "") for row in rows}


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Return the keys whose answers differ or that one lacks."""
    return [key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]


def seconds_of(work: Callable[[], Any], rounds: int = 1) -> tuple[float, Any]:
    """Return the median of so many rounds in seconds, and the last result."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), result


class PeakMemory:
    """The most memory of the GPU in use while a block runs, in MiB, whoever uses it."""

    def __init__(self) -> None:
        self.mib = 0
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        ask = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        while not self._ended.wait(0.1):
            try:
                told = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
            except (OSError, subprocess.CalledProcessError):
                return
            self.mib = max(self.mib, int(told.split()[0]))


def start(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Name GPU, driver and versions, and time a first answer."""
    with table.attempt("GPU"):
        ask = [
            "nvidia-smi",
            "--query-gpu=name,driver_version,memory.total",
            "--format=csv,noheader",
        ]
        table.add(
            "GPU", subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        )
    with table.attempt("versions"):
        import onnx
        import onnxruntime
        import torch
        import transformers

        table.add(
            "versions",
            f"onnxruntime {onnxruntime.__version__} (CUDA {getattr(onnxruntime, 'cuda_version', '')}), torch {torch.__version__}, transformers {transformers.__version__}, onnx {onnx.__version__}",
        )
        table.add("providers", ", ".join(onnxruntime.get_available_providers()))
    with table.attempt("first answer"):
        code = (
            "import time; s = time.perf_counter()\n"
            "from pathlib import Path; import fairgate\n"
            "from fairgate.domain.executions import Decoding, GenerationRequest\n"
            "from fairgate.onnx.decoder import OnnxDecoder\n"
            "f = Path(fairgate.__file__).parent / 'data/models/demo-slm'\n"
            f"e = OnnxDecoder(f, decoding=Decoding(max_new_tokens=2), batch_size=None, device={options.device!r})\n"
            "print(list(e.generate([GenerationRequest(prompt='Never again.')])), e._session.pads, e._session.selects, e._session.joins)\n"
            "print(round(time.perf_counter() - s, 2))"
        )
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=50,
            )
            table.add(
                "first answer of demo-slm, seconds",
                (done.stdout.split("\n")[-2] if done.returncode == 0 else done.stderr[-600:]),
            )
        print(done.stdout)


def policies(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Run policies here and on the CPU, each from nothing."""
    for name in POLICIES[-1 if options.quick else 0 :]:
        runs = {}
        for label, device in (
            ("cpu", "cpu"),
            ("GPU", options.device),
            ("GPU again", options.device),
        ):
            with table.attempt(f"{name}, {label}"):
                target = out / f"{name}-{label.replace(' ', '-')}"
                code, said, taken = command(
                    "run",
                    f"policies/{name}.yaml",
                    "--device",
                    device,
                    "--cache",
                    str(target) + "-cache",
                    "--out",
                    str(target),
                    *(["--limit", "2"] if options.quick else []),
                )
                (out / f"{target.name}.txt").write_text(said, encoding="utf-8")
                table.add(f"{name}, {label}", f"exit {code}, {taken:.1f} s")
                runs[label] = responses(target)
        for one, other in (("cpu", "GPU"), ("GPU", "GPU again")):
            with table.attempt(f"{name}, {one} and {other}"):
                unlike = differing(runs[one], runs[other])
                table.add(
                    f"{name}, answers that differ, {one} and {other}",
                    f"{len(unlike)} of {len(runs[one])} {unlike[:5]}",
                )


def check_bytes(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Compare answers and vectors across batches, orders, runs and devices."""
    from bench_prefixes import prompts_of

    from fairgate.domain.executions import Decoding
    from fairgate.onnx.decoder import OnnxDecoder
    from fairgate.onnx.encoder import OnnxEncoder
    from fairgate.onnx.encoder_settings import NO_PROMPTS

    models = ROOT / "fairgate" / "data" / "models"
    requests = prompts_of(ROOT / "policies" / "rag-sentiment.yaml")[: 60 if options.quick else 800]

    def answers(device: str, rows: int | None, asked: list[Any]) -> dict[int, Any]:
        engine = OnnxDecoder(
            models / "demo-slm",
            decoding=Decoding(max_new_tokens=12),
            batch_size=rows,
            device=device,
        )
        return dict(engine.generate(asked))

    with table.attempt("answers"):
        own = answers(options.device, None, requests)
        ways = {
            "a second time": lambda: answers(options.device, None, requests),
            "rows 1": lambda: answers(options.device, 1, requests[:200]),
            "rows 7": lambda: answers(options.device, 7, requests),
            "rows 16": lambda: answers(options.device, 16, requests),
            "in reverse": lambda: reverse(answers(options.device, None, requests[::-1])),
            "a third of them": lambda: {
                3 * n: each for n, each in answers(options.device, None, requests[::3]).items()
            },
            "cpu": lambda: answers("cpu", None, requests),
        }
        for name, way in ways.items():
            with table.attempt(f"answers, {name}"):
                others = way()
                texts = sum(own[n].response != each.response for n, each in others.items())
                bits = sum(own[n] != each for n, each in others.items())
                apart = max(
                    (
                        abs(own[n].margin - each.margin)
                        for n, each in others.items()
                        if own[n].margin is not None and each.margin is not None
                    ),
                    default=0,
                )
                table.add(
                    f"answers of demo-slm, {name}",
                    f"{texts} texts and {bits} margins differ of {len(others)}; margins by {apart:.2g} at most",
                )

    with table.attempt("vectors"):
        import numpy as np

        texts = [f"{one.prompt[-200:]} {number}" for number, one in enumerate(requests)][
            : 100 if options.quick else 900
        ]
        queries = list(dict.fromkeys(one.prompt[-300:-80] for one in requests))[:400]

        def vectors(device: str, asked: list[str], rows: int | None = None) -> Any:
            return OnnxEncoder(
                models / "minilm", device=device, batch_size=rows, choice=NO_PROMPTS
            ).embed(asked)

        own, cpu = vectors(options.device, texts), vectors("cpu", texts)
        table.add(
            "least cosine of MiniLM's vectors and the CPU's",
            f"{float((own * cpu).sum(axis=1).min()):.8f}",
        )
        for rows in (1, 7):
            same = np.array_equal(own, vectors(options.device, texts, rows))
            table.add(f"MiniLM's vectors, rows {rows}", "equal bytes" if same else "DIFFER")
        table.add(
            "MiniLM's vectors, in reverse",
            "equal bytes"
            if np.array_equal(own, vectors(options.device, texts[::-1])[::-1])
            else "DIFFER",
        )
        lists = [
            np.argsort(-(vectors(device, queries) @ stored.T), axis=1, kind="stable")[:, :4]
            for device, stored in ((options.device, own), ("cpu", cpu))
        ]
        table.add(
            "queries whose first four documents differ",
            f"{int((lists[0] != lists[1]).any(axis=1).sum())} of {len(queries)}",
        )
        many = texts * (1 if options.quick else 4)
        many = [f"{text} {number}" for number, text in enumerate(many)]
        table.add(
            "MiniLM, texts a second",
            f"{len(many) / seconds_of(lambda: vectors(options.device, many))[0]:.0f}",
        )


def reverse(found: dict[int, Any]) -> dict[int, Any]:
    """Return answers by their places from the end."""
    return {len(found) - 1 - place: answer for place, answer in found.items()}


def models(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Write both models; what is there already stays."""
    import torch
    from cuda_models import write_model

    with table.attempt("SmolLM2"):
        start = time.perf_counter()
        source, graph = out / "smollm2" / "hf", out / "smollm2" / "onnx"
        if options.quick and not options.gguf:
            write_model(out / "smollm2", "tiny", options.device)
            table.add(
                "a tiny model in SmolLM2's place, seconds", f"{time.perf_counter() - start:.1f}"
            )
        elif options.gguf and not (graph / "config.json").exists():
            from transformers import AutoModelForCausalLM, AutoTokenizer

            given = {
                "pretrained_model_name_or_path": str(options.gguf.parent),
                "gguf_file": options.gguf.name,
            }
            AutoTokenizer.from_pretrained(**given).save_pretrained(source)
            kind = torch.float16 if options.device == "cuda" else torch.float32
            loaded = AutoModelForCausalLM.from_pretrained(**given, dtype=kind)
            config = loaded.config
            if hasattr(config, "quantization_config"):
                del config.quantization_config
            plain = AutoModelForCausalLM.from_config(config, dtype=kind)
            plain.load_state_dict(loaded.state_dict())
            plain.save_pretrained(source)
            builder(source, graph, out / "cache", options.device)
            table.add("SmolLM2 read and built, seconds", f"{time.perf_counter() - start:.1f}")
    with table.attempt("3b"):
        start = time.perf_counter()
        write_model(out / "3b", "tiny" if options.quick else "3b", options.device)
        table.add("3b made and built, seconds", f"{time.perf_counter() - start:.1f}")


def builder(source: Path, graph: Path, cache: Path, device: str) -> None:
    """Build a graph with onnxruntime-genai's builder, beside the files that FairGate reads."""
    precision = "fp16" if device == "cuda" else "fp32"
    call = [
        sys.executable,
        "-m",
        "onnxruntime_genai.models.builder",
        "-i",
        str(source),
        "-o",
        str(graph),
        "-c",
        str(cache),
        "-p",
        precision,
        "-e",
        device,
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout[-300:] + done.stderr[-600:])
    shutil.copyfile(source / "config.json", graph / "config.json")


def reviews_policy(folder: Path, graph: Path, data: Path, *, quick: bool) -> Path:
    """Write the reviews' policy for this model and these data."""
    text = (HERE / "smollm2" / "reviews.yaml").read_text(encoding="utf-8")
    corpus = data / "corpus.jsonl"
    if quick:
        lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(lines[:DOCUMENTS_OF_A_REHEARSAL]), encoding="utf-8")
    for before, after in (
        ("./.fairgate/smollm2/data/corpus.jsonl", corpus),
        ("./.fairgate/smollm2/data/reviews.csv", data / "reviews.csv"),
        ("./.fairgate/models/smollm2-135m-instruct-q4_1", graph),
    ):
        if before not in text:
            raise LookupError(before)
        text = text.replace(before, str(after.resolve()))
    if quick:
        text = text.replace(
            "    control: neutral\n", "    control: neutral\n    limit: 2\n    attribution: off\n"
        ).replace("    attribution: 100\n", "")
    policy = folder / "reviews.yaml"
    policy.write_text(text, encoding="utf-8")
    return policy


def by_transformers(
    source: Path, device: str, prompts: list[str], batch: int, tokens: int, **more: Any
) -> tuple[Callable[[], list[str]], Any]:
    """Return work that answers prompts with `transformers.generate`, sorted by length, warm."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(source), padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    kind = torch.float16 if device == "cuda" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(str(source), dtype=kind).to(device).eval()

    def answer(asked: list[str]) -> list[str]:
        order = sorted(range(len(asked)), key=lambda place: len(asked[place]))
        answers = [""] * len(asked)
        for begin in range(0, len(order), batch):
            places = order[begin : begin + batch]
            tokens_of = tokenizer(
                [asked[place] for place in places],
                return_tensors="pt",
                padding=True,
                return_token_type_ids=False,
                add_special_tokens=False,
            ).to(device)
            with torch.inference_mode():
                written = model.generate(
                    **tokens_of,
                    max_new_tokens=tokens,
                    do_sample=False,
                    pad_token_id=tokenizer.pad_token_id,
                    **more,
                )
            for place, row in zip(
                places, written[:, tokens_of["input_ids"].shape[1] :].tolist(), strict=True
            ):
                answers[place] = tokenizer.decode(row, skip_special_tokens=True)
        return answers

    answer(prompts[:batch])
    return lambda: answer(prompts), model


def profile(out: Path, name: str, work: Callable[[], Any], table: Table) -> None:
    """Write which kernels of the GPU took how long, by CUPTI, for everything in this process."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as taken:
        seconds, _ = seconds_of(work)
        torch.cuda.synchronize()
    busy: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for event in taken.events():
        busy[event.name] += (
            event.device_time_total
            if hasattr(event, "device_time_total")
            else event.cuda_time_total
        )
        times[event.name] += 1
    lines = [
        f"{share / 1000:10.2f} ms {times[kernel]:6} times {kernel[:180]}"
        for kernel, share in busy.most_common(40)
    ]
    (out / f"profile-{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table.add(
        f"profile of {name}",
        f"{seconds:.2f} s, kernels and copies {sum(busy.values()) / 1e6:.2f} s; "
        + "; ".join(f"{kernel[:60]} {share / 1e6:.2f}" for kernel, share in busy.most_common(6)),
    )


def measured(
    table: Table,
    out: Path,
    options: argparse.Namespace,
    *,
    name: str,
    graph: Path,
    source: Path,
    requests: list[Any],
    label_tokens: int,
    **more: Any,
) -> None:
    """Time labels, options and 150 tokens beside transformers on one model."""
    from dataclasses import replace

    from fairgate.domain.executions import Decoding, GenerationRequest
    from fairgate.onnx.decoder import OnnxDecoder

    device, few = options.device, requests[: 4 if options.quick else 64]

    def engine(tokens: int, rows: int | None = None) -> Any:
        return OnnxDecoder(
            graph, decoding=Decoding(max_new_tokens=tokens), batch_size=rows, device=device
        )

    with table.attempt(f"{name}, labels"):
        own = engine(label_tokens)
        opened, _ = seconds_of(lambda: list(own.generate(requests[:2])))
        table.add("opened, with a first answer, seconds", f"{opened:.2f}")
        session = own._session
        table.add(
            "pads, shares, joins, cut",
            f"{session.pads} {session.shares} {session.joins} {session.cut}",
        )
        with PeakMemory() as peak:
            labels, texts = seconds_of(lambda: dict(own.generate(requests)))
        tokens = sum(map(len, own._prompts.encode([one.prompt for one in requests])))
        table.add(
            f"labels, {len(requests)} prompts of {tokens / len(requests):.0f} tokens, seconds",
            f"{labels:.2f}; {own.notices}",
        )
        table.add("most memory of the GPU, MiB", peak.mib)
        (out / f"{name}-labels.json").write_text(
            json.dumps([texts[n].response for n in range(len(requests))])
        )
        with table.attempt("equal answers"):
            quarter = len(requests) // 4
            ways = (
                ("a second time", None, range(quarter * 2)),
                ("in reverse", None, range(quarter - 1, -1, -1)),
                ("every ninth", None, range(0, len(requests), 9)),
                ("rows 16", 16, range(quarter)),
            )
            for label, rows, places in ways:
                found = dict(engine(label_tokens, rows).generate([requests[n] for n in places]))
                others = {places[n]: answer for n, answer in found.items()}
                unlike = [n for n in others if others[n] != texts[n]]
                table.add(
                    f"answers {label}",
                    f"{sum(others[n].response != texts[n].response for n in others)} texts and {len(unlike)} margins differ of {len(others)}",
                )
        if device == "cuda":
            with table.attempt("profile"):
                profile(out, f"{name}-labels", lambda: list(own.generate(requests[:256])), table)
    with table.attempt(f"{name}, transformers"):
        prompts = [one.prompt for one in requests]
        for batch in (16, 64):
            part = prompts[:: 8 if batch == 16 else 3]
            work, model = by_transformers(
                source, device, templated(own, part), batch, label_tokens, **more
            )
            taken, _ = seconds_of(work)
            taken *= len(prompts) / len(part)
            table.add(
                f"transformers in batches of {batch}, {label_tokens} tokens, {len(prompts)} prompts, seconds",
                f"{taken:.2f} = {taken / labels:.2f} times as long",
            )
            del work, model
    with table.attempt(f"{name}, options"):
        asked = [
            replace(one, options=tuple(f" {label}" for label in one.labels or ("good", "bad")))
            for one in requests[: len(requests) // 2]
        ]
        taken, _ = seconds_of(lambda: own.score_options(asked))
        table.add(
            f"options scored, {len(asked)} prompts, seconds",
            f"{taken:.2f} = {taken / labels * len(requests) / len(asked):.2f} of labels' time",
        )
    with table.attempt(f"{name}, 150 tokens"):
        long = engine(150)
        free = [GenerationRequest(prompt=one.prompt) for one in few]
        list(long.generate(free[:2]))
        with PeakMemory() as peak:
            taken, texts = seconds_of(lambda: dict(long.generate(free)), 2)
        written = sum(len(long._prompts.encode([texts[n].response])[0]) for n in texts)
        work, _ = by_transformers(
            source, device, templated(own, [one.prompt for one in few]), 64, 150, **more
        )
        others, _ = seconds_of(work, 2)
        table.add(
            f"150 tokens, {len(few)} prompts, seconds",
            f"{taken:.2f} ({written} tokens); transformers in batches of 64 {others:.2f} = {others / taken:.2f} times as long; most memory {peak.mib} MiB",
        )
        if device == "cuda":
            profile(out, f"{name}-150", lambda: list(long.generate(free)), table)


def templated(engine: Any, prompts: list[str]) -> list[str]:
    """Return prompts as the engine's own tokens say them, so that both read the same."""
    tokenizer = engine._prompts
    return [
        tokenizer._tokenizer.backend.decode(ids, skip_special_tokens=False)
        for ids in tokenizer.encode(prompts)
    ]


def smollm2(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Ask SmolLM2 the 3,100 questions of the reviews, by the gate and by the engine."""
    from bench_prefixes import prompts_of

    graph = out / "smollm2" / "onnx"
    policy = reviews_policy(out, graph, options.reviews, quick=options.quick)
    with table.attempt("gate"):
        with PeakMemory() as peak:
            code, said, taken = command(
                "run",
                str(policy),
                "--device",
                options.device,
                "--cache",
                str(out / "reviews-cache"),
                "--out",
                str(out / "reviews"),
            )
        (out / "reviews.txt").write_text(said, encoding="utf-8")
        table.add(
            "gate of 3,100 questions from nothing, seconds",
            f"{taken:.1f}, exit {code}, most memory {peak.mib} MiB; {said[-200:] if code not in (0, 1) else ''}",
        )
        stored = (options.reviews / "executions.jsonl").read_text(encoding="utf-8").splitlines()
        cpu = {row["key"]: row["response"] for row in map(json.loads, stored)}
        own = {key.split(" ", 1)[1]: text for key, text in responses(out / "reviews").items()}
        same = [key for key in cpu if key in own]
        from fairgate.relations.oracles.label import first_label

        labels = ("negative", "positive", "neutral")
        unlike = [
            key for key in same if first_label(own[key], labels) != first_label(cpu[key], labels)
        ]
        margins = {row["key"]: row.get("margin") for row in map(json.loads, stored)}
        table.add(
            "labels that differ from the CPU's in float32",
            f"{len(unlike)} of {len(same)}; largest margin of those {max((margins[key] or 0 for key in unlike), default=0)}",
        )
    requests = prompts_of(policy)[: 16 if options.quick else None]
    measured(
        table,
        out,
        options,
        name="smollm2",
        graph=graph,
        source=out / "smollm2" / "hf",
        requests=requests,
        label_tokens=LABEL_TOKENS,
    )


def three_b(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Ask a random model of Llama-3.2-3B's shape for two tokens, and for 150."""
    from bench_prefixes import prompts_of
    from cuda_models import matrix_rate, weights_per_token

    graph = out / "3b" / "onnx"
    requests = prompts_of(ROOT / "policies" / "rag-sentiment.yaml")[: 16 if options.quick else 3100]
    with table.attempt("prefill"):
        prompts = [one.prompt for one in requests]
        size = 512 if options.quick else 8192
        rate = matrix_rate(options.device, size)
        table.add(f"product of two matrices of {size}", f"{rate / 1e12:.3g} TFLOP/s")
        from fairgate.domain.executions import Decoding
        from fairgate.onnx.decoder import OnnxDecoder

        tokens = sum(map(len, OnnxDecoder(graph, decoding=Decoding())._prompts.encode(prompts)))
        engine = OnnxDecoder(
            graph, decoding=Decoding(max_new_tokens=1), batch_size=None, device=options.device
        )
        list(engine.generate(requests[:2]))
        taken, _ = seconds_of(lambda: list(engine.generate(requests)))
        share = 2 * weights_per_token(graph) * tokens / taken / rate
        table.add("prefill", f"{taken:.1f} s for {tokens} tokens: {share:.3f} of the matrix rate")
    measured(
        table,
        out,
        options,
        name="3b",
        graph=graph,
        source=out / "3b" / "hf",
        requests=requests,
        label_tokens=2,
    )


def faults(table: Table, out: Path, options: argparse.Namespace) -> None:
    """Show what FairGate says where a graph, the memory or the driver does not do."""
    folder = out / "faults"
    folder.mkdir(exist_ok=True)

    def told(name: str, code: int, said: str, taken: float) -> None:
        (folder / f"{name.replace(' ', '-')}.txt").write_text(said, encoding="utf-8")
        lines = [
            line for line in said.splitlines() if "rror" in line or "expected" in line
        ] or said.splitlines()
        table.add(
            name,
            f"exit {code} after {taken:.1f} s: {' '.join(' '.join(lines[-6:]).split())[-900:]}",
        )

    with table.attempt("graph in fp32 with GroupQueryAttention"):
        source, graph = folder / "hf", folder / "fp32"
        if not graph.exists():
            tiny_checkpoint(source)
            builder(source, graph, folder / "cache", "cpu")
        told("fp32 attention", *ask_engine(graph, options.device))
    with table.attempt("memory"):
        for limit in (8, 32, 64):
            told(
                f"gpu_mem_limit {limit} MiB",
                *ask_engine(ROOT / "fairgate/data/models/demo-slm", options.device, limit),
            )
        if (out / "3b" / "onnx").exists():
            told("3b in 8000 MiB", *ask_engine(out / "3b" / "onnx", options.device, 8000))
            told("3b in 2000 MiB", *ask_engine(out / "3b" / "onnx", options.device, 2000))
    with table.attempt("no GPU"):
        told(
            "CUDA_VISIBLE_DEVICES empty",
            *run_demo(folder / "c1", CUDA_VISIBLE_DEVICES=""),
        )
        told(
            "CUDA_VISIBLE_DEVICES 7",
            *run_demo(folder / "c2", CUDA_VISIBLE_DEVICES="7"),
        )
    for name, served, status in (
        ("driver for CUDA 12.4", 12040, 0),
        ("driver without a GPU", 13000, 100),
        ("driver that does not start", 13000, 999),
        ("driver of another version than its module", 13000, 803),
    ):
        with table.attempt(name):
            stub = folder / f"stub-{served}-{status}"
            stub.mkdir(exist_ok=True)
            code = stub / "stub.c"
            code.write_text(STUB % {"served": served, "status": status} + other_symbols(status))
            subprocess.run(
                ["gcc", "-shared", "-fPIC", "-o", str(stub / "libcuda.so.1"), str(code)],
                check=True,
                capture_output=True,
            )
            path = f"{stub}:{os.environ.get('LD_LIBRARY_PATH', '')}"
            told(
                name,
                *run_demo(stub / "c", LD_LIBRARY_PATH=path),
            )
    with table.attempt("no driver"):
        stub = folder / "none"
        stub.mkdir(exist_ok=True)
        (stub / "libcuda.so.1").write_bytes(b"")
        path = f"{stub}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        told(
            "no driver",
            *run_demo(stub / "c", LD_LIBRARY_PATH=path),
        )
    with table.attempt("no CUDA libraries"):
        told(
            "no CUDA libraries on the path",
            *run_demo(folder / "c3", LD_LIBRARY_PATH=""),
        )


def run_demo(folder: Path, **environment: str) -> tuple[int, str, float]:
    """Run a small policy on the GPU from nothing, in this environment."""
    target = ["--cache", f"{folder}-cache", "--out", str(folder)]
    return command("run", "policies/rag-people.yaml", "--device", "cuda", *target, **environment)


def other_symbols(status: int) -> str:
    """Return C functions for what ONNX Runtime's library wants of a driver beside STUB's."""
    import onnxruntime

    library = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=False
    ).stdout
    names = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    wanted = sorted(
        name for name in names if re.fullmatch(r"cu[A-Z]\w+", name) and name not in STUB
    )
    return "".join(f"int {name}() {{ return {status}; }}\n" for name in wanted)


def ask_engine(graph: Path, device: str, limit_mib: int | None = None) -> tuple[int, str, float]:
    """Ask a model 64 prompts in a process of its own, with a limit of the GPU's memory."""
    code = (
        "from pathlib import Path\nfrom fairgate.onnx import session\n"
        + (f"session.OPTIONS['gpu_mem_limit'] = str({limit_mib} * 2**20)\n" if limit_mib else "")
        + "from fairgate.domain.executions import Decoding, GenerationRequest\n"
        "from fairgate.onnx.decoder import OnnxDecoder\n"
        f"engine = OnnxDecoder(Path({str(graph)!r}), decoding=Decoding(max_new_tokens=4), batch_size=None, device={device!r})\n"
        "asked = [GenerationRequest(prompt='Never again, ' * 40 + str(n)) for n in range(64)]\n"
        "try:\n    print(len(list(engine.generate(asked))), 'answers;', engine.notices)\n"
        "except Exception as error:\n    print('Error', type(error).__name__, error)\n    raise SystemExit(4)\n"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, time.perf_counter() - start


def tiny_checkpoint(source: Path) -> None:
    """Write a random model of two layers with the bundled model's tokenizer."""
    import torch
    from cuda_models import SHAPES
    from engine_models import DEMO, TOKENIZER
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape = SHAPES["tiny"]
    config = LlamaConfig(
        **shape,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).eval().save_pretrained(str(source))
    for name in TOKENIZER:
        shutil.copyfile(DEMO / name, source / name)


WORK: dict[str, Callable[[Table, Path, argparse.Namespace], None]] = {
    "start": start,
    "policies": policies,
    "bytes": check_bytes,
    "models": models,
    "smollm2": smollm2,
    "3b": three_b,
    "faults": faults,
}


def ends_within(limit: float, call: list[str]) -> bool:
    """Run a process for so many seconds at most, and return whether it ended by itself.

    With it end those that it started, which would hold the GPU's memory.
    """
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(call, cwd=ROOT, env=environment, start_new_session=True)
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return True


def main() -> None:
    """Run the sections one after the other, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--reviews", type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out.resolve()
    file = out / "table.md"
    if options.inside:
        [section] = options.sections
        table = Table(file, section)
        with table.attempt("section"):
            WORK[section](table, out, options)
        return
    for section in options.sections:
        limit = LIMITS[section] * (10 if options.quick else 1)
        begun = time.perf_counter()
        given = [sys.executable, __file__, *sys.argv[1:]]
        if "--sections" in given:
            given = given[: given.index("--sections")]
        if not ends_within(limit, [*given, "--inside", "--sections", section]):
            Table(file, section).add("section", f"cut off after {limit} s")
        Table(file, section).add("whole section, seconds", f"{time.perf_counter() - begun:.0f}")
    print("\n| section | what | result |\n|---|---|---|")
    print(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
