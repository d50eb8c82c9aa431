"""What every start costs: `--help`, `check`, a stored gate of 3,000 pairs, the first prompt's tokens.

Run: python tools/benchmarks/bench_start_up.py OTHER [--rounds 15]. OTHER is another checkout, an older one
say; the two take turns, each in a folder of its own, with byte code made before. Prints medians of
processor time and wall time, and the medians of the ratios of pairs.
"""

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stored_policy import POLICY

CALL = "import sys; sys.path.insert(0, sys.argv.pop(1)); from fairgate.cli import main; sys.exit(main())"
TOKENS = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
folder = ModelFolder.find(Path(sys.argv[1]) / "fairgate/data/models/demo-slm")
assert PromptTokenizer(folder).encode(["Is it good?"])
"""
RUN = ["run", "policy.yaml", "--out", "out", "--cache", "cache", "--quiet"]
ACCEPT = ["baseline", "accept", "out", "--reason", "bench", "--cache", "cache"]
STARTS = {
    "--help": (CALL, ["--help"]),
    "check": (CALL, ["check", "policy.yaml"]),
    "stored gate": (CALL, RUN),
    "first tokens": (TOKENS, []),
}
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("other", type=Path, metavar="OTHER")
parser.add_argument("--rounds", type=int, default=15)
OPTIONS = parser.parse_args()
TREES = [Path(__file__).parents[2], OPTIONS.other.resolve()]
WRITES = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def start(tree: Path, place: Path, code: str, arguments: list[str]) -> tuple[float, float]:
    """Processor and wall time of one start, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, str(tree), *arguments],
        cwd=place,
        env=WRITES,
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - began


with tempfile.TemporaryDirectory() as folder:
    places = []
    for number, tree in enumerate(TREES):
        compileall.compile_dir(tree / "fairgate", quiet=2)
        places.append(Path(folder, str(number)))
        places[-1].mkdir()
        (places[-1] / "policy.yaml").write_text(POLICY)
        for arguments in (RUN, ACCEPT, RUN):
            start(tree, places[-1], CALL, arguments)
    for name, (code, arguments) in STARTS.items():
        times: list[list[tuple[float, float]]] = [[], []]
        for turn in range(OPTIONS.rounds + 1):
            for which in (0, 1) if turn % 2 else (1, 0):
                found = start(TREES[which], places[which], code, arguments)
                if turn:  # the first fills the disk's cache
                    times[which].append(found)
        for kind, label in enumerate(("processor", "wall")):
            here, there = ([each[kind] for each in one] for one in times)
            ratio = statistics.median(b / a for a, b in zip(here, there, strict=True))
            print(
                f"{name:13} {label:9} here {statistics.median(here):.3f} s, "
                f"other {statistics.median(there):.3f} s, other/here {ratio:.2f}"
            )
