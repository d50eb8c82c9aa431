"""What shared blocks of prompts save, on the prompts of a policy's own gate, in one run.

    python tests/benchmarks/bench_prefixes.py [--model FOLDER] [--policy FILE] [--first 440]

Paired ratios of processor seconds, one thread each, medians of `--repeats` rounds: this engine with
blocks, and the same reading each prompt at once; `bench_engines.py` compares with other engines.
Each generates at most two tokens, what a label of the embedded model takes. Answers of both ways of this engine must be equal, margins included where the
graph's sums do not depend on the split; the script fails where a text differs.

The limit: the products with weights, of the tokens that are computed, at the rate that ONNX Runtime
reaches on one such product alone, measured in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from matrix_rate import product_rate

import fairgate
from fairgate.adapters.onnx_decoder import OnnxDecoder
from fairgate.adapters.onnx_engine.decoder_session import DecoderSession
from fairgate.cli import main as fairgate_command
from fairgate.domain.executions import Decoding, GenerationRequest

ROOT = Path(__file__).parents[2]
DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
TOKENS = 2


def prompts_of(policy: Path) -> list[GenerationRequest]:
    """Return what a gate asks its generator, in the order of the plan."""
    found: list[GenerationRequest] = []

    def collect(_: Any, requests: Any) -> Any:
        found.extend(requests)
        raise SystemExit

    with (
        TemporaryDirectory() as out,
        patch.object(OnnxDecoder, "generate", collect),
        patch.object(OnnxDecoder, "fingerprint", "nothing is stored under this name"),
        redirect_stderr(StringIO()),  # it reports that it was stopped
    ):
        fairgate_command(["run", str(policy), "--out", f"{out}/run"])
    return found


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor seconds and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def engine_of(folder: Path, *, shares: bool) -> OnnxDecoder:
    """Return an engine that is warm, with or without blocks."""
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=TOKENS), threads=1)
    if shares and not engine._session.shares:
        raise SystemExit(f"{folder} shares nothing")
    engine._session._splits = shares
    list(engine.generate([GenerationRequest(prompt="Never again.")]))
    return engine


def weights_of(folder: Path) -> list[tuple[int, int]]:
    """Return the shapes of the matrices that every token is multiplied with."""
    import onnx

    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    shapes = {each.name: tuple(each.dims) for each in model.graph.initializer}
    used = [shapes.get(node.input[1]) for node in model.graph.node if node.op_type == "MatMul"]
    found = [shape for shape in used if shape is not None and len(shape) == 2]
    return found[:-1]  # the last projects onto the vocabulary, of one position only


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
    parser.add_argument("--first", type=int, default=440)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    requests = prompts_of(options.policy)[: options.first]
    with_blocks, at_once = (engine_of(options.model, shares=shares) for shares in (True, False))
    computed = {each: tokens_computed(each, requests) for each in (with_blocks, at_once)}
    works: dict[str, Callable[[], Any]] = {
        "blocks": lambda: dict(with_blocks.generate(requests)),
        "each prompt at once": lambda: dict(at_once.generate(requests)),
    }
    spent: dict[str, list[float]] = {name: [] for name in works}
    answers: dict[str, Any] = {}
    for _ in range(options.repeats):
        for name, work in works.items():
            took, answers[name] = seconds(work)
            spent[name].append(took)
    report(spent)
    own, other = (answers[name] for name in ("blocks", "each prompt at once"))
    texts = sum(own[n].text == other[n].text for n in own)
    bits = sum(own[n] == other[n] for n in own)
    print(f"equal texts {texts} of {len(own)}, equal margins too {bits} of {len(own)}")
    shapes = weights_of(options.model)
    rate = product_rate(max(shapes, key=lambda shape: shape[0] * shape[1]))
    needed = 2 * sum(rows * columns for rows, columns in shapes)
    for name, engine in (("blocks", with_blocks), ("each prompt at once", at_once)):
        limit = needed * computed[engine] / rate
        share = limit / statistics.median(spent[name])
        print(f"{name}: {computed[engine]} tokens computed, {share:.0%} of the limit's rate")
    print(f"the limit: {rate / 1e9:.0f} GFLOP/s a thread")
    if texts < len(own):
        raise SystemExit("answers differ between blocks and prompts read at once")


def report(spent: dict[str, list[float]]) -> None:
    """Print the paired ratios to this engine with blocks."""
    own = spent["blocks"]
    print("| | processor seconds | times as long as with blocks |\n|---|--:|--:|")
    for name, took in spent.items():
        ratios = [a / b for a, b in zip(took, own, strict=True)]
        print(
            f"| {name} | {statistics.median(took):.2f} | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) |"
        )


if __name__ == "__main__":
    main()
