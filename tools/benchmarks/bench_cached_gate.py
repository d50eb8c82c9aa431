"""A fully stored gate of 2,100 pairs: time, memory, and what it imports.

Run: python tools/benchmarks/bench_cached_gate.py [--runs 5]. The first, unmeasured run fills the store.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLICY = """\
version: 1
name: bench
system:
  retriever: {corpus: demo}
  generator: {model: demo-slm, decoding: paper-text}
suites:
  - {id: sentiment, task: sentiment, sources: demo-reviews, control: neutral}
gates:
  - {parity: all, max: 0.99}
  - {metric: asr/retrieval, max: 0.99, regression: 0.02}
  - {metric: rrs/mean, max: 2.9, regression: 0.05}
"""
PROBE = """
import resource, sys, time
start = time.perf_counter()
from fairgate.cli import main
code = main(sys.argv[1:])
heavy = sorted({n for n in sys.modules if n in ("torch", "transformers", "scipy.stats", "faiss", "onnxruntime", "httpx2")})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.perf_counter() - start:.2f} s inside python, {peak:.0f} MB, heavy imports: {heavy}, exit {code}", file=sys.stderr)
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--runs", type=int, default=5)
runs = parser.parse_args().runs
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    (place / "policy.yaml").write_text(POLICY)
    out = ["run", "policy.yaml", "--out", "out", "--cache", "cache", "--quiet"]

    def gate() -> float:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *out],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stderr.strip().splitlines()[-1])
        return time.perf_counter() - start

    gate()
    accept = ["baseline", "accept", "out", "--reason", "bench", "--cache", "cache"]
    subprocess.run([sys.executable, "-m", "fairgate", *accept], cwd=place, check=True)
    print("--- stored, compared with a baseline:")
    seconds = sorted(gate() for _ in range(runs))
    print(f"whole process: median {seconds[len(seconds) // 2]:.2f} s, best {seconds[0]:.2f} s")
    print(
        f"children peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB (first run included)"
    )
