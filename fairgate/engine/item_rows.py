"""Tables of question items as the plain values that a baseline keeps, and back.

One entry an item, with a letter a column for each way it was asked: s (1), u (0), c (-1), or a dot
where nothing was decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairgate.metrics.table import CHOICE_COLUMNS, Table

KIND = "items"
_LETTERS = {1.0: "s", 0.0: "u", -1.0: "c"}
_VALUES = {"s": 1.0, "u": 0.0, "c": -1.0, ".": math.nan}
_WAYS = ("setting", "retriever", "k", "instruction")
_OF_ITEM = ("category", "condition", "alignment")


def is_item_table(table: Table) -> bool:
    """Return whether a table holds question items."""
    return "setting" in table.dimensions


def item_rows(table: Table, contents: Mapping[str, str]) -> dict[str, Any]:
    """Return `variants` (the ways items were asked) and `sources` (what came of each item)."""
    ways: dict[str, list[str]] = {}
    items: dict[str, dict[str, int]] = {}
    for row, key in enumerate(table.keys):
        item, _, way = key.partition("@")
        ways.setdefault(way, [way, *(table.dimensions[name][row] for name in _WAYS)])
        items.setdefault(item, {})[way] = row
    return {
        "kind": KIND,
        "variants": list(ways.values()),
        "sources": {
            item: _entry(table, contents, [rows.get(way) for way in ways])
            for item, rows in items.items()
        },
    }


def _entry(table: Table, contents: Mapping[str, str], rows: Sequence[int | None]) -> dict[str, Any]:
    first = next(row for row in rows if row is not None)
    entry: dict[str, Any] = {
        "cluster": table.cluster_names[table.clusters[first]],
        "content": contents[table.keys[first]],
        **{name: table.dimensions[name][first] for name in _OF_ITEM},
        "asked": "".join("-" if row is None else "x" for row in rows),
    }
    for name, column in table.values.items():
        if name in table.not_evaluated:
            continue
        numbers = [math.nan if row is None else float(column[row]) for row in rows]
        if name in CHOICE_COLUMNS:
            entry[name] = "".join(_LETTERS.get(number, ".") for number in numbers)
        else:
            entry[name] = [None if math.isnan(number) else number for number in numbers]
    return entry


def table_of_rows(name: str, suite: Mapping[str, Any]) -> tuple[Table, dict[str, str]]:
    """Return the table and the contents that `item_rows` gave. Raises KeyError, ValueError."""
    variants = suite["variants"]
    keys: list[str] = []
    contents: dict[str, str] = {}
    clusters: list[str] = []
    dimensions: dict[str, list[str]] = {dimension: [] for dimension in (*_OF_ITEM, *_WAYS)}
    columns: dict[str, list[float]] = {}
    for item, entry in suite["sources"].items():
        for place, (variant, asked) in enumerate(zip(variants, entry["asked"], strict=True)):
            if asked != "x":
                continue
            key = f"{item}@{variant[0]}" if variant[0] else item
            keys.append(key)
            contents[key] = entry["content"]
            clusters.append(entry["cluster"])
            for dimension in _OF_ITEM:
                dimensions[dimension].append(entry[dimension])
            for dimension, level in zip(_WAYS, variant[1:], strict=True):
                dimensions[dimension].append(level)
            for column, cells in entry.items():
                if column not in (*_OF_ITEM, "cluster", "content", "asked"):
                    columns.setdefault(column, []).append(_cell(cells[place]))
    names = list(dict.fromkeys(clusters))
    numbers = {cluster: number for number, cluster in enumerate(names)}
    table = Table(
        suite=name,
        keys=keys,
        clusters=np.asarray([numbers[cluster] for cluster in clusters], dtype=np.int64),
        cluster_names=names,
        control=np.zeros(len(keys), dtype=bool),
        dimensions=dimensions,
        values={
            **{k: np.asarray(v, dtype=np.float64) for k, v in columns.items()},
            **{k: np.full(len(keys), np.nan) for k in suite["not_evaluated"]},
        },
        not_evaluated=suite["not_evaluated"],
    )
    return table, contents


def _cell(value: str | float | None) -> float:
    if isinstance(value, str):
        return _VALUES[value]
    return math.nan if value is None else float(value)
