"""A suite as format 2 kept it, which is still read: a value of each variant, source by source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairgate.gate.baseline import BaselineSuite
from fairgate.metrics.table import Table

_VALUES = {"0": 0.0, "1": 1.0, "-": -1.0, ".": math.nan}
"""A column of verdicts has one letter a variant; a dot is not decided."""


def suite_from(name: str, suite: Mapping[str, Any]) -> BaselineSuite:
    """Return a suite of a file; ValueError, TypeError or LookupError where it is none."""
    variants = suite["variants"]
    of_variant, of_source = suite["variant_dimensions"], suite["source_dimensions"]
    rows: list[tuple[str, str, int, Mapping[str, Any], str]] = []
    """Key, content, position of the variant, the source's entry, cluster."""
    for source, entry in suite["sources"].items():
        for position, variant in enumerate(variants):
            content = _of_variant(entry["content"], position)
            if content is not None:
                cluster = str(_of_variant(entry["cluster"], position))
                rows.append((source + variant[0], content, position, entry, cluster))
    clusters = list(dict.fromkeys(row[4] for row in rows))
    numbers = {cluster: number for number, cluster in enumerate(clusters)}
    columns = list(dict.fromkeys(name for row in rows for name in row[3]["columns"]))
    table = Table(
        suite=name,
        keys=[row[0] for row in rows],
        clusters=np.asarray([numbers[row[4]] for row in rows], dtype=np.int64),
        cluster_names=clusters,
        control=np.asarray([variants[row[2]][1] for row in rows], dtype=bool),
        dimensions={
            **{n: [variants[row[2]][2 + i] for row in rows] for i, n in enumerate(of_variant)},
            **{
                n: [str(_of_variant(row[3]["dimensions"][i], row[2])) for row in rows]
                for i, n in enumerate(of_source)
            },
        },
        values={
            **{
                n: np.asarray([_cell(row[3]["columns"][n][row[2]]) for row in rows], np.float64)
                for n in columns
            },
            **{k: np.full(len(rows), np.nan) for k in suite["not_evaluated"]},
        },
        not_evaluated=suite["not_evaluated"],
        bands=(suite["bands"][0], suite["bands"][1]),
    )
    quartiles = suite["quartiles"]
    return BaselineSuite(
        must_match=suite["must_match"],
        contents={row[0]: row[1] for row in rows},
        table=table,
        quartiles=None if quartiles is None else (quartiles[0], quartiles[1]),
    )


def _of_variant(value: str | Sequence[str | None], position: int) -> str | None:
    return value if isinstance(value, str) else value[position]


def _cell(value: str | float | None) -> float:
    if isinstance(value, str):
        return _VALUES[value]
    return math.nan if value is None else float(value)
