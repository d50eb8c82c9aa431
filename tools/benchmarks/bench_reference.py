"""What a reference costs beside a plain run: questions, and processor time.

    python tools/benchmarks/bench_reference.py [--sources 40]

The embedded model on the shipped reviews, each run with an empty store of its own: alone, beside
itself, beside another generator (shorter documents in the prompt) and another index, and once more with what is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
RETRIEVER = "{corpus: demo, embedder: minilm, top_k: 4}"
SYSTEM = f"{{retriever: {RETRIEVER}, generator: {{model: demo-slm, decoding: greedy}}}}"
REFERENCES = {
    "none": "",
    "the same system": SYSTEM,
    "another generator": SYSTEM.replace("decoding", "document_characters: 80, decoding"),
    "another index": SYSTEM.replace("embedder: minilm", "index: bm25"),
}


def policy(reference: str, sources: int) -> str:
    """Return the text of a policy."""
    beside = f"reference: {reference}\n" if reference else ""
    shift = "  - {metric: shift/answer, report: true}\n" if reference else ""
    return (
        f"version: 1\nname: cost\nsystem: {SYSTEM}\n{beside}"
        "suites:\n  - id: reviews\n    task: sentiment\n    sources: demo-reviews\n"
        f"    perturbations: [gender]\n    control: paper\n    attribution: 'off'\n    limit: {sources}\n"
        f"gates:\n  - {{metric: asr/generation, max: 0.9}}\n{shift}"
    )


def measured(folder: Path, cache: Path) -> tuple[int, float, float]:
    """Return the answers of a run, its processor time and its time, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [Path(sys.executable).with_name("fairgate"), "run", "policy.yaml", "--out", "out"]
    environment = {**os.environ, "FAIRGATE_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*map(str, command), "--report-only", "--threads", "1"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = (folder / "out/executions.jsonl").read_text("utf-8").splitlines()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return len([*map(json.loads, lines)]), used, time.monotonic() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=int, default=40)
    options = parser.parse_args()
    print("| reference | answers | processor time, s | again, s |\n|:--|--:|--:|--:|")
    for name, reference in REFERENCES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder, cache = Path(scratch), Path(scratch) / "cache"
            (folder / "policy.yaml").write_text(policy(reference, options.sources), "utf-8")
            answers, used, _ = measured(folder, cache)
            _, again, _ = measured(folder, cache)
        print(f"| {name} | {answers:,} | {used:.1f} | {again:.1f} |", flush=True)


if __name__ == "__main__":
    main()
