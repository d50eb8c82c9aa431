"""Files of text read strictly: tables (CSV, TSV, JSON, Parquet) as rows, lines, JSON objects.

Every fault is told with its place.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import functools
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import harmless, listed, nearest
from fairgate.io.regular import IrregularFileError, opened
from fairgate.io.stand_ins import BEGINNING, stand_in

TEXT_COLUMNS = ("text", "comment_text", "content", "body", "document")
ID_COLUMNS = ("id", "doc_id", "_id")
_OTHER_DELIMITERS = {";": "`;`", "\t": "tabs", "|": "`|`", ",": "commas"}
_PARQUET_BATCH = 1024
_MOST_EXPANSION = 100
"""Texts become a twentieth of their size; a file of few bytes could fill any memory."""
_PARQUET = (".parquet", ".pq")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
_ROWS = (*_DELIMITERS, *_JSON[:-1], *_PARQUET)
"""Formats of a row each; a .json file is one array."""
_DIRECTIVE = re.compile(r'"?sep=(.)"?[,;\t]*\r?\n?')
"""First line of tables that Excel is to open: it names the delimiter."""
_BEFORE_ENTRY = re.compile(r"\s*[\[,]\s*(?!\])")
_SCANNER = json.JSONDecoder()
_EXPECTED = 'expected a JSON object such as {"id": "1", "text": "…"}'
MAX_LINE_BYTES = 8 * 2**20
MAX_TEXT_CHARACTERS = 2**20
_NO_LIST = frozenset(["", "none", "null", "nan", "na", "<na>"])
_LIKE_A_LIST = re.compile(
    r"""\[|\{|\(\s*["'\[(]|[\w.]{0,20}\b(?:array|tuple|set|frozenset|deque|list|Index|Series)\("""
)
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{2,6}|#x[0-9a-fA-F]{2,6});")
_ESCAPE = re.compile(r"_x[0-9A-Fa-f]{4}_")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]{2,}")
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
MOST_BYTES = 256 << 20


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
    suffix = PurePath(path).suffix.lower()
    if suffix in _DELIMITERS:
        return _read_csv(path)
    if suffix in _JSON:
        return (Row(n, line, row) for n, (line, row) in enumerate(read_json_objects(path), 1))
    if suffix in _PARQUET:
        return _read_parquet(path, columns)
    require_file_itself(_beginning(path), path)
    raise UsageError(
        f"{path}: unknown table format {suffix!r}; expected {', '.join(_ROWS)}, or a .json of rows"
    )


def table_columns(path: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in their order; JSONL: those of all rows.

    A column may begin in any row of JSONL, so the file is read to its end.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix in _PARQUET:
        table = _parquet_file(path)
        table.close()
        return tuple(table.schema_arrow.names)
    names: dict[str, None] = {}
    if suffix in _DELIMITERS:
        _, header = next(_csv_records(path), (0, []))
        names = dict.fromkeys(header)
    else:
        for row in read_rows(path):
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


def needed_column(
    path: str, columns: Sequence[str], wanted: str | None, defaults: Sequence[str], noun: str
) -> str:
    """Return the column of that noun, as `choose_column` does. Raises DataError without one."""
    column = choose_column(path, columns, wanted, defaults)
    if column is None:
        raise DataError(
            f"{path}: no column for the {noun}; expected one of {', '.join(defaults)}: "
            f"name the column with `{noun}`. {columns_offered(columns)}"
        )
    return column


def list_in_cell(
    cell: str, location: str, column: str, *, between: str = ""
) -> list[Any] | str | None:
    """Return the list that a table's cell holds, as JSON or as Python writes a list.

    None where the cell is empty; another text is returned as it is, or parted `between` such signs
    by the tool that writes so. Raises DataError for what begins like a list and is none of these:
    what it holds would be guessed.
    """
    text = cell.strip()
    if text.lower() in _NO_LIST:
        return None
    if not _LIKE_A_LIST.match(text):
        return [part for part in text.split(between) if part.strip()] if between else text
    value = written_value(text)
    if not isinstance(value, list):
        raise DataError(
            f"{location}: column {column!r} holds {capped(cell)}; expected a list of texts, as "
            "JSON or as Python writes it (in pandas: `frame[column].map(list).map(json.dumps)`)"
        )
    return value


def written_value(text: str) -> Any:
    """Return the value that a text is as JSON, or as Python writes it; None for any other text.

    Python would also read what it does not write: `['a' 'b']`, as numpy prints two texts, is one.
    """
    with contextlib.suppress(JsonError):
        return read_json(text, strict=False)
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text) if len(text) <= MAX_TEXT_CHARACTERS else None
        return value if repr(value) == text else None
    return None


def damage_in(text: str) -> str:
    """Say how a text was damaged before it came into its table; empty where nothing shows it."""
    if "\ufffd" in text:
        return "replaced characters (U+FFFD)"
    for run in _BEYOND_ASCII.findall(text):
        for encoding in ("cp1252", "latin-1"):
            with contextlib.suppress(UnicodeError):
                run.encode(encoding).decode("utf-8")
                return "UTF-8 that was encoded twice"
    if _ENTITY.search(text):
        return "HTML entities"
    if _ESCAPE.search(text):
        return "escapes of a spreadsheet (`_x000D_`)"
    return "no text (`nan`)" if text.strip().lower() in ("nan", "none", "null", "#n/a") else ""


def identifier(value: object, location: str, column: str) -> str:
    """Return an id as text: one line, 1 to 256 characters; whole numbers are written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= 256 and value.isprintable():
        return checked_text(value, location, column)
    raise DataError(
        f"{location}: column {column!r} holds {capped(value)} as an id; expected 1 to 256 "
        "printable characters or a whole number"
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
    return f"{hint}The columns are {listed([name[:60] for name in columns[:20]], last='and')}{more}"


def _csv_records(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield `(first line, fields)` of every record that is not blank.

    Spreadsheets write rows of empty fields, and `sep=;` before the header.
    """
    lines = (line for _, line in read_lines(path))
    beginning = next(lines, "")
    directive = _DIRECTIVE.fullmatch(beginning)
    delimiter = directive[1] if directive else _DELIMITERS[PurePath(path).suffix.lower()]
    before = 1 if directive else 0
    rest = lines if directive else chain([beginning] if beginning else [], lines)
    reader = csv.reader(rest, delimiter=delimiter, strict=True)
    is_begun = False
    while True:
        first = before + reader.line_num + 1
        # The limit is one for the whole process: it is ours only while one record is read.
        previous = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{path}:{first}: broken record ({error}, read up to line "
                f"{before + reader.line_num}); "
                "expected quotes in pairs and no bare carriage return: check the quotes here"
            ) from error
        finally:
            csv.field_size_limit(previous)
        if fields is None:
            return
        if (is_begun and len(fields) == 1) or any(field.strip() for field in fields):
            is_begun = True
            yield first, fields


def _read_csv(path: str) -> Iterator[Row]:
    records = _csv_records(path)
    header_line, header = next(records, (0, []))
    _refuse_twice(header, f"{path}:{header_line}")
    width = len(header)
    for number, (line, fields) in enumerate(records, 1):
        if len(fields) != width:
            raise DataError(
                f"{path}:{line}: {len(fields)} fields, first {capped(fields[0])}; expected "
                f"{width} as in the header: check delimiters and quotes"
            )
        yield Row(number, line, dict(zip(header, fields, strict=True)))


def _refuse_twice(columns: Sequence[str], location: str) -> None:
    """Raise DataError where one column would hide another of its name."""
    twice = {name for name, times in Counter(columns).items() if name and times > 1}
    if twice:
        raise DataError(
            f"{location}: column {capped(min(twice))} occurs twice in the header; "
            "expected different names"
        )


def read_json_objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield `(line, object)` of a file with an object a line, or with one array of objects.

    Blank lines are skipped. In a file that is one object, a list of objects in it counts.
    """
    if is_one_value(path):
        yield from _objects_of(path)
        return
    for line, text in read_lines(path):
        record = json_object(text, path, line)
        if record is not None:
            yield line, record


def is_one_value(path: str) -> bool:
    """Return whether a file is one JSON value, and no object a line.

    One line alone is one object of many; in `.json` it is the value, where it holds rows.
    """
    filled = (text.strip() for _, text in read_lines(path) if not text.isspace())
    first, second = next(filled, ""), next(filled, None)
    if first.startswith("[") or first == "{":
        return True
    if second is not None or PurePath(path).suffix.lower() != ".json":
        return False
    with contextlib.suppress(JsonError):
        value = read_json(first, strict=False)
        return isinstance(value, dict) and (
            any(map(_is_list_of_objects, value.values())) or _rows_of_columns(value) is not None
        )
    return False


def _objects_of(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file that is one array, each with the line on which it begins."""
    text = read_whole(Path(path)).decode("utf-8-sig")
    try:
        value = read_json(text, strict=False)
    except JsonError as error:
        location = f"{path}:{error.line}:{error.column}" if error.column else f"{path}:1"
        raise DataError(
            f"{location}: {error}; expected one array of objects, whole, or an object a line"
        ) from error
    lines: Iterator[int] = count(1)  # within an object only the number of a row is known
    if isinstance(value, dict):
        columnar = _rows_of_columns(value)
        if columnar is not None and isinstance(value.get("columns"), list):
            _refuse_twice([str(name) for name in value["columns"]], path)
        lists = [inner for inner in value.values() if _is_list_of_objects(inner)]
        lists = lists if columnar is None else [columnar]
        if len(lists) != 1:
            raise DataError(
                f"{path}: is one object with {capped(list(value)[:8])}; expected an array of "
                'objects, one a row (in pandas: `orient="records"`), or an object a line'
            )
        value = lists[0]
    elif not isinstance(value, list) or (value and not any(isinstance(r, dict) for r in value)):
        raise DataError(f"{path}:1: {capped(value)}; {_EXPECTED}")
    else:
        lines = _lines_of_entries(text)
    for line, record in zip(lines, value, strict=False):
        if not isinstance(record, dict):
            raise DataError(f"{path}:{line}: {capped(record)} in the array; {_EXPECTED}")
        yield line, record


def _lines_of_entries(text: str) -> Iterator[int]:
    """Yield the line on which each entry of a JSON array begins, from 1."""
    line, position = 1, 0
    while (begin := _BEFORE_ENTRY.match(text, position)) is not None:
        line += text.count("\n", position, begin.end())
        yield line
        _, end = _SCANNER.raw_decode(text, begin.end())
        line += text.count("\n", begin.end(), end)
        position = end


def _rows_of_columns(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of one object that holds columns; None where it holds something else.

    Columns are lists of one length, objects with the same keys in one order (pandas' default), or
    names in `columns` beside lists of cells in `data` (pandas' `split`, Hugging Face's viewer).
    """
    names, data = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(data, list):
        is_table = all(isinstance(row, list) and len(row) == len(names) for row in data)
        return [dict(zip(map(str, names), row, strict=True)) for row in data] if is_table else None
    columns = list(value.values())
    if columns and all(isinstance(column, dict) and column for column in columns):
        if any(list(column) != list(columns[0]) for column in columns):
            return None
        columns = [list(column.values()) for column in columns]
    is_table = bool(columns) and all(isinstance(column, list) and column for column in columns)
    if not is_table or len({len(column) for column in columns}) > 1:
        return None
    if any(map(_is_list_of_objects, columns)):
        return None
    return [dict(zip(value, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def json_object(text: str, path: str, line: int) -> dict[str, Any] | None:
    """Return the object of a line with its line end; None where it is blank. Raises DataError."""
    if text.isspace():
        return None
    text = text.rstrip("\r\n")  # else the error is said to be on a next line
    try:
        record = read_json(text, strict=False)
    except JsonError as error:
        location = f"{path}:{line}:{error.column}" if error.column else f"{path}:{line}"
        begin = max(0, error.column - 16)
        near = f", near {capped(text[begin : begin + 30])}" if error.column else ""
        raise DataError(f"{location}: {error}{near}; expected one JSON object a line") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}:{line}: {capped(record)}; {_EXPECTED}")
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
        require_file_itself(_beginning(path), path)
        table = parquet.ParquetFile(path)
    except pa.ArrowException as error:
        raise DataError(f"{path}: no readable Parquet file ({capped(str(error), 120)})") from error
    except OSError as error:
        raise unreadable(path, error) from error
    groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
    size, stored = sum(group.total_byte_size for group in groups), Path(path).stat().st_size
    if size > max(MOST_BYTES, _MOST_EXPANSION * stored):
        table.close()
        raise DataError(
            f"{path}: its {stored:,} bytes would become {size:,}, more than {_MOST_EXPANSION} "
            "times as many; expected a table: write it without what repeats"
        )
    try:
        _refuse_twice(table.schema_arrow.names, path)
    except DataError:
        table.close()
        raise
    return table


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
    except (pa.ArrowException, ArithmeticError, OSError, ValueError) as error:
        # Python itself refuses a day of the year 300,000, and a zone of time that nobody knows.
        raise DataError(
            f"{path}:{number + 1}: the Parquet file is damaged after row {number} "
            f"({capped(str(error), 120)}); make it again"
        ) from error
    finally:
        table.close()


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield `(line number from 1, line with its line end)`; a UTF-8 byte order mark is skipped.

    Lines end in a line feed, however the file ends them: a checkout may change that. Streams.
    Raises DataError with `path:line` for bytes that are not UTF-8, for NUL bytes and for lines over
    8 MiB, and for files that cannot be read.
    """
    number = 0
    try:
        with opened(path) as file:
            require_file_itself(file.peek(BEGINNING), path)
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    if raw.startswith(_UTF16_BOMS):
                        raise DataError(
                            f"{path}:1: the file is UTF-16; expected UTF-8: save it as UTF-8"
                        )
                    raw = raw.removeprefix(_UTF8_BOM)
                line = _decoded(raw, f"{path}:{number}")
                yield number, f"{line[:-2]}\n" if line.endswith("\r\n") else line
    except OSError as error:
        raise unreadable(path, error) from error


def _beginning(path: str) -> bytes:
    """Return the bytes that show what a file is. Raises DataError where it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(BEGINNING)
    except OSError as error:
        raise unreadable(path, error) from error


def require_file_itself(beginning: bytes, path: str) -> None:
    """Raise DataError where a file is a pointer, a page or an archive in the place of another."""
    if what := stand_in(beginning[:BEGINNING]):
        raise DataError(f"{path}: {what}")


def _decoded(raw: bytes, location: str) -> str:
    if len(raw) > MAX_LINE_BYTES:
        raise DataError(
            f"{location}: the line is longer than {MAX_LINE_BYTES:,} bytes; expected one record a "
            "line: check the line ends, or remove the record"
        )
    if (nul := raw.find(0)) >= 0:
        raise DataError(
            f"{location}: NUL byte at byte {nul} of the line; expected text: the file is binary, "
            "UTF-16 without a mark, or damaged"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        near = raw[max(0, error.start - 12) : error.start + 4]
        raise DataError(
            f"{location}: byte {error.start} of the line (0x{raw[error.start]:02x}, in {near!r}) "
            "is not UTF-8; expected UTF-8 throughout: convert the file, with iconv for instance"
        ) from error


def unreadable(path: str, error: OSError) -> DataError:
    """Return the error with the reason why a file cannot be read and the next step."""
    if isinstance(error, IrregularFileError):
        return IrregularFileError(error.errno, error.strerror, path)
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file; expected an existing file: check the path")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path}: is a folder; expected a file")
    reason = error.strerror or capped(str(error), 120)
    return DataError(f"{path}: cannot be read ({reason}); check the path and its permissions")


def checked_text(value: object, location: str, column: str) -> str:
    """Return `value` where it is a text that can be stored: no NUL, no half surrogate, ≤ 1 MiB."""
    if not isinstance(value, str):
        raise DataError(
            f"{location}: {column!r} holds {capped(value)} ({type(value).__name__}); expected text"
        )
    if len(value) > MAX_TEXT_CHARACTERS:
        raise DataError(
            f"{location}: {column!r} holds {len(value):,} characters; at most "
            f"{MAX_TEXT_CHARACTERS:,} are taken: split the text, or clean the table with "
            "`fairgate corpus prepare`, which drops such rows and counts them"
        )
    if "\x00" in value:
        raise DataError(f"{location}: {column!r} holds a NUL character; remove it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{location}: {column!r} holds half a surrogate pair at character "
                f"{error.start}, which is not text; remove or complete it"
            ) from error
    return value


def capped(value: object, limit: int = 60) -> str:
    """Return `repr(value)`, shortened and harmless: hostile values meet terminals and logs."""
    if isinstance(value, str | bytes):
        value = value[: limit + 1]
    text = harmless(repr(value))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def file_sha256(path: str) -> str:
    """Return the SHA-256 of a file's bytes; an unchanged file is hashed once a process."""
    try:
        state = os.stat(path)  # noqa: PTH116 - one call gives the whole identity
        return _sha256_of(path, state.st_size, state.st_mtime_ns, state.st_ino)
    except OSError as error:
        raise unreadable(path, error) from error


@functools.lru_cache(maxsize=64)
def _sha256_of(path: str, _size: int, _mtime_ns: int, _inode: int) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_whole(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return a file's bytes. Raises DataError where it cannot be read or is larger than allowed."""
    try:
        with opened(path) as file:
            raw = file.read(most_bytes + 1)
    except OSError as error:
        raise unreadable(str(path), error) from error
    except ValueError as error:  # a NUL byte in the name
        raise DataError(f"{str(path)!a}: is no name of a file ({error})") from error
    require_file_itself(raw, str(path))
    if len(raw) > most_bytes:
        raise DataError(
            f"{path}: larger than {most_bytes >> 20} MiB; expected a file that we wrote"
        )
    return raw


def read_json_object(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Return the object in a JSON file. Raises DataError with `path:line:column`."""
    try:
        value = read_json(read_whole(path, most_bytes))
    except JsonError as error:
        location = f"{path}:{error.line}:{error.column}" if error.line else str(path)
        raise DataError(f"{location}: {error}; expected the file as it was written") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a {type(value).__name__}; expected a JSON object")
    return value
