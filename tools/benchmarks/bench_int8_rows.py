"""How near `int8-rows` stays to float32, in one term and in two, on models and their outliers.

    PYTHONPATH=. .venv-export/bin/python tools/benchmarks/bench_int8_rows.py FOLDER [--outliers 300]

FOLDER is a decoder in float32 as `fairgate export` writes it. `--outliers`: a sixty-fourth of the
channels behind each norm is made so many times as large and their weights as much smaller, which is
the same function. Compared are labels at the label's stop, the log-odds of the two likeliest labels,
and texts of 150 tokens, on prompts of a gate on sentiment; and the bytes of one graph's
answers in other batches, orders and threads, and whether it may be cut into any pieces.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from engine_models import write_precision
from onnx import numpy_helper

from fairgate.domain.executions import Decoding, Execution, GenerationRequest
from fairgate.features.onnx_export import agreement
from fairgate.features.onnx_export.int8_rows import Layers
from fairgate.onnx.attention import GraphIndex
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.onnx.trials import open_decoder
from fairgate.relations.oracles.label import first_label

LONG = 150
SHARE = 64


def add_outliers(graph: Path, size: float) -> int:
    """Make channels behind norms larger and their weights smaller; return how many norms have them."""
    model = onnx.load(str(graph))
    layers, index = Layers.of(model), GraphIndex(model)
    vectors = {tensor.name: tensor for tensor in model.graph.initializer if len(tensor.dims) == 1}
    norms = 0
    for activation in layers.activations:
        stored = [name for name in index.makers[activation].input if name in vectors]
        if len(stored) != 1:
            continue
        norm = vectors[stored[0]]
        channels = norm.dims[0]
        factors = np.ones(channels, dtype=np.float32)
        rng = np.random.default_rng(norms)
        factors[rng.choice(channels, max(1, channels // SHARE), replace=False)] = size
        scale(norm, factors)
        for matrix in layers.readers(activation):
            scale(matrix, 1 / factors[:, None])
        norms += 1
    onnx.save(model, str(graph))
    return norms


def scale(tensor: onnx.TensorProto, factors: np.ndarray) -> None:
    """Multiply a stored tensor."""
    numbers = (numpy_helper.to_array(tensor) * factors).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))


class Asked:
    """A model's answers to the same prompts in one way after another."""

    def __init__(self, folder: Path, prompts: int, long: int) -> None:
        texts, self._labels = agreement._gate_texts()
        spread = np.linspace(0, len(texts) - 1, prompts).round().astype(int)
        self._texts = [texts[place] for place in spread]
        self._folder = folder
        model = ModelFolder.find(folder)
        every = agreement.gate_prompts(PromptTokenizer(model))
        session = open_decoder(model, device="cpu", threads=1)
        self.shares = session.shares
        self.readings = agreement._readings(
            agreement._exported(session), [every[place] for place in spread]
        )
        self.answers = self._answers(range(prompts), batch=16, threads=1)
        self.labels = [
            first_label(answer.response, self._labels) for answer in self.answers.values()
        ]
        engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=LONG), threads=1)
        requests = [GenerationRequest(prompt=text) for text in self._texts[:long]]
        self.long = [answer.response for _, answer in sorted(engine.generate(requests))]

    def _answers(self, places: range, *, batch: int, threads: int) -> dict[int, Execution]:
        engine = OnnxDecoder(
            self._folder, decoding=Decoding(max_new_tokens=8), batch_size=batch, threads=threads
        )
        requests = [
            GenerationRequest(prompt=self._texts[place], labels=self._labels) for place in places
        ]
        return {places[row]: answer for row, answer in sorted(engine.generate(requests))}

    def unlike(self) -> Iterator[str]:
        """Yield the ways in which any answer or margin has other bytes."""
        every = range(len(self._texts))
        for batch, threads, places in (
            (16, 2, every),
            (1, 1, every),
            (5, 1, every[::-1]),
            (3, 2, every[1::2]),
        ):
            others = self._answers(places, batch=batch, threads=threads)
            if any(self.answers[place] != answer for place, answer in others.items()):
                yield f"batches of {batch}, {threads} threads, {len(places)} prompts"


def row(name: str, own: Asked, rounded: Asked) -> str:
    """Return a line of the table."""
    labels = agreement._compare_answers(own.labels, rounded.labels)
    shifts = agreement._compare_gate(own.readings, rounded.readings)
    texts = sum(a == b for a, b in zip(own.long, rounded.long, strict=True))
    cells = (
        name,
        f"{labels['gate_equal_labels']} of {labels['gate_compared_labels']}",
        shifts["gate_log_odds_shift"],
        f"{shifts['gate_perplexity_of_original']} → {shifts['gate_perplexity']}",
        f"{texts} of {len(own.long)}",
        ", ".join(rounded.unlike()) or "equal",
        "any" if rounded.shares else "none",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the table of one model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--outliers", type=float, default=1)
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--long", type=int, default=4, help="prompts that get 150 tokens")
    parser.add_argument("--terms", type=int, nargs="+", choices=[1, 2], default=[1, 2])
    options = parser.parse_args()
    print("| model | labels | log-odds | perplexity | 150 tokens | bytes | pieces |")
    print("|---|--:|--:|--:|--:|---|---|", flush=True)
    with TemporaryDirectory() as scratch:
        source = Path(shutil.copytree(options.folder, Path(scratch) / "fp32"))
        if options.outliers != 1:
            add_outliers(source / "model.onnx", options.outliers)
        own = Asked(source, options.prompts, options.long)
        leads = [best[-1] - best[-2] for best in (sorted(one.scores) for one in own.readings)]
        half, tenth = np.quantile(leads, [0.5, 0.1])
        for terms in options.terms:
            target = write_precision(source, Path(scratch) / f"{terms}", "int8-rows", terms=terms)
            name = f"{options.folder.name}, {terms} terms"
            print(row(name, own, Asked(target, options.prompts, options.long)), flush=True)
    print(f"\nhalf of the prompts are decided by less than {half:.2g} nats, a tenth by {tenth:.2g}")


if __name__ == "__main__":
    main()
