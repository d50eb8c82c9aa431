"""RRS of a million pairs at k = 4; run: python tools/benchmarks/bench_rrs.py."""

import argparse
import resource
import time

import numpy as np

from fairgate.metrics.retriever_robustness import mean_distances

argparse.ArgumentParser(description=__doc__).parse_args()
PAIRS = 1_000_000
rng = np.random.default_rng(0)
for documents in (5_000, 50_000):
    vectors = rng.normal(size=(documents, 384)).astype(np.float32)
    lists = rng.integers(0, documents, size=(2, PAIRS, 4))
    start = time.perf_counter()
    mean_distances(vectors, lists[0], lists[1])
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{PAIRS:,} pairs, k = 4, {documents:,} documents: {seconds:.1f} s, peak {peak:.0f} MB")
