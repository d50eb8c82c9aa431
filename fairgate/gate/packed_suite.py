"""A suite as format 3 keeps it: what all cases share in plain JSON, and each source's cases packed.

A case has a number (`Field`) for its content, for each column, for its cluster unless that
is the source, and for each dimension that does not follow from its variant, in this order, columns
and dimensions by name; `pack` says how the numbers stand side by side.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.cases import split_variant
from fairgate.domain.wording import quoted, shown
from fairgate.gate.baseline import BaselineSuite
from fairgate.metrics.metric import Table, is_verdict
from fairgate.stats.observations import Floats, Levels

_VERDICTS = (0.0, 1.0, -1.0)
"""Listed whatever a run decided, so that one verdict more does not move the bits of all others."""
_MOST_LISTED = 63
_HEX = frozenset("0123456789abcdef")
_DIGIT = 4
PackedCodes = npt.NDArray[np.uint64]
CaseCounts = npt.NDArray[np.int64]
MOST_BITS = 64
_GROUP = 24
_BITS_AT_ONCE = 1 << 23
_DIGITS = MOST_BITS // _DIGIT
_MILLION = 1_000_000
_MOST_MILLIONTHS = 1 << 52


class _Order:
    """The rows of a table, source by source, each source's in the order of the variants."""

    def __init__(self, keys: Sequence[str]) -> None:
        sources: dict[str, dict[str, int]] = {}
        for row, key in enumerate(keys):
            stem, variant = split_variant(key)
            sources.setdefault(stem, {})[variant] = row
        # By the first source that has it: rows in this order give the same order again.
        variants = dict.fromkeys(chain.from_iterable(sources.values()))
        places = {variant: position for position, variant in enumerate(variants)}
        cases_of_sources = [
            sorted((places[v], row) for v, row in rows.items()) for rows in sources.values()
        ]
        self.variants, self.sources = list(places), list(sources)
        self.asked = [tuple(position for position, _ in cases) for cases in cases_of_sources]
        self.places = [position for cases in cases_of_sources for position, _ in cases]
        self.rows = [row for cases in cases_of_sources for _, row in cases]
        first = dict(zip(reversed(self.places), reversed(self.rows), strict=True))
        self.first = [first[position] for position in range(len(places))]
        self.counts = np.asarray([len(cases) for cases in cases_of_sources], dtype=np.int64)


def text_length(cases: int, bits: int) -> int:
    """Return how many characters the text of a source has, from the bits of one case."""
    return -(-cases * bits // _GROUP) * 4


def pack(columns: Sequence[PackedCodes], widths: Sequence[int], counts: CaseCounts) -> list[str]:
    """Return a text for each source; `counts` gives the cases of each, which lie side by side.

    A source's text is base64 of its columns one after the other, each with one number a case, the
    highest bit first; zero bits fill it up to whole groups of three bytes.
    """
    starts = np.cumsum(counts) - counts
    texts = [""] * len(counts)
    for sources, cases in _of_equal_length(counts, sum(widths)):
        rows = starts[sources][:, None] + np.arange(cases)
        bits = np.concatenate(
            [_bits(column[rows], width) for column, width in zip(columns, widths, strict=True)],
            axis=1,
        )
        bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % _GROUP)))
        text = binascii.b2a_base64(np.packbits(bits, axis=1).tobytes(), newline=False).decode()
        size = len(text) // len(sources)
        for number, source in enumerate(sources.tolist()):
            texts[source] = text[number * size : (number + 1) * size]
    return texts


def unpack(texts: Sequence[str], widths: Sequence[int], counts: CaseCounts) -> list[PackedCodes]:
    """Return the columns of all cases, source by source.

    The texts must have the length that `text_length` gives, which bounds what is made of them.
    Raises ValueError where one is not base64.
    """
    starts = np.cumsum(counts) - counts
    columns = [np.empty(int(counts.sum()), dtype=np.uint64) for _ in widths]
    for sources, cases in _of_equal_length(counts, sum(widths)):
        joined = "".join(texts[source] for source in sources.tolist())
        raw = np.frombuffer(binascii.a2b_base64(joined, strict_mode=True), dtype=np.uint8)
        bits = np.unpackbits(raw.reshape(len(sources), -1), axis=1)
        rows, end = starts[sources][:, None] + np.arange(cases), 0
        for column, width in zip(columns, widths, strict=True):
            begin, end = end, end + width * cases
            column[rows] = _numbers(bits[:, begin:end], width)
    return columns


