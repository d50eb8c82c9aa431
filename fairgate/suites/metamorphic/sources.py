"""A table file as source test cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fairgate.domain.attributes import AttributeUse, Dimension
from fairgate.domain.cases import Source
from fairgate.domain.corpora import CorpusSpec
from fairgate.domain.errors import DataError
from fairgate.io.lines import capped, checked_text
from fairgate.io.tables import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    Row,
    choose_column,
    columns_offered,
    identifier,
    read_rows,
    table_columns,
)
from fairgate.suites.metamorphic.case_rows import is_header, stated_attributes
from fairgate.suites.metamorphic.written_pairs import PAIR_COLUMNS, written_pair

Dimensions = Callable[[], Mapping[str, Dimension]]

_TEXT_COLUMNS = (*TEXT_COLUMNS, "input", "sentence", "prompt")
_ID_COLUMNS = (*ID_COLUMNS, "inputID", "input_id", "source_id")


def read_source_files(
    paths: Sequence[str], spec: CorpusSpec, limit: int | None = None
) -> list[Source]:
    """Return the sources of several files, one after the other; ids are unique in all of them."""
    if not paths:
        raise DataError(f"{spec.path}: the folder holds no .jsonl file; expected one at least")
    sources: list[Source] = []
    first: dict[str, str] = {}
    for path in paths:
        for source in read_sources(replace(spec, path=path)):
            if source.id in first:
                raise DataError(
                    f"{path}: source id {capped(source.id)} is in {first[source.id]} already; "
                    "expected unique ids: rename one of the two"
                )
            first[source.id] = path
            sources.append(source)
    return sources if limit is None else sources[:limit]


def read_sources(
    spec: CorpusSpec, limit: int | None = None, dimensions: Dimensions = dict
) -> list[Source]:
    """Return the sources of a CSV, TSV, JSONL or Parquet file, in file order, at most `limit`.

    Texts stay exactly as they are: quotes, line ends and trailing blanks included. Without an id
    column ids are the rows' numbers from 1. Rows of generated cases keep their attributes, which
    `dimensions` gives by name; the header of such a file is skipped. Rows with a `relation` bring
    the follow-up that was written for them (`written_pairs.py`). Raises DataError for a missing
    column, a repeated id (naming both lines), an empty text, and a file without sources.
    """
    path = spec.path
    names = table_columns(path)
    text_column = _text_column(spec, names)
    id_column = choose_column(path, names, spec.id, _ID_COLUMNS)
    sources: list[Source] = []
    lines: dict[str, int] = {}
    known: Mapping[str, Dimension] | None = None
    wanted = [name for name in (id_column, text_column) if name is not None]
    paired = [name for name in PAIR_COLUMNS if name in names] if "relation" in names else []
    for row in read_rows(path, [*wanted, *paired]):
        if limit is not None and len(sources) == limit:
            break
        if row.number == 1 and is_header(row.values, path):
            known = dimensions()
            continue
        place = f"{path}:{row.line}"
        id_ = str(row.number)
        if id_column is not None:
            id_ = identifier(row.values.get(id_column), place, id_column)
        first = lines.setdefault(id_, row.line)
        if first != row.line:
            raise DataError(
                f"{place}: source id {capped(id_)} was used on line {first} already; expected "
                "unique ids: rename one of the two"
            )
        text = checked_text(row.values.get(text_column), place, text_column)
        if not text.strip():
            raise DataError(f"{place}: source {capped(id_)} has no text; write one or remove it")
        frame, uses = _stated(row, text, place, known) if known is not None else ("", ())
        pair = written_pair({name: row.values.get(name) for name in paired}, place)
        sources.append(Source(id=id_, text=text, frame=frame, attributes=uses, pair=pair))
    if not sources:
        raise DataError(f"{path}: holds no sources; expected at least one row below the header")
    return sources


def _text_column(spec: CorpusSpec, names: Sequence[str]) -> str:
    found = choose_column(spec.path, names, spec.text, _TEXT_COLUMNS)
    if found is None:
        raise DataError(
            f"{spec.path}: no column for the text; expected one of {', '.join(_TEXT_COLUMNS)}: "
            f"name the column with `text`. {columns_offered(names)}"
        )
    return found


def _stated(
    row: Row, text: str, place: str, known: Mapping[str, Dimension]
) -> tuple[str, tuple[AttributeUse, ...]]:
    """Return the attributes in a row of a file of generated cases."""
    try:
        return stated_attributes(row.values, text, known)
    except DataError as error:
        raise DataError(f"{place}: {error}") from error
