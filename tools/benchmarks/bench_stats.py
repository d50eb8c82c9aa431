"""Time and memory of the statistics by number of pairs; 21 pairs a source.

    python tools/benchmarks/bench_stats.py

Each size runs in a process of its own, so that peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from fairgate.stats.bootstrap import BootstrapSettings, bootstrap_many
from fairgate.stats.observations import Observations, cluster_totals, pair_by_key
from fairgate.stats.regression import RegressionSettings, prepare_regression
from fairgate.stats.scan import nodes_of, scan

TERMS, CONTROLS = 21, 20
SIZES = (2_100, 21_000, 105_000, 210_000, 420_000, 1_050_000)


def observed(sources: int, seed: int, *, real: bool) -> Observations:
    rng = np.random.default_rng(seed)
    rate = rng.beta(0.3, 0.7, (sources, 1))
    verdicts = (rng.random((sources, TERMS)) < rate).astype(np.float64)
    values = verdicts + rng.random(verdicts.shape) if real else verdicts
    return Observations(
        keys=[f"s{s}#race/t{t}" for s in range(sources) for t in range(TERMS)],
        clusters=np.repeat(np.arange(sources), TERMS),
        arms=np.zeros(sources * TERMS, dtype=np.int8),
        values=values.reshape(-1),
        weights=(1.0,),
        n_clusters=sources,
    )


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return round(time.perf_counter() - start, 3)


def compare(now: Observations, base: Observations) -> None:
    prepared = prepare_regression(
        pair_by_key(now, base), RegressionSettings(), np.random.default_rng(0)
    )
    prepared.at_level(0.05)


def one_size(pairs: int) -> None:
    sources = pairs // TERMS
    now, base = observed(sources, 1, real=False), observed(sources, 2, real=False)
    scores, old = observed(sources, 1, real=True), observed(sources, 2, real=True)
    controls = np.random.default_rng(3).random((sources, CONTROLS)) < 0.3
    columns = {"changed": np.hstack([now.values.reshape(sources, TERMS), controls])}
    nodes = nodes_of({"race": [f"race/t{number}" for number in range(TERMS)]})
    settings = BootstrapSettings()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {
        "interval": timed(lambda: bootstrap_many([cluster_totals(now)], settings, seed=1)),
        "regression of verdicts": timed(lambda: compare(now, base)),
        "regression of scores": timed(lambda: compare(scores, old)),
        "scan": timed(lambda: scan(columns, nodes, identities=TERMS).among()),
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"times": times, "before": before >> 10, "peak": peak >> 10}))


def many_slices() -> None:
    slices = [cluster_totals(observed(100, seed, real=False)) for seed in range(250)]
    bootstrap_many(slices[:1], BootstrapSettings(), seed=1)
    seconds = timed(lambda: bootstrap_many(slices, BootstrapSettings(), seed=1))
    print(f"250 intervals of 100 sources, 2000 resamples: {seconds:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    one = parser.parse_args().one
    if one:
        one_size(one)
        return
    many_slices()
    for size in SIZES:
        command = [sys.executable, __file__, "--one", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        shown = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found["times"].items())
        print(f"{size:>9,} pairs: {shown}; peak {found['peak']} MB (data {found['before']} MB)")


if __name__ == "__main__":
    main()
