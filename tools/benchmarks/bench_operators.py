"""Where a label's processor time goes, by operator and by stage, on whatever processor it runs.

    python tools/benchmarks/bench_operators.py [--model FOLDER] [--policy FILE] [--prompts 48]

Stages: reading what prompts begin with in common, reading what follows, and each further token of
an answer. Seconds are processor time of one thread; within a stage ONNX Runtime's own profile
shares them out by operator. Profiling itself is included, about a tenth. What runs in no session is
Python's: tokens, margins, and keys and values that move.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import onnxruntime
from bench_prefixes import DEMO, ROOT, chosen, prompts_of

from fairgate.domain.executions import Decoding
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_graph import POSITIONS_INPUT
from fairgate.onnx.decoder_session import DecoderSession

STAGES = BEGINNINGS, REST, ANSWERS = "beginnings", "own parts", "answer tokens"
FEWEST = 0.01
"""Operators with a smaller share of the whole are summed up."""


class Stages:
    """The stage of each run of a session, and the processor seconds of each stage."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Note each run of any session in the block."""
        computed = DecoderSession._computed

        def run(session: DecoderSession, feeds: Any, *given: Any, **options: Any) -> Any:
            wanted = feeds.get(POSITIONS_INPUT)
            stage = REST if wanted is None or wanted.shape[1] else BEGINNINGS
            stage = ANSWERS if feeds["input_ids"].shape[1] == 1 else stage
            start = time.process_time()
            outputs = computed(session, feeds, *given, **options)
            self.seconds[stage] += time.process_time() - start
            self.runs.append(stage)
            return outputs

        with patch.object(DecoderSession, "_computed", run):
            yield


def operators(events: Sequence[dict[str, Any]]) -> Iterator[tuple[int, str, float, int]]:
    """Yield the run, the operator, microseconds of its own and calls, of each node's event.

    An `If` lasts as long as the nodes of its branch, which have events of their own.
    """
    ends = [event["ts"] + event["dur"] for event in events if event["name"] == "model_run"]
    nodes = [event for event in events if event["name"].endswith("_kernel_time")]
    run, branch_end = 0, 0
    for event in sorted(nodes, key=lambda event: (event["ts"], -event["dur"])):
        while run < len(ends) and event["ts"] >= ends[run]:
            run += 1
        name, duration = event["args"]["op_name"], event["dur"]
        if name == "If":
            branch_end = event["ts"] + duration
        elif event["ts"] < branch_end:
            yield run, "If", -duration, 0
        yield run, name, duration, 1


def processor() -> str:
    """Return the processor's name, and whether it multiplies matrices."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    told = dict(reversed([line.split(":", 1) for line in lines if ":" in line]))
    facts = {key.strip(): value.strip() for key, value in told.items()}
    units = [unit for unit in ("amx_int8", "avx512_vnni", "avx2") if unit in facts.get("flags", "")]
    return f"{facts.get('model name', platform.machine())} ({', '.join(units) or 'no vectors'})"


def main() -> None:
    """Answer prompts once under ONNX Runtime's profiler and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=DEMO)
    parser.add_argument("--policy", type=Path, default=ROOT / "policies" / "rag-sentiment.yaml")
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--runs", type=int, default=4, help="see bench_prefixes.py")
    parser.add_argument("--new-tokens", type=int, default=8)
    options = parser.parse_args()
    requests = chosen(prompts_of(options.policy), options.prompts, options.runs)
    plain = onnxruntime.SessionOptions
    with TemporaryDirectory() as folder:

        def profiled() -> Any:
            settings = plain()
            settings.enable_profiling = True
            settings.profile_file_prefix = f"{folder}/profile"
            return settings

        engine = OnnxDecoder(
            options.model, decoding=Decoding(max_new_tokens=options.new_tokens), threads=1
        )
        stages = Stages()
        with patch.object(onnxruntime, "SessionOptions", profiled), stages.recorded():
            session = engine._session
            list(engine.generate(requests[:1]))  # opens the tokenizer
            opening = len(stages.runs)
            stages.seconds.clear()
            start = time.process_time()
            answers = dict(engine.generate(requests))
            whole = time.process_time() - start
        events = json.loads(Path(session._session.end_profiling()).read_text(encoding="utf-8"))
    report(stages, opening, events, whole)
    print(f"\n{processor()}, {len(answers)} prompts, {len(stages.runs) - opening} runs")


def report(stages: Stages, opening: int, events: list[dict[str, Any]], whole: float) -> None:
    """Print the table; runs before `opening` were trials."""
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    calls: Counter[str] = Counter()
    for run, name, own, number in operators(events):
        if opening <= run < len(stages.runs):
            taken[stages.runs[run]][name] += own
            calls[name] += number
    seconds = {
        stage: {
            name: own / sum(parts.values()) * stages.seconds[stage] for name, own in parts.items()
        }
        for stage, parts in taken.items()
    }
    sums = {name: sum(parts.get(name, 0) for parts in seconds.values()) for name in calls}
    few = [name for name, own in sums.items() if own < FEWEST * whole]
    print(f"| operator | {' | '.join(STAGES)} | all, s | share | calls |")
    print("|---|--:|--:|--:|--:|--:|--:|")

    def line(label: str, names: Sequence[str]) -> None:
        cells = [sum(seconds.get(stage, {}).get(name, 0) for name in names) for stage in STAGES]
        number = sum(calls[name] for name in names)
        row = " | ".join(f"{cell:.2f}" for cell in cells)
        print(f"| {label} | {row} | {sum(cells):.2f} | {sum(cells) / whole:.0%} | {number} |")

    for name in sorted(sums.keys() - set(few), key=sums.__getitem__, reverse=True):
        line(name, [name])
    line(f"{len(few)} others", few)
    python = whole - sum(stages.seconds.values())
    print(f"| Python | | | | {python:.2f} | {python / whole:.0%} | |")
    print(f"| all | | | | {whole:.2f} | | |")


if __name__ == "__main__":
    main()
