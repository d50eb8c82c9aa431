"""A suite as format 3 keeps it: what all cases share in plain JSON, and each source's cases packed.

A case has a number (`packed_fields`) for its content, for each column, for its cluster unless that
is the source, and for each dimension that does not follow from its variant, in this order, columns
and dimensions by name; `packed_numbers` says how the numbers stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from fairgate.domain.keys import split_variant
from fairgate.domain.wording import quoted, shown
from fairgate.gate.baseline import BaselineSuite
from fairgate.gate.packed_fields import (
    Field,
    clusters_of,
    contents_of,
    field_of_contents,
    field_of_numbers,
    field_of_texts,
    numbers_of,
    texts_of,
)
from fairgate.gate.packed_numbers import Counts, pack, text_length, unpack
from fairgate.metrics.table import Table
from fairgate.stats.levels import Levels


class _Order:
    """The rows of a table, source by source, each source's in the order of the variants."""

    def __init__(self, keys: Sequence[str]) -> None:
        sources: dict[str, dict[str, int]] = {}
        for row, key in enumerate(keys):
            stem, variant = split_variant(key)
            sources.setdefault(stem, {})[variant] = row
        # By the first source that has it: rows in this order give the same order again.
        found = dict.fromkeys(chain.from_iterable(sources.values()))
        places = {variant: place for place, variant in enumerate(found)}
        asked = [sorted((places[v], row) for v, row in rows.items()) for rows in sources.values()]
        self.variants, self.sources = list(places), list(sources)
        self.asked = [tuple(place for place, _ in cases) for cases in asked]
        self.places = [place for cases in asked for place, _ in cases]
        self.rows = [row for cases in asked for _, row in cases]
        first = dict(zip(reversed(self.places), reversed(self.rows), strict=True))
        self.first = [first[place] for place in range(len(places))]
        self.counts = np.asarray([len(cases) for cases in asked], dtype=np.int64)


def suite_to(suite: BaselineSuite) -> dict[str, Any]:
    """Return what stands in the file: of each source what it was asked, and its cases packed."""
    table, order = suite.table, _Order(suite.table.keys)
    of_variant, of_source = [], {}
    rows = np.asarray(order.rows, dtype=np.int64)
    first = np.asarray(order.first, dtype=np.int64)[np.asarray(order.places, dtype=np.int64)]
    for name in table.dimensions:
        levels = table.dimension(name)
        if np.array_equal(levels.codes[rows], levels.codes[first]):
            of_variant.append(name)
        else:
            of_source[name] = field_of_texts(levels.taken(rows))
    of_source = dict(sorted(of_source.items()))
    columns = {
        name: field_of_numbers(column[rows])
        for name, column in sorted(table.values.items())
        if name not in table.not_evaluated
    }
    content = field_of_contents([suite.contents[table.keys[row]] for row in order.rows])
    clusters = Levels.of(table.cluster_names).taken(table.clusters[rows])
    numbers = {name: number for number, name in enumerate(clusters.names)}
    sources = [numbers.get(source, -1) for source in order.sources]
    own = np.array_equal(clusters.codes, np.repeat(sources, order.counts))
    cluster = None if own else field_of_texts(clusters)
    packed = [
        content,
        *columns.values(),
        *(() if cluster is None else (cluster,)),
        *of_source.values(),
    ]
    texts = pack([codes for _, codes in packed], [field.bits for field, _ in packed], order.counts)
    shapes = {shape: number for number, shape in enumerate(dict.fromkeys(order.asked))}
    return {
        "must_match": dict(suite.must_match),
        "quartiles": None if suite.quartiles is None else list(suite.quartiles),
        "bands": list(table.bands),
        "not_evaluated": dict(table.not_evaluated),
        "variant_dimensions": of_variant,
        "variants": [
            [variant, bool(table.control[row]), *(table.dimensions[n][row] for n in of_variant)]
            for variant, row in zip(order.variants, order.first, strict=True)
        ],
        "asked": [[*_runs(shape)] for shape in shapes],
        "content": content[0].described(),
        "cluster": None if cluster is None else cluster[0].described(),
        "source_dimensions": {name: field.described() for name, (field, _) in of_source.items()},
        "columns": {name: field.described() for name, (field, _) in columns.items()},
        "sources": {
            source: [shapes[shape], text]
            for source, shape, text in zip(order.sources, order.asked, texts, strict=True)
        },
    }


