"""A suite as a baseline's file keeps it: what its sources share once, and each source's cases.

A case's key is its source and a variant (`#…`, `@…`). What follows from the variant alone is
written with the variants. Of a source the file has which variants it was asked (the number of one
of the suite's lists of them), the contents of these cases, their cluster, each column (null where
undecided) and each other dimension: a list in the order of the cases, or one value that all have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairgate.domain.cases import split_variant
from fairgate.domain.wording import quoted
from fairgate.gate.baseline import BaselineSuite
from fairgate.metrics.metric import Table
from fairgate.stats.observations import Floats


def suite_to(suite: BaselineSuite) -> dict[str, Any]:
    """Return the file's form of a suite."""
    table = suite.table
    sources: dict[str, dict[str, int]] = {}
    first: dict[str, int] = {}
    for row, key in enumerate(table.keys):
        source, variant = split_variant(key)
        sources.setdefault(source, {})[variant] = row
    for rows in sources.values():
        for variant, row in rows.items():
            first.setdefault(variant, row)
    dimensions = {name: list(levels) for name, levels in sorted(table.dimensions.items())}
    of_variant = [
        name
        for name, levels in dimensions.items()
        if all(levels[r] == levels[first[v]] for rows in sources.values() for v, r in rows.items())
    ]
    of_source = [name for name in dimensions if name not in of_variant]
    columns = {
        name: _numbers(column)
        for name, column in sorted(table.values.items())
        if name not in table.not_evaluated
    }
    places = {variant: place for place, variant in enumerate(first)}
    shapes: dict[tuple[int, ...], int] = {}
    cells: dict[str, Any] = {}
    for source, rows in sources.items():
        cases = sorted((places[variant], row) for variant, row in rows.items())
        own = [row for _, row in cases]
        clusters = [table.cluster_names[number] for number in table.clusters[own].tolist()]
        cells[source] = [
            shapes.setdefault(tuple(place for place, _ in cases), len(shapes)),
            " ".join(suite.contents[table.keys[row]] for row in own),
            None if {*clusters} == {source} else _once(clusters),
            *(_once([values[row] for row in own]) for values in columns.values()),
            *(_once([dimensions[name][row] for row in own]) for name in of_source),
        ]
    return {
        "must_match": dict(suite.must_match),
        "quartiles": None if suite.quartiles is None else list(suite.quartiles),
        "bands": list(table.bands),
        "not_evaluated": dict(table.not_evaluated),
        "variant_dimensions": of_variant,
        "variants": [
            [variant, bool(table.control[row]), *(dimensions[name][row] for name in of_variant)]
            for variant, row in first.items()
        ],
        "asked": [list(shape) for shape in shapes],
        "columns": list(columns),
        "source_dimensions": of_source,
        "sources": cells,
    }


def _numbers(column: Floats) -> list[float | int | None]:
    """Return values as the file has them: whole ones without a point, undecided ones as null."""
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in column.tolist()
    ]


def _once(values: Sequence[Any]) -> Any:
    """Return the values of a source's cases; one where all are the same."""
    return values[0] if all(value == values[0] for value in values) else list(values)


def _of_cases(cells: Any, count: int) -> list[Any]:
    """Return the value of each of so many cases. Raises ValueError for another number."""
    values = cells if isinstance(cells, list) else [cells] * count
    if len(values) != count:
        raise ValueError(f"{len(values)} values for {count} cases")
    return values


def suite_from(suite_id: str, suite: Mapping[str, Any]) -> BaselineSuite:
    """Return a suite of a file, which may hold anything.

    Raises ValueError, TypeError or LookupError where it is none. What is made is bounded by what
    the file holds: every case has a content of its own.
    """
    variants, of_variant = suite["variants"], suite["variant_dimensions"]
    keys, contents, asked, clusters = list[str](), list[str](), list[int](), list[Any]()
    columns: dict[str, list[Any]] = {name: [] for name in suite["columns"]}
    of_source: dict[str, list[Any]] = {name: [] for name in suite["source_dimensions"]}
    for source, (shape, content, cluster, *cells) in suite["sources"].items():
        places, own = suite["asked"][shape], content.split(" ")
        if len(places) != len(own):
            raise ValueError(
                f"source {quoted(source)} has {len(own)} contents for {len(places)} cases"
            )
        keys += [source + variants[place][0] for place in places]
        contents += own
        asked += places
        clusters += _of_cases(source if cluster is None else cluster, len(places))
        several = (*columns.values(), *of_source.values())
        for of_all, of_own in zip(several, cells, strict=True):
            of_all.extend(_of_cases(of_own, len(places)))
    names = list(dict.fromkeys(clusters))
    numbers = {name: number for number, name in enumerate(names)}
    undecided = {name: [None] * len(keys) for name in suite["not_evaluated"]}
    table = Table(
        suite=suite_id,
        keys=keys,
        clusters=np.asarray([numbers[name] for name in clusters], dtype=np.int64),
        cluster_names=names,
        control=np.asarray([variants[place][1] for place in asked], dtype=bool),
        dimensions={
            **{
                name: [variants[place][2 + n] for place in asked]
                for n, name in enumerate(of_variant)
            },
            **of_source,
        },
        values={
            name: np.asarray(
                [math.nan if value is None else float(value) for value in values], np.float64
            )
            for name, values in {**columns, **undecided}.items()
        },
        not_evaluated=suite["not_evaluated"],
        bands=(suite["bands"][0], suite["bands"][1]),
    )
    quartiles = suite["quartiles"]
    return BaselineSuite(
        must_match=suite["must_match"],
        contents=dict(zip(keys, contents, strict=True)),
        table=table,
        quartiles=None if quartiles is None else (quartiles[0], quartiles[1]),
    )
