"""The corpus that the retriever searches, as table files: documents, and their labels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping

from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.io.tables import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    Row,
    capped,
    checked_text,
    choose_column,
    file_sha256,
    identifier,
    needed_column,
    read_rows,
    table_columns,
)

LABEL_COLUMNS = ("label", "labels", "toxic", "toxicity")
_READER_VERSION = "corpus-1"
"""Part of the fingerprint: raise it when the same file would give other documents."""
_NEUTRAL_NAMES = frozenset({"label", "labels", "class", "category", "target"})
_FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_MOST_LABELS = 100


class CorpusFile:
    """The documents of a CSV, TSV, JSON or Parquet file, in file order, read as a stream.

    Ids are unique; without an id column they are the rows' numbers from 1. Rows without text are
    left out and counted in `notices`. Texts stay as they are.
    """

    def __init__(self, spec: CorpusSpec) -> None:
        """Name the file; nothing is read yet."""
        self.spec = spec
        self.notices: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes and the choice of columns. Raises DataError."""
        spec = self.spec
        parts = (_READER_VERSION, file_sha256(spec.path), spec.id, spec.text, spec.label)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents. Raises DataError with `path:line`, also when there are none."""
        path = self.spec.path
        columns = CorpusColumns(self.spec)
        empty: list[int] = []
        count = 0
        for row in columns.rows():
            text = checked_text(columns.raw_text(row), f"{path}:{row.line}", columns.text)
            document = columns.document(row, text)
            if text.isspace() or not text:
                empty.append(row.line)
                continue
            count += 1
            yield document
        if not count:
            raise DataError(f"{path}: holds no document with text; expected at least one row")
        if empty:
            notice = (
                f"{path}: {len(empty):,} of {len(empty) + count:,} rows have no text and were "
                f"excluded (the first is line {empty[0]})"
            )
            self.notices += [] if notice in self.notices else [notice]


class LabelReader:
    """Turns the values of one column into labels; refuses what cannot be a label.

    A column that is named after a label (`toxic`) holds flags: true and 1 become `toxic`, false
    and 0 become `non-toxic`. In a column with a neutral name (`label`) values stay as they are.
    Empty values become None.
    """

    def __init__(self, column: str) -> None:
        """Read values of `column`."""
        self._column = column
        self._named_after_label = column.lower() not in _NEUTRAL_NAMES
        self._names: set[str] = set()
        self._flags: bool | None = None
        """Whether the values are flags; unknown before the first value."""

    def read(self, value: object, location: str) -> str | None:
        """Return the label; raises DataError for scores, nested values and too many labels."""
        text = self._text_of(value, location)
        if not text:
            return None
        flag = _FLAGS.get(text.lower()) if self._named_after_label else None
        if self._flags is None:
            self._flags = flag is not None
        if self._flags != (flag is not None):
            raise DataError(
                f"{location}: column {self._column!r} mixes {capped(text)} with other kinds of "
                "values; expected either only true/false (or 1/0), or only names of labels"
            )
        if flag is not None:
            return self._column if flag else f"non-{self._column}"
        self._names.add(text)
        if len(self._names) > _MOST_LABELS:
            raise DataError(
                f"{location}: column {self._column!r} holds more than {_MOST_LABELS} different "
                f"values, the last {capped(text)}; expected labels: name another column as `label`"
            )
        return text

    def _text_of(self, value: object, location: str) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if isinstance(value, str):
            if self._named_after_label and _is_score(value):
                raise self._refused(value, location)
            return checked_text(value, location, self._column).strip()
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
            return str(int(value))
        raise self._refused(value, location)

    def _refused(self, value: object, location: str) -> DataError:
        return DataError(
            f"{location}: column {self._column!r} holds {capped(value)}, which is no label; "
            "expected a name, true/false or a whole number: turn scores into labels with a "
            "threshold, or name another column as `label`"
        )


def _is_score(text: str) -> bool:
    try:
        return not float(text).is_integer()
    except (ValueError, OverflowError):
        return False


class CorpusColumns:
    """Which columns of a table hold text, id and label, and how a row becomes a document."""

    def __init__(self, spec: CorpusSpec) -> None:
        """Find the columns. Raises DataError where the text or a named column is missing."""
        self._path = spec.path
        names = table_columns(spec.path)
        self.text = needed_column(spec.path, names, spec.text, TEXT_COLUMNS, "text")
        self.id = choose_column(spec.path, names, spec.id, ID_COLUMNS)
        self.label = choose_column(spec.path, names, spec.label, LABEL_COLUMNS)
        self._labels = LabelReader(self.label) if self.label is not None else None
        self._lines_of_ids: dict[str, int] = {}

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the table, only the chosen columns where the format allows it."""
        chosen = [name for name in (self.id, self.text, self.label) if name is not None]
        return read_rows(self._path, list(dict.fromkeys(chosen)))

    def raw_text(self, row: Row) -> object:
        """Return the row's text as it stands; null is an empty text, a missing field an error."""
        if self.text not in row.values:
            raise DataError(
                f"{self._path}:{row.line}: no field {self.text!r}; expected it in every row, "
                f"found {capped(list(row.values))}"
            )
        value = row.values[self.text]
        return "" if value is None else value

    def document(self, row: Row, text: str) -> CorpusDocument:
        """Return the row as a document with `text`; raises DataError for a repeated id."""
        location = f"{self._path}:{row.line}"
        if self.id is None:
            id_ = str(row.number)
        else:
            id_ = identifier(row.values.get(self.id), location, self.id)
            first = self._lines_of_ids.setdefault(id_, row.line)
            if first != row.line:
                raise DataError(
                    f"{location}: id {capped(id_)} was used on line {first} already; expected "
                    "unique ids: rename one, or name another column as `id`"
                )
        label = None
        if self._labels is not None and self.label is not None:
            label = self._labels.read(row.values.get(self.label), location)
        return CorpusDocument(id=id_, text=text, label=label)


def read_document_labels(path: str) -> Mapping[str, str]:
    """Return the label of each document that a table names; rows without a label are left out.

    Raises DataError with `path:line` for an id with two labels, for what is no id or no label, and
    for a file without any label.
    """
    names = table_columns(path)
    ids = needed_column(path, names, None, ID_COLUMNS, "id")
    column = needed_column(path, names, None, LABEL_COLUMNS, "label")
    reader = LabelReader(column)
    labels: dict[str, str] = {}
    first_locations: dict[str, str] = {}
    for row in read_rows(path, list(dict.fromkeys((ids, column)))):
        location = f"{path}:{row.line}"
        if (label := reader.read(row.values.get(column), location)) is None:
            continue
        id_ = identifier(row.values.get(ids), location, ids)
        if labels.setdefault(id_, label) != label:
            raise DataError(
                f"{location}: the document {capped(id_)} is labelled {capped(label)}, and "
                f"{capped(labels[id_])} at {first_locations[id_]}; expected one label a document: "
                "remove one of the two"
            )
        first_locations.setdefault(id_, location)
    if not labels:
        raise DataError(
            f'{path}: holds no label; expected rows such as {{"id": "d1", "label": "toxic"}}'
        )
    return labels
