"""CSV, TSV, JSONL and Parquet files as one stream of rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import listed, nearest
from fairgate.io.text_files import MAX_LINE_BYTES, capped, checked_text, read_lines, unreadable

TEXT_COLUMNS = ("text", "comment_text", "content", "body", "document")
ID_COLUMNS = ("id", "doc_id", "_id")
_OTHER_DELIMITERS = {";": "`;`", "\t": "tabs", "|": "`|`", ",": "commas"}
_PARQUET_BATCH = 1024


class Row(NamedTuple):
    """One record and its place. Values are text in CSV and TSV, JSON values elsewhere."""

    number: int
    """Position among the records, from 1."""
    line: int
    """Line on which the record begins, from 1; in Parquet the record's number."""
    values: Mapping[str, object]


def read_rows(path: str, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a table in file order, streaming; blank lines are skipped.

    `columns` limits what is read where the format can (Parquet). Raises DataError with
    `path:line`, and UsageError for an unknown format or a missing library.
    """
    return _reader(path)(path, columns)


def table_columns(path: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in their order; JSONL: those of all rows.

    A column may begin in any row of JSONL, so the file is read to its end.
    """
    if _suffix(path) in (".parquet", ".pq"):
        table = _parquet_file(path)
        table.close()
        return tuple(table.schema_arrow.names)
    names: dict[str, None] = {}
    if _suffix(path) in _DELIMITERS:
        _, header = next(_csv_records(path), (0, []))
        names = dict.fromkeys(header)
    else:
        for row in _read_jsonl(path, None):
            names.update(dict.fromkeys(row.values))
    if not names:
        raise DataError(f"{path}: is empty; expected a table with at least one row")
    return tuple(names)


def choose_column(
    path: str, columns: Sequence[str], wanted: str | None, defaults: Sequence[str]
) -> str | None:
    """Return the column that the user named, else the first default present, else None."""
    if wanted is None:
        return next((name for name in defaults if name in columns), None)
    if wanted in columns:
        return checked_text(wanted, path, "the header")
    raise DataError(f"{path}: no column {capped(wanted)}; {columns_offered(columns, wanted)}")


def identifier(value: object, place: str, column: str) -> str:
    """Return an id as text: one line, 1 to 256 characters; whole numbers are written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= 256 and value.isprintable():
        return checked_text(value, place, column)
    raise DataError(
        f"{place}: column {column!r} holds {capped(value)} as an id; expected 1 to 256 printable "
        "characters or a whole number"
    )


def columns_offered(columns: Sequence[str], wanted: str = "") -> str:
    """Return the nearest column and the list of all, for a message."""
    if len(columns) == 1:
        between = next((sign for sign in _OTHER_DELIMITERS if sign in columns[0]), None)
        if between is not None:
            return (
                f"The header is one column, {capped(columns[0])}, with "
                f"{_OTHER_DELIMITERS[between]} between its names; expected commas in .csv and tabs "
                "in .tsv: save the table so"
            )
    close = nearest(wanted, columns)
    hint = f"did you mean {listed(close)}? " if close else ""
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    return f"{hint}The columns are {listed(columns[:20], last='and')}{more}"


_Reader = Callable[[str, Sequence[str] | None], Iterator[Row]]
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def _suffix(path: str) -> str:
    return PurePath(path).suffix.lower()


def _reader(path: str) -> _Reader:
    suffix = _suffix(path)
    if suffix in _DELIMITERS:
        return _read_csv
    if suffix in (".jsonl", ".ndjson"):
        return _read_jsonl
    if suffix in (".parquet", ".pq"):
        return _read_parquet
    raise UsageError(
        f"{path}: unknown table format {suffix!r}; expected .csv, .tsv, .jsonl or .parquet"
    )


def _csv_records(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield `(first line, fields)` of every record that is not blank."""
    lines = (line for _, line in read_lines(path))
    reader = csv.reader(lines, delimiter=_DELIMITERS[_suffix(path)], strict=True)
    while True:
        first = reader.line_num + 1
        # The limit is one for the whole process: it is ours only while one record is read.
        previous = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{path}:{first}: broken record ({error}, read up to line {reader.line_num}); "
                "expected quotes in pairs and no bare carriage return: check the quotes here"
            ) from error
        finally:
            csv.field_size_limit(previous)
        if fields is None:
            return
        if fields:
            yield first, fields


def _read_csv(path: str, _columns: Sequence[str] | None) -> Iterator[Row]:
    records = _csv_records(path)
    header_line, header = next(records, (0, []))
    twice = {name for name in header if name and header.count(name) > 1}
    if twice:
        raise DataError(
            f"{path}:{header_line}: column {min(twice)!r} stands twice in the header; "
            "expected different names"
        )
    width = len(header)
    for number, (line, fields) in enumerate(records, 1):
        if len(fields) != width:
            raise DataError(
                f"{path}:{line}: {len(fields)} fields, first {capped(fields[0])}; expected "
                f"{width} as in the header: check delimiters and quotes"
            )
        yield Row(number, line, dict(zip(header, fields, strict=True)))


def _read_jsonl(path: str, _columns: Sequence[str] | None) -> Iterator[Row]:
    return (Row(n, line, record) for n, (line, record) in enumerate(read_json_objects(path), 1))


_read = partial(read_json, strict=False)


def read_json_objects(
    path: str, read: Callable[[str], Any] = _read
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield `(line, object)` of a JSON Lines file; blank lines are skipped.

    `read` returns the value of a line, or raises JsonError.
    """
    for line, text in read_lines(path):
        record = json_object(text, path, line, read)
        if record is not None:
            yield line, record


def json_object(
    text: str, path: str, line: int, read: Callable[[str], Any] = _read
) -> dict[str, Any] | None:
    """Return the object of a line with its line end; None where it is blank. Raises DataError."""
    if text.isspace():
        return None
    text = text.rstrip("\r\n")  # else the error is said to be on a next line
    try:
        record = read(text)
    except JsonError as error:
        place = f"{path}:{line}:{error.column}" if error.column else f"{path}:{line}"
        begin = max(0, error.column - 16)
        near = f", near {capped(text[begin : begin + 30])}" if error.column else ""
        raise DataError(f"{place}: {error}{near}; expected one JSON object a line") from error
    if not isinstance(record, dict):
        raise DataError(
            f"{path}:{line}: {capped(record)}; expected a JSON object such as "
            '{"id": "1", "text": "…"}'
        )
    return record


def _parquet_file(path: str) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            f"{path}: Parquet needs pyarrow, which is not installed: "
            "pip install 'fairgate[parquet]'"
        ) from error
    try:
        return parquet.ParquetFile(path)
    except pa.ArrowException as error:
        raise DataError(f"{path}: no readable Parquet file ({capped(str(error), 120)})") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _read_parquet(path: str, columns: Sequence[str] | None) -> Iterator[Row]:
    import pyarrow as pa

    table = _parquet_file(path)
    number = 0
    try:
        wanted = None if columns is None else list(columns)
        for batch in table.iter_batches(batch_size=_PARQUET_BATCH, columns=wanted):
            for values in batch.to_pylist():
                number += 1
                yield Row(number, number, values)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise DataError(
            f"{path}:{number + 1}: the Parquet file is damaged after row {number} "
            f"({capped(str(error), 120)}); make it again"
        ) from error
    finally:
        table.close()
