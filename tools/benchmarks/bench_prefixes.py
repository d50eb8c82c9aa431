"""What reading in common what prompts begin with saves, on a policy's own prompts, in one run.

    python tools/benchmarks/bench_prefixes.py [--model FOLDER] [--policy FILE] [--prompts 440]

Paired ratios of processor seconds, one thread each, medians of `--rounds`: this engine as it is,
which cuts prompts where they part, each prompt at once, and each at once as the
graph was exported, but for the cut before its last projection. Each generates at most two tokens, what a label of the bundled model takes. Answers must be equal; so are margins where the
graph's sums do not depend on the split. `bench_engines.py` compares with other engines.

What a part of a plan has in common is not what the plan has: `--runs` takes the prompts as so many
runs of neighbours in the order of their tokens, which share as much as all do; 0 takes the plan's
first ones, `--prompts 0` all.

The limit: the products with weights that are needed for the tokens that are computed, at the rate
that ONNX Runtime reaches on one such product alone, measured in the same run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from matrix_rate import product_rate

import fairgate
from fairgate.cli import main as fairgate_command
from fairgate.domain.executions import Decoding, Execution, GenerationRequest
from fairgate.onnx import decoder_graph
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession

ROOT = Path(__file__).parents[2]
DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
TOKENS = 2


def prompts_of(policy: Path) -> list[GenerationRequest]:
    """Return what a gate asks its generator, in the order of the plan.

    Exits with what the gate says where it asks nothing.
    """
    found: list[GenerationRequest] = []

    def collect(_: Any, requests: Any) -> Any:
        found.extend(requests)
        raise SystemExit

    with (
        TemporaryDirectory() as out,
        patch.object(OnnxDecoder, "generate", collect),
        patch.object(OnnxDecoder, "fingerprint", "nothing is stored under this name"),
        redirect_stderr(StringIO()) as said,  # it reports that it was stopped
    ):
        fairgate_command(["run", str(policy), "--out", f"{out}/run"])
    if not found:
        raise SystemExit(said.getvalue())
    return found


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor seconds and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def chosen(
    requests: list[GenerationRequest], number: int, runs: int = 0
) -> list[GenerationRequest]:
    """Return so many requests (0: all): the first, or `runs` runs of neighbours when sorted."""
    if not number or number >= len(requests) or not runs:
        return requests[: number or None]
    order = sorted(requests, key=lambda request: request.prompt)
    size = number // runs
    starts = [place * len(order) // runs for place in range(runs)]
    return [one for start in starts for one in order[start : start + size]]


NOW = "now"
AT_ONCE, BEFORE = "each at once", "each at once, before"


def engine_of(folder: Path, way: str) -> OnnxDecoder:
    """Return an engine that is warm and reads prompts in this way."""
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=TOKENS), threads=1)
    with ExitStack() as changed:
        if way == BEFORE:
            for name in ("drop_softmax_guards", "join_attention"):
                changed.enter_context(patch.object(decoder_graph, name, lambda _: 0))
        session = engine._session
    session.shares &= way == NOW
    list(engine.generate([GenerationRequest(prompt="Never again.")]))
    return engine


def products_of(folder: Path) -> tuple[tuple[int, int], int]:
    """Return the largest matrix, and multiplications for a token."""
    import onnx

    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    shapes = {each.name: tuple(each.dims) for each in model.graph.initializer}
    products = {
        node.name: shapes[node.input[1]]
        for node in model.graph.node
        if node.op_type == "MatMul" and len(shapes.get(node.input[1], ())) == 2
    }
    head = decoder_graph.vocabulary_projection(model)
    products.pop(head.name, None)  # not there where its weights are reached through a transpose
    return max(products.values(), key=math.prod), sum(map(math.prod, products.values()))


def tokens_computed(engine: OnnxDecoder, requests: list[GenerationRequest]) -> int:
    """Return how many tokens the graph runs on, padding included."""
    run, sizes = DecoderSession._run, []

    def counted(self: Any, ids: Any, *given: Any, **options: Any) -> Any:
        sizes.append(ids.size)
        return run(self, ids, *given, **options)

    with patch.object(DecoderSession, "_run", counted):
        list(engine.generate(requests))
    return sum(sizes)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=DEMO)
    parser.add_argument("--policy", type=Path, default=ROOT / "policies" / "rag-sentiment.yaml")
    parser.add_argument("--prompts", type=int, default=440)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    requests = chosen(prompts_of(options.policy), options.prompts, options.runs)
    engines = {way: engine_of(options.model, way) for way in (NOW, AT_ONCE, BEFORE)}
    computed = {way: tokens_computed(engine, requests) for way, engine in engines.items()}
    spent: dict[str, list[float]] = {way: [] for way in engines}
    answers: dict[str, dict[int, Execution]] = {}
    largest, products = products_of(options.model)
    rates = []
    for _ in range(options.rounds):
        for way, engine in engines.items():
            took, answers[way] = seconds(lambda engine=engine: dict(engine.generate(requests)))
            spent[way].append(took)
        rates.append(product_rate(largest, rounds=1))
    rate = statistics.median(rates)
    print(f"{len(requests)} prompts, {options.rounds} rounds, {rate / 1e9:.0f} GFLOP/s a thread")
    print("| | processor seconds | times as long as now | tokens computed | of the limit's rate |")
    print("|---|--:|--:|--:|--:|")
    for way, took in spent.items():
        ratios = [a / b for a, b in zip(took, spent[NOW], strict=True)]
        share = 2 * products * computed[way] / rate / statistics.median(took)
        print(
            f"| {way} | {statistics.median(took):.2f} | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {computed[way]} | {share:.0%} |"
        )
    own = answers[NOW]
    for way, others in answers.items():
        texts = sum(own[n].response == others[n].response for n in own)
        bits = sum(own[n] == others[n] for n in own)
        print(f"{way}: equal texts {texts} of {len(own)}, equal margins too {bits}")
        if texts < len(own):
            raise SystemExit("answers differ between ways of reading")


if __name__ == "__main__":
    main()
