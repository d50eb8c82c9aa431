"""How time and memory of `fairgate generate` grow with the number of cases.

Run: python tools/benchmarks/bench_generated_cases.py [GENERATOR] [T]. A new process for every size.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = """
import resource, sys, time
start = time.process_time()
from fairgate.cli import main
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"CPU {time.process_time() - start:.1f} s, peak {peak:.0f} MB, exit {code}", file=sys.stderr)
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("generator", nargs="?", default="genfair")
parser.add_argument("strength", nargs="?", default="2", metavar="T")
options = parser.parse_args()
for count in (1_000, 10_000, 100_000):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cases.jsonl"
        command = ["generate", options.generator, "--limit", str(count), "--t", options.strength]
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *command, "--out", str(out)],
            capture_output=True,
            text=True,
            check=True,
        )
        with out.open("rb") as file:
            written = sum(1 for _ in file) - 1
        size = out.stat().st_size / 2**20
        print(f"{written:>7,} cases, {size:5.1f} MB: {done.stderr.strip().splitlines()[-1]}")
