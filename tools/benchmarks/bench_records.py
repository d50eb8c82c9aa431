"""Time and memory of a run's files: reading answers and baseline, writing each file.

Run: python tools/benchmarks/bench_records.py [FOLDER] [--rounds 7]

FOLDER is that of one size below what `bench_growth.py --keep` left: policy.yaml, answers.jsonl,
baselines/ and out/. Without it the inputs of 10,000 pairs are made first, in the same way.
Prints processor microseconds a pair (medians) and, of what is read, peak against live memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_growth import measure as run_growth

from fairgate.domain.ports import Runtime
from fairgate.gate.baseline_files import dump_baseline, load_baseline
from fairgate.gate.run_folder import execution_lines, replay, write_run
from fairgate.reports.formats import chosen, known_files
from fairgate.reports.present import local_view, texts_of
from fairgate.systems.recorded_answers import read_recorded


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    made = work()
    if not isinstance(made, str) and hasattr(made, "__next__"):
        for _ in made:
            pass
    return time.process_time() - start


def peak_to_live(work: Callable[[], object]) -> float:
    tracemalloc.start()
    kept = work()
    live, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return peak / live


def measure(place: Path, rounds: int) -> None:
    """Print what each file of the run in this folder takes."""
    os.chdir(place)
    done = replay(Path("out"), Path("policy.yaml"), Runtime())
    run, loaded = done.run, done.loaded
    formats = chosen("")
    texts = texts_of(local_view(run, loaded, Path("out"), formats), formats)
    (kept,) = Path("baselines").glob("*.json")
    text = kept.read_text()
    baseline = load_baseline(text, str(kept))
    pairs = len(run.result.assessed)
    reading = {
        "reading answers.jsonl": partial(read_recorded, "answers.jsonl"),
        "reading the baseline": partial(load_baseline, text, str(kept)),
    }
    with tempfile.TemporaryDirectory() as again:
        folder = Path(again) / "out"
        work: dict[str, Callable[[], object]] = {
            **reading,
            "making the baseline's text": partial(dump_baseline, baseline),
            "executions.jsonl": lambda: execution_lines(run.executions.values()),
            **texts,
            "writing the folder again": partial(
                write_run, folder, loaded, run, texts, known_files()
            ),
        }
        write_run(folder, loaded, run, texts, known_files())
        for name, one in work.items():
            found = statistics.median(seconds(one) for _ in range(rounds))
            print(f"{name:28} {1e6 * found / pairs:7.2f} us a pair")
    for name, one in reading.items():
        print(f"{name:28} {peak_to_live(one):7.2f} peak to live memory")
    print(f"baseline {len(text.encode()) / pairs:.1f} bytes a pair, {pairs:,} pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.folder:
        measure(options.folder, options.rounds)
        return
    with tempfile.TemporaryDirectory() as made:
        run_growth(Path(made), 10_000)
        measure(Path(made), options.rounds)


if __name__ == "__main__":
    main()