def _repeated(text: str, times: int) -> list[str]:
    return [text] * times


def _runs(places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the first and the number of places that follow one another."""
    breaks = [at for at, (a, b) in enumerate(pairwise(places), 1) if b != a + 1]
    for start, end in pairwise([0, *breaks, len(places)]):
        yield [places[start], end - start]


def suite_from(suite_id: str, suite: Mapping[str, Any]) -> BaselineSuite:
    """Return a suite of a file, which may hold anything.

    Raises ValueError, TypeError or LookupError where it is none. What is made is bounded by what
    the file holds: a source's text must be as long as the number of its cases asks for.
    """
    variants = suite["variants"]
    of_variant, of_source = suite["variant_dimensions"], sorted(suite["source_dimensions"])
    columns, own = sorted(suite["columns"]), suite["cluster"] is None
    fields = [
        Field(**described)
        for described in (
            suite["content"],
            *(suite["columns"][name] for name in columns),
            *(() if own else (suite["cluster"],)),
            *(suite["source_dimensions"][name] for name in of_source),
        )
    ]
    sources = suite["sources"]
    places, counts = _places(sources, suite["asked"], len(variants), sum(f.bits for f in fields))
    packed = unpack([text for _, text in sources.values()], [f.bits for f in fields], counts)
    read = zip(fields, packed, strict=True)
    contents = contents_of(*next(read))
    values = {name: numbers_of(*next(read), name) for name in columns}
    clusters = np.repeat(np.arange(len(sources)), counts) if own else clusters_of(*next(read))
    at = places.tolist()
    names = [variant[0] for variant in variants]
    stems = chain.from_iterable(map(_repeated, sources, counts.tolist()))
    keys = [source + names[place] for source, place in zip(stems, at, strict=True)]
    table = Table(
        suite=suite_id,
        keys=keys,
        clusters=clusters,
        cluster_names=list(sources) if own else list(fields[1 + len(columns)].values or ()),
        control=np.asarray([variant[1] for variant in variants], dtype=bool)[places],
        dimensions={
            **{
                n: Levels.of([variant[2 + i] for variant in variants]).taken(places)
                for i, n in enumerate(of_variant)
            },
            **{n: texts_of(*next(read), n) for n in of_source},
        },
        values={
            **values,
            **{k: np.full(len(keys), np.nan) for k in suite["not_evaluated"]},
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


def _places(
    sources: Mapping[str, Any], asked: Sequence[Any], variants: int, bits: int
) -> tuple[Counts, Counts]:
    """Return the variant of every case, and how many cases each source has.

    Every length is checked before anything of it is made: it may be any number.
    """
    counts = [_cases(runs, variants, f"asked[{at}]") for at, runs in enumerate(asked)]
    for source, (shape, text) in sources.items():
        if type(shape) is not int or not 0 <= shape < len(counts):
            raise ValueError(
                f"source {quoted(source)} names asked[{shown(shape)}]; there are {len(counts)}"
            )
        if not isinstance(text, str) or len(text) != text_length(counts[shape], bits):
            holds = f"{len(text)} characters" if isinstance(text, str) else shown(text)
            raise ValueError(
                f"source {quoted(source)} holds {holds}; expected "
                f"{text_length(counts[shape], bits)} for {counts[shape]} cases of {bits} bits"
            )
    used = sorted({shape for shape, _ in sources.values()})
    whole = {at: np.concatenate([np.arange(a, a + n) for a, n in asked[at]]) for at in used}
    shapes = [shape for shape, _ in sources.values()]
    return (
        np.concatenate([np.empty(0, dtype=np.int64), *(whole[shape] for shape in shapes)]),
        np.asarray([counts[shape] for shape in shapes], dtype=np.int64),
    )


def _cases(runs: Sequence[Any], variants: int, place: str) -> int:
    """Return how many variants some runs name. Raises ValueError unless they rise and exist."""
    end = total = 0
    for first, count in runs:
        if type(first) is not int or type(count) is not int or first < end or count < 1:
            raise ValueError(f"{place} holds {shown([first, count])}; expected rising variants")
        end, total = first + count, total + count
    if end > variants or not total:
        raise ValueError(f"{place} names {shown(total)} variants of {variants}")
    return total
