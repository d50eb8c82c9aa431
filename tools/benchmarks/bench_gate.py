"""Time and memory of the gate by number of pairs: plan, judging, statistics, verdict.

PYTHONPATH=tests python tools/benchmarks/bench_gate.py --pairs 10000 100000 1000000

The answers are those of a planted system and are known beforehand, so that only the gate is timed.
Every size runs in a process of its own, whose peak memory is printed.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import time
from dataclasses import replace

from fakes.planted import GATES, Bench, Plant, policy_of

from fairgate.domain.ports import SILENT
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import References
from fairgate.gate.gate import run_gate
from fairgate.systems.recorded import RecordedSystem

PAIRS_OF_A_SOURCE = 30


class Known:
    """Answers by suite and key."""

    def __init__(self, executions) -> None:
        self._executions = executions

    def answer(self, case):
        return self._executions.get((case.suite, case.key))


def measure(pairs: int) -> str:
    """Compare a run of so many pairs with a baseline of as many, and say what it took."""
    sources = max(1, pairs // PAIRS_OF_A_SOURCE)
    bench = Bench(policy=policy_of(GATES, attribution="off"), sources=sources)
    start = time.perf_counter()
    given = bench.given()
    planned = time.perf_counter() - start
    plant = Plant(sensitive=0.2, biased={"A Black person": 0.4}, neutral_retrieval=0.3)
    system = bench.system(plant)
    executions = Known(system.execute(given.plan.cases, SILENT))
    known = RecordedSystem(lambda: executions, lambda: None)
    known.vectors = system.vectors
    base = baseline_of(run_gate(given, known, SILENT), reason="bench", date="")
    start = time.perf_counter()
    run = run_gate(replace(given, references=References(baseline=base)), known, SILENT)
    gated = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = len(run.result.assessed)
    return (
        f"{count:>9,} pairs  plan {planned:7.2f} s  gate {gated:8.2f} s  "
        f"{1e6 * gated / count:6.1f} us a pair  peak {peak:7.0f} MB  {run.result.outcome.value}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[3_000, 30_000, 300_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    gc.set_threshold(500_000)  # as the command line does
    if options.one:
        print(measure(options.one), flush=True)
        return
    for pairs in options.pairs:
        subprocess.run([sys.executable, __file__, "--one", str(pairs)], check=True)


if __name__ == "__main__":
    main()
