"""A run over worker processes beside runs of one process: time, and the same bytes.

Run: python tools/benchmarks/bench_workers.py [--policy P] [--workers 2] [--rounds 5].
Every run starts from the index and the answers about one source. Wall time is what workers are for, so
the machine must have nothing else to do; processor time holds that of the workers, too. Prints
medians, and the medians of the rounds' ratios to the run over workers; fails where a byte differs.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from engine_table import ratio

TREE = Path(__file__).parents[2]
EMBEDDED = TREE / "policies" / "rag-sentiment.yaml"


def called(*arguments: str, place: Path) -> tuple[float, float]:
    """Wall and processor time of one command, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "fairgate", *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3, 5):
        sys.exit(f"fairgate {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file of a run's folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path, default=EMBEDDED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", help="as of fairgate run: so many sources of each suite")
    options = parser.parse_args()
    policy = str(options.policy.resolve())
    count = str(options.workers)
    over = f"{count} workers of 1 thread"
    ways = {
        over: ["--workers", count, "--threads", "1"],
        f"1 process of {count} threads": ["--threads", count],
        "1 process of 1 thread": ["--threads", "1"],
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        called("run", policy, "--limit", "1", "--out", "o", "--cache", "indexed", place=place)
        expected: dict[str, bytes] = {}
        for turn in range(options.rounds):
            for name in list(ways)[:: 1 if turn % 2 else -1]:
                shutil.copytree(place / "indexed", place / "cache")
                how = ["--out", "out", "--cache", "cache", "--quiet", *ways[name]]
                how += ["--limit", options.limit] if options.limit else []
                times[name].append(called("run", policy, *how, place=place))
                found = bytes_of(place / "out")
                expected = expected or found
                if found != expected:
                    differ = [file for file in found if found[file] != expected.get(file)]
                    sys.exit(f"{name}: other bytes than before in {', '.join(differ)}")
                shutil.rmtree(place / "out")
                shutil.rmtree(place / "cache")
    print("| | wall, s | processor, s | times the wall time of workers | by processor time |")
    print("|---|--:|--:|--:|--:|")
    walls, processors = zip(*times[over], strict=True)
    for name, found in times.items():
        wall, processor = zip(*found, strict=True)
        print(
            f"| {name} | {statistics.median(wall):.1f} | {statistics.median(processor):.1f} | "
            f"{ratio(wall, walls)} | {ratio(processor, processors)} |"
        )


if __name__ == "__main__":
    main()