def _of_equal_length(counts: CaseCounts, bits: int) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """Yield sources with equally many cases, as many as are handled at once, and that number."""
    order = np.argsort(counts, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
        cases = int(counts[group[0]]) if len(group) else 0
        if cases:
            step = max(1, _BITS_AT_ONCE // (cases * bits))
            for start in range(0, len(group), step):
                yield group[start : start + step], cases


def _bits(numbers: PackedCodes, width: int) -> npt.NDArray[np.uint8]:
    """Return the lowest `width` bits of a matrix's numbers, row by row."""
    octets = -(-width // 8)
    octets_of_numbers = (
        numbers.astype(">u8").view(np.uint8).reshape(*numbers.shape, 8)[..., 8 - octets :]
    )
    return np.unpackbits(octets_of_numbers, axis=2)[..., 8 * octets - width :].reshape(
        len(numbers), -1
    )


def _numbers(bits: npt.NDArray[np.uint8], width: int) -> PackedCodes:
    """Return the matrix of numbers whose bits the rows hold."""
    octets = -(-width // 8)
    rows = bits.reshape(len(bits), -1, width)
    whole = np.zeros((*rows.shape[:2], 8), dtype=np.uint8)
    whole[..., 8 - octets :] = np.packbits(
        np.pad(rows, ((0, 0), (0, 0), (8 * octets - width, 0))), axis=2
    )
    return whole.view(">u8")[..., 0].astype(np.uint64)


@dataclass(frozen=True, slots=True)
class PackedField:
    """One number of every case: how wide it is, and the values that it counts, if it does.

    Where it lists values, number n is the n-th of them, and 0 is none (not decided); else a content
    is a hexadecimal number, and n is n - 1 millionths in a column, counted from the `least` one.
    """

    bits: int
    values: Sequence[Any] | None = None
    least: int = 0
    """The least value in millionths where it is below 0."""

    def __post_init__(self) -> None:
        """Raise ValueError where a file says something else."""
        listed = self.values is None or isinstance(self.values, list | tuple)
        if type(self.bits) is not int or not 1 <= self.bits <= MOST_BITS or not listed:
            raise ValueError(
                f"a field is {shown(self.bits)} bits wide, values {shown(self.values)}; expected "
                f"1 to {MOST_BITS} and a list"
            )
        if type(self.least) is not int or not -_MOST_MILLIONTHS < self.least <= 0:
            raise ValueError(
                f"a field begins at {shown(self.least)} millionths; expected a whole number to 0"
            )

    def described(self) -> dict[str, Any]:
        """Return the field's description in the file."""
        listed = {} if self.values is None else {"values": [*self.values]}
        return {"bits": self.bits} | listed | ({"least": self.least} if self.least else {})

    def listed(self, codes: PackedCodes, name: str, least: int = 1) -> Sequence[Any]:
        """Return the values, having made sure that all numbers are among them."""
        values = self.values if self.values is not None else ()
        wrong = codes[(codes < least) | (codes > len(values))]
        if len(wrong):
            raise ValueError(f"{name} has number {int(wrong[0])} of {len(values)} values")
        return values


def field_of_texts(texts: Sequence[str]) -> tuple[PackedField, PackedCodes]:
    """Return the numbers of texts, from 1 in the order in which they first come."""
    levels = Levels.of(texts)
    numbers = {text: number for number, text in enumerate(levels.first_rows(), 1)}
    places = np.asarray([numbers.get(name, 0) for name in levels.names], dtype=np.uint64)
    return PackedField(max(1, len(numbers).bit_length()), list(numbers)), places[levels.codes]


def field_of_contents(contents: Sequence[str]) -> tuple[PackedField, PackedCodes]:
    """Return hashes as the numbers that they are; other texts are listed."""
    digits = len(contents[0]) if contents else 1
    hashes = 0 < digits <= _DIGITS and all(len(content) == digits for content in contents)
    if not hashes or not _HEX.issuperset("".join(contents)):
        return field_of_texts(contents)
    raw = bytes.fromhex("".join(content.zfill(_DIGITS) for content in contents))
    return PackedField(_DIGIT * digits), np.frombuffer(raw, dtype=">u8").astype(np.uint64)


def field_of_numbers(column: Floats) -> tuple[PackedField, PackedCodes]:
    """Return a column's numbers: of few values, else of millionths where all are such."""
    decided = ~np.isnan(column)
    decided_values = column[decided] + 0.0  # no negative zero
    values = np.asarray(_VERDICTS) if is_verdict(column) else np.unique(decided_values)
    codes = np.zeros(len(column), dtype=np.uint64)
    parts = np.rint(decided_values * _MILLION)
    if (
        len(values) > _MOST_LISTED
        and -_MOST_MILLIONTHS < parts.min() <= parts.max() < _MOST_MILLIONTHS
        and np.array_equal(parts / _MILLION, decided_values)
    ):
        least = min(0, int(parts.min()))
        codes[decided] = (parts - least).astype(np.uint64) + np.uint64(1)
        return PackedField(8 * -(-int(codes.max()).bit_length() // 8), least=least), codes
    rising = np.argsort(values)
    codes[decided] = rising[np.searchsorted(values, decided_values, sorter=rising)] + 1
    return PackedField(max(1, len(values).bit_length()), values.tolist()), codes


def contents_of(field: PackedField, codes: PackedCodes) -> list[str]:
    """Return the content of every case. Raises ValueError."""
    if field.values is not None:
        return list(texts_of(field, codes, "content"))
    if field.bits % _DIGIT:
        raise ValueError(f"content is {field.bits} bits wide; expected hexadecimal digits")
    every, digits = codes.astype(">u8").tobytes().hex(), field.bits // _DIGIT
    return [every[end - digits : end] for end in range(_DIGITS, len(every) + 1, _DIGITS)]


def clusters_of(field: PackedField, codes: PackedCodes) -> CaseCounts:
    """Return the cluster of every case as its place among the values. Raises ValueError."""
    values = field.listed(codes, "cluster")
    if len(set(values)) < len(values):
        raise ValueError("cluster lists a name twice")
    return codes.astype(np.int64) - 1


def texts_of(field: PackedField, codes: PackedCodes, name: str) -> Levels:
    """Return the text of every case. Raises ValueError where one has none.

    A file may list a text twice: that is one level.
    """
    return Levels.of(field.listed(codes, name)).taken(codes.astype(np.int64) - 1)


def numbers_of(field: PackedField, codes: PackedCodes, name: str) -> Floats:
    """Return the value of every case, NaN where it has none. Raises ValueError."""
    if field.values is None:
        parts = codes.astype(np.float64) - 1 + field.least
        return np.where(codes == 0, np.nan, parts / _MILLION)
    values = field.listed(codes, name, least=0)
    if not all(type(value) in (int, float) for value in values):
        raise ValueError(f"{name} lists {shown(values)}; expected numbers")
    return np.asarray([np.nan, *values], dtype=np.float64)[codes]


def suite_to(suite: BaselineSuite) -> dict[str, Any]:
    """Return the file's form of a suite: the question of each source, and its cases packed."""
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


def _runs(places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the first and the number of places that follow one another."""
    breaks = [place for place, (a, b) in enumerate(pairwise(places), 1) if b != a + 1]
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
        PackedField(**described)
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
    positions = places.tolist()
    names = [variant[0] for variant in variants]
    stems = chain.from_iterable(map(repeat, sources, counts.tolist()))
    keys = [source + names[position] for source, position in zip(stems, positions, strict=True)]
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
        values={**values, **{k: np.full(len(keys), np.nan) for k in suite["not_evaluated"]}},
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
    sources: Mapping[str, Any], shapes_asked: Sequence[Any], variants: int, bits: int
) -> tuple[CaseCounts, CaseCounts]:
    """Return the variant of every case, and how many cases each source has.

    Every length is checked before anything of it is made: it may be any number.
    """
    counts = [_cases(runs, variants, f"asked[{shape}]") for shape, runs in enumerate(shapes_asked)]
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
    whole = {
        shape: np.concatenate(
            [np.arange(first, first + many) for first, many in shapes_asked[shape]]
        )
        for shape in used
    }
    shapes = [shape for shape, _ in sources.values()]
    return (
        np.concatenate([np.empty(0, dtype=np.int64), *(whole[shape] for shape in shapes)]),
        np.asarray([counts[shape] for shape in shapes], dtype=np.int64),
    )


def _cases(runs: Sequence[Any], variants: int, location: str) -> int:
    """Return how many variants some runs name. Raises ValueError unless they rise and exist."""
    end = total = 0
    for first, count in runs:
        if type(first) is not int or type(count) is not int or first < end or count < 1:
            raise ValueError(f"{location} holds {shown([first, count])}; expected rising variants")
        end, total = first + count, total + count
    if end > variants or not total:
        raise ValueError(f"{location} names {shown(total)} variants of {variants}")
    return total
