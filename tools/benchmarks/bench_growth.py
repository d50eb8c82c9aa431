"""Time, memory and file sizes of a whole `fairgate run` by number of pairs, answers recorded.

Run: python tools/benchmarks/bench_growth.py --pairs 100 1000 10000 100000 [--keep FOLDER]

Each run is a process of its own; its second run, beside an accepted baseline, is what is measured.
Prints the exponents of time and memory between the sizes: 1 is linear.

With --check, it runs 100,000 pairs alone and ends with 1 where they take longer than MOST_WORK times
a fixed piece of work that the same machine does before and after, or more than MOST_MEMORY.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS_OF_A_SOURCE = 30
POLICY = """\
version: 1
name: growth
system: {recorded: answers.jsonl}
suites:
  - {id: sentiment, task: sentiment, sources: sources.csv, control: neutral}
gates:
  - {parity: all, max: 0.99}
  - {metric: asr/generation, max: 0.99, regression: 0.02}
  - {metric: asr/retrieval, max: 0.99, regression: 0.02}
"""
MOST_WORK = 12.5
"""Processor time of 100,000 pairs, in times of `STANDARD_WORK`: 10.0 were measured."""
MOST_MEMORY = 284
"""Peak MiB of 100,000 pairs: 277 were measured."""
STANDARD_WORK = """
import hashlib, json
import numpy as np
rows = [{"key": f"s{n}", "value": n / 7, "text": "a text of some words"} for n in range(100_000)]
lines = [json.dumps(row) for row in rows]
digest = hashlib.sha256("\\n".join(lines).encode()).hexdigest()
columns = {row["key"]: row["value"] for row in map(json.loads, lines)}
values = np.asarray(sorted(columns.values()))
for seed in range(20):
    np.random.default_rng(seed).integers(0, 9, 1_000_000).sum()
"""
LABELS = ("positive", "negative", "neutral", "mixed")


def chance(*parts: str) -> float:
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:6], "big") / 2**48


def prepare(place: Path, pairs: int) -> None:
    """Write a policy, its sources and a recorded answer to each question of its plan."""
    (place / "policy.yaml").write_text(POLICY)
    with (place / "sources.csv").open("w") as file:
        file.write("id,text\n")
        for number in range(max(2, pairs // PAIRS_OF_A_SOURCE)):
            file.write(f"s{number},the film number {number} was long and the seats were hard\n")
    (place / "answers.jsonl").write_text("")
    plan = place / "plan.jsonl"
    subprocess.run(
        [sys.executable, "-m", "fairgate", "plan", "policy.yaml", "--output", str(plan)],
        cwd=place,
        check=True,
    )
    with plan.open() as lines, (place / "answers.jsonl").open("w") as file:
        for line in lines:
            file.write(json.dumps(answer(json.loads(line)["key"])) + "\n")


def answer(key: str) -> dict[str, object]:
    """Return the line of a case: a tenth of the follow-ups have another answer or document.

    The labels of sources take turns: where three had one by chance, no answer would show anything.
    """
    source = key.partition("#")[0]
    label = LABELS[int(source.removeprefix("s")) % 3]
    if chance(key, "answer") < 0.1:
        label = LABELS[int(3 * chance(key))]
    first = int(1000 * chance(source, "documents"))
    numbers = [first, first + 1, first + 2, first + 3 + (chance(key, "document") < 0.1)]
    return {
        "key": key,
        "response": f"The sentiment is {label}.",
        "documents": [
            {"id": f"d{n}", "label": "toxic" if n % 3 else "non-toxic", "score": 0.5}
            for n in numbers
        ],
    }


def gate(place: Path) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and peak MiB of one run."""
    return used_by(["-m", "fairgate", "run", "policy.yaml", "--out", "out", "--quiet"], place)


def used_by(arguments: list[str], place: Path) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and peak MiB of Python with these arguments."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], cwd=place, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the run ended with exit code {process.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(place: Path, pairs: int) -> tuple[float, float]:
    if not (place / "answers.jsonl").is_file():
        place.mkdir(parents=True, exist_ok=True)
        prepare(place, pairs)
        gate(place)
        accept = ["baseline", "accept", "out", "--reason", "bench"]
        subprocess.run(
            [sys.executable, "-m", "fairgate", *accept],
            cwd=place,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    wall, busy, peak = gate(place)
    page = (place / "out" / "report.html").stat().st_size
    kept = sum(file.stat().st_size for file in (place / "baselines").iterdir())
    print(
        f"{pairs:>9,} pairs  {wall:7.2f} s wall  {busy:7.2f} s busy  {1e6 * busy / pairs:7.1f} us "
        f"a pair  peak {peak:6.0f} MiB  page {page / 1e6:.2f} MB  "
        f"baseline {kept / pairs:.1f} bytes a pair",
        flush=True,
    )
    return busy, peak


def check(root: Path, pairs: int = 100_000, runs: int = 3) -> None:
    """End with 1 where a run takes more than it may, measured beside a fixed piece of work.

    The least of several runs and pieces counts: what else the machine does only adds.
    """
    work, spent, peaks = [], [], []
    for _ in range(runs):
        root.mkdir(parents=True, exist_ok=True)
        work.append(used_by(["-c", STANDARD_WORK], root)[1])
        busy, peak = measure(root / str(pairs), pairs)
        spent.append(busy)
        peaks.append(peak)
    ratio, peak = min(spent) / min(work), min(peaks)
    print(
        f"{ratio:.1f} times the fixed piece of work ({min(work):.2f} s), at most {MOST_WORK}; "
        f"peak {peak:.0f} MiB, at most {MOST_MEMORY}"
    )
    if ratio > MOST_WORK or peak > MOST_MEMORY:
        raise SystemExit("a run has become slower or larger: find what did it")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--keep", type=Path, help="folder of the inputs, to measure them again")
    parser.add_argument("--check", action="store_true", help="100,000 pairs against the limits")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = options.keep.resolve() if options.keep else Path(folder)
        if options.check:
            check(root)
            return
        found = [(pairs, *measure(root / str(pairs), pairs)) for pairs in options.pairs]
    for (few, busy, peak), (many, longer, higher) in itertools.pairwise(found):
        steps = math.log(many / few)
        print(
            f"{few:,} to {many:,}: exponent of time {math.log(longer / busy) / steps:.2f}, "
            f"of memory {math.log(higher / peak) / steps:.2f}"
        )


if __name__ == "__main__":
    main()
