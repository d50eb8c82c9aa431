"""Time and memory of the dense index by number of documents, vectors of a scripted embedder.

Run: python tools/benchmarks/bench_index.py --documents 10000 100000 1000000 [--queries 2048]
     python tools/benchmarks/bench_index.py --documents 4000 --model minilm

Each step is a process of its own, so that its peak of memory is its own: the index is built from
nothing, the queries are searched in the index on disk, and the index is built again after every
hundredth document has changed. Documents come from a JSONL file, vectors of 384 numbers from the
text's hash, so that only the index costs; with `--model minilm` the encoder's. Prints what the
change costs of a build from nothing, the bytes on disk of one index, and of both with the store
(which has the vectors of up to 40,000 documents), and the exponents between the sizes: 1 is linear.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

DIMENSIONS = 384
WORDS = ("harbour", "ticket", "garden", "letter", "window", "market", "bridge", "winter")


class ScriptedEmbedder:
    """Unit vectors that follow from the text's hash; counts the texts that it was asked for."""

    fingerprint = "bench"

    def __init__(self) -> None:
        self.asked = 0
        self._pool = np.random.default_rng(1).standard_normal((8192, DIMENSIONS), dtype=np.float32)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += len(texts)
        hashes = np.array([zlib.crc32(text.encode()) for text in texts], dtype=np.uint32)
        rows = self._pool[hashes & 8191] + self._pool[(hashes >> 13) & 8191]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def text_of(number: int, version: int = 0) -> str:
    words = " ".join(WORDS[(number >> shift) % 8] for shift in (0, 3, 6, 9, 12, 15))
    return f"document {number} of version {version} about the {words} and what came of it later"


def write_corpus(path: Path, documents: int, *, changed: bool) -> None:
    with path.open("w") as file:
        for number in range(documents):
            version = int(changed and number % 100 == 50)
            record = {"id": f"doc-{number}", "text": text_of(number, version), "label": "toxic"}
            file.write(json.dumps(record) + "\n")


def counted(model: str) -> ScriptedEmbedder:
    """Return an embedder that counts what it is asked for."""
    if model == "scripted":
        return ScriptedEmbedder()
    from fairgate.io.named_files import find
    from fairgate.onnx.encoder import OnnxEncoder
    from fairgate.onnx.encoder_settings import NO_PROMPTS

    encoder = OnnxEncoder(find("models", model, Path()), choice=NO_PROMPTS)

    class Counting(ScriptedEmbedder):
        fingerprint = encoder.fingerprint

        def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            self.asked += len(texts)
            return encoder.embed(texts)

    return Counting()


def step(name: str, place: Path, queries: int, model: str) -> None:
    """Do one step in this process; print what it took as JSON."""
    from fairgate.domain.executions import CorpusSpec
    from fairgate.retrieval.corpus import CorpusFile
    from fairgate.retrieval.embedding_cache import CachedEmbedder
    from fairgate.retrieval.flat_index import FlatIndex
    from fairgate.systems.result_store import SqliteResultStore

    corpus = CorpusFile(CorpusSpec(path=str(place / name.partition("-")[2])))
    embedder = counted(model)
    store = SqliteResultStore(place / "store.sqlite")
    index = FlatIndex(corpus, CachedEmbedder(embedder, store), cache_dir=place)
    start, used = time.perf_counter(), os.times()
    if name.startswith("search"):
        index.retrieve([text_of(7 * number, 2) for number in range(queries)], 4)
    else:
        assert index.size
    store.close()
    now = os.times()
    seconds = time.perf_counter() - start
    busy = now.user + now.system - used.user - used.system
    print(json.dumps({"wall": seconds, "busy": busy, "embedded": embedder.asked}))


def run_step(name: str, place: Path, queries: int, model: str) -> tuple[float, float]:
    """Return processor seconds and peak MiB of a step."""
    command = [sys.executable, __file__, "--step", name, "--place", str(place)]
    process = subprocess.Popen(
        [*command, "--queries", str(queries), "--model", model], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    found = json.loads(process.stdout.read() or "null")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} ended with exit code {process.returncode}")
    peak = used.ru_maxrss / 1024
    print(
        f"  {name:<18}{found['wall']:8.2f} s wall {found['busy']:8.2f} s busy   peak {peak:6.0f} "
        f"MiB   embedded {found['embedded']:,}",
        flush=True,
    )
    return found["busy"], peak


def measure(
    place: Path, documents: int, queries: int, model: str
) -> dict[str, tuple[float, float]]:
    place.mkdir(parents=True, exist_ok=True)
    for name in ("first.jsonl", "changed.jsonl"):
        write_corpus(place / name, documents, changed=name == "changed.jsonl")
    print(f"{documents:,} documents", flush=True)
    steps = ("build-first.jsonl", "search-first.jsonl", "build-changed.jsonl")
    found = {name: run_step(name, place, queries, model) for name in steps}
    share = found["build-changed.jsonl"][0] / found["build-first.jsonl"][0]
    print(f"  a change of 1 % costs {100 * share:.1f} % of a build from nothing", flush=True)
    disk = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    corpora = sum((place / name).stat().st_size for name in ("first.jsonl", "changed.jsonl"))
    newest = max((place / "indexes").iterdir(), key=lambda folder: folder.stat().st_mtime)
    one = sum(path.stat().st_size for path in newest.rglob("*") if path.is_file())
    print(
        f"  on disk {one / 1e6:,.1f} MB of one index; {(disk - corpora) / 1e6:,.1f} MB of both "
        "indexes and the store of vectors",
        flush=True,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=2048)
    parser.add_argument("--model", default="scripted", help="`minilm`: the embedded encoder")
    parser.add_argument("--keep", type=Path, help="folder that is left, to look at it")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(options.step, options.place, options.queries, options.model)
        return
    with tempfile.TemporaryDirectory() as folder:
        root = options.keep or Path(folder)
        found = [
            (size, measure(root / str(size), size, options.queries, options.model))
            for size in options.documents
        ]
    for (few, before), (many, after) in itertools.pairwise(found):
        for name, (busy, peak) in before.items():
            steps = math.log(many / few)
            print(
                f"{few:,} to {many:,}: {name:<18} exponent of time "
                f"{math.log(after[name][0] / busy) / steps:.2f}, of memory "
                f"{math.log(after[name][1] / peak) / steps:.2f}"
            )


if __name__ == "__main__":
    main()
