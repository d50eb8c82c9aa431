"""A table file as the corpus that the retriever searches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from fairgate.domain.corpora import CorpusDocument, CorpusSpec
from fairgate.domain.errors import DataError
from fairgate.io.lines import capped, checked_text, file_sha256
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
from fairgate.retrieval.labels import LabelReader

LABEL_COLUMNS = ("label", "labels", "toxic", "toxicity")
_READER_VERSION = "corpus-1"
"""Part of the fingerprint: raise it when the same file would give other documents."""


class CorpusFile:
    """The documents of a CSV, TSV, JSONL or Parquet file, in file order, read as a stream.

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
        found = 0
        for row in columns.rows():
            text = checked_text(columns.raw_text(row), f"{path}:{row.line}", columns.text)
            document = columns.document(row, text)
            if text.isspace() or not text:
                empty.append(row.line)
                continue
            found += 1
            yield document
        if not found:
            raise DataError(f"{path}: holds no document with text; expected at least one row")
        if empty:
            self._notice(
                f"{path}: {len(empty):,} of {len(empty) + found:,} rows have no text and were left "
                f"out (the first is line {empty[0]})"
            )

    def _notice(self, message: str) -> None:
        if message not in self.notices:
            self.notices.append(message)


class CorpusColumns:
    """Which columns of a table hold text, id and label, and how a row becomes a document."""

    def __init__(self, spec: CorpusSpec) -> None:
        """Find the columns. Raises DataError where the text or a named column is missing."""
        self._path = spec.path
        names = table_columns(spec.path)
        text = choose_column(spec.path, names, spec.text, TEXT_COLUMNS)
        if text is None:
            raise DataError(
                f"{spec.path}: no column for the text; expected one of {', '.join(TEXT_COLUMNS)}: "
                f"name the column with `text`. {columns_offered(names)}"
            )
        self.text = text
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
        place = f"{self._path}:{row.line}"
        if self.id is None:
            id_ = str(row.number)
        else:
            id_ = identifier(row.values.get(self.id), place, self.id)
            first = self._lines_of_ids.setdefault(id_, row.line)
            if first != row.line:
                raise DataError(
                    f"{place}: id {capped(id_)} was used on line {first} already; expected unique "
                    "ids: rename one, or name another column as `id`"
                )
        label = None
        if self._labels is not None and self.label is not None:
            label = self._labels.read(row.values.get(self.label), place)
        return CorpusDocument(id=id_, text=text, label=label)
