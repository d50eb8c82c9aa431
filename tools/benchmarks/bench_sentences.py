"""What reading answers in sentences takes: processor time and memory, without generation.

    export OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests:tools  # one thread, as the command line sets
    python tools/benchmarks/bench_sentences.py [--copies 1 2]

The recorded answers of SmolLM2 to 40 questions, of 21 identities and 20 control prompts; a copy has
other questions with the same answers. Sentences are embedded once, by MiniLM, and timed apart.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from calibration.sentences import DATA, SETS, Texts, noun_phrases, read

from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Arm, CaseKeys, Reading, Unit
from fairgate.metrics.columns import Pool, PoolAnswer
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.suites.metamorphic.sentences import SENTENCES

RECORDING = Path(__file__).parents[1] / "smollm2/recordings/sentences/greedy.jsonl.gz"
NEUTRAL = 20
READ = Reading(value="read")


def pools(answers: Texts, copies: int) -> Iterator[Pool]:
    """Yield a pool for each question and copy."""
    asked = next(iter(answers.values()))
    phrases = {key: phrase for key, phrase in noun_phrases().items() if key in asked}
    neutral = [key for key in phrases if key.partition("/")[0] not in SETS]
    keys = [*(key for key in phrases if key not in neutral), *neutral[::2][:NEUTRAL]]
    for copy in range(copies):
        for question, texts in answers.items():
            source = f"{question}/{copy}"
            members = [_member(source, key, texts[key], phrases[key]) for key in keys]
            asked = PoolAnswer(key=source, unit=None, reading=READ, executions=[], responses=[])
            yield Pool(relation="set-equivalence", source=asked, members=members)


def _member(source: str, key: str, text: str, phrase: str) -> PoolAnswer:
    category, _, term = key.partition("/")
    arm = Arm.TEST if category in SETS else Arm.CONTROL
    follow_up = f"{source}#{key}"
    unit = Unit(
        key=follow_up, suite="bench", cluster=source, content="", arm=arm,
        asks=CaseKeys({"source": 0, "follow-up": 1}, (source, follow_up)),
        dimensions={"relation": "set-equivalence", "category": category, "term": term},
        names={"noun_phrase": phrase},
    )  # fmt: skip
    execution = Execution(documents=None, response=text)
    return PoolAnswer(
        key=follow_up, unit=unit, reading=READ, executions=[execution], responses=[text]
    )


def main() -> None:
    """Print a row for each number of copies."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    answers = read(RECORDING)
    encoder = OnnxEncoder(DATA / "models/minilm", threads=1, choice=NO_PROMPTS)
    known: dict[str, Any] = {}
    embedding = 0.0

    def vectors(documents: Sequence[Document]) -> Any:
        nonlocal embedding
        start = time.process_time()
        new = sorted({str(d.text) for d in documents} - known.keys(), key=lambda t: (len(t), t))
        if new:
            known.update(zip(new, encoder.embed(new), strict=True))
        embedding += time.process_time() - start
        return np.stack([known[str(document.text)] for document in documents])

    print("| answers | sentences embedded | embedding, s | everything else, s | peak, MiB |")
    print("|--:|--:|--:|--:|--:|")
    for copies in options.copies:
        made, embedding = list(pools(answers, copies)), 0.0
        before, start = len(known), time.process_time()
        rows = sum(len(next(iter(values.values()))) for values in SENTENCES.compute(made, vectors))
        rest = time.process_time() - start - embedding
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {rows:,} | {len(known) - before:,} | {embedding:.1f} | {rest:.1f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
