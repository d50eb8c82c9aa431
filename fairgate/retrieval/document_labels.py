"""Labels of documents by id: a table with a row a document, or a JSON object of id to label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.io.json_file import read_json_object
from fairgate.io.lines import capped
from fairgate.io.tables import (
    ID_COLUMNS,
    choose_column,
    columns_offered,
    identifier,
    read_rows,
    table_columns,
)
from fairgate.retrieval.corpus import LABEL_COLUMNS
from fairgate.retrieval.labels import LabelReader


def read_document_labels(
    path: str, *, id_column: str | None = None, label_column: str | None = None
) -> Mapping[str, str]:
    """Return the label of each document that the file names; rows without a label are left out.

    `.json` is one object of id to label; CSV, TSV, JSONL and Parquet are tables. Raises DataError
    with `path:line` for an id with two labels, for what is no id or no label, and for a file
    without any label.
    """
    labels: dict[str, str] = {}
    places: dict[str, str] = {}
    is_object = Path(path).suffix.lower() == ".json"
    rows = _of_object(path) if is_object else _of_table(path, id_column, label_column)
    for id_, label, place in rows:
        if labels.setdefault(id_, label) != label:
            raise DataError(
                f"{place}: the document {capped(id_)} is labelled {capped(label)}, and "
                f"{capped(labels[id_])} at {places[id_]}; expected one label a document: remove "
                "one of the two"
            )
        places.setdefault(id_, place)
    if not labels:
        raise DataError(
            f'{path}: holds no label; expected rows such as {{"id": "d1", "label": "toxic"}}'
        )
    return labels


def _of_object(path: str) -> Iterator[tuple[str, str, str]]:
    reader = LabelReader("label")
    for name, value in read_json_object(Path(path)).items():
        place = f"{path}: {capped(name)}"
        label = reader.read(value, place)
        if label is not None:
            yield identifier(name, place, "id"), label, place


def _of_table(
    path: str, id_column: str | None, label_column: str | None
) -> Iterator[tuple[str, str, str]]:
    names = table_columns(path)
    ids = choose_column(path, names, id_column, ID_COLUMNS)
    label = choose_column(path, names, label_column, LABEL_COLUMNS)
    if ids is None or label is None:
        lacking, known = ("id", ID_COLUMNS) if ids is None else ("label", LABEL_COLUMNS)
        raise DataError(
            f"{path}: no column for the {lacking} of a document; expected one of "
            f"{', '.join(known)}: name the column with `{lacking}`. {columns_offered(names)}"
        )
    reader = LabelReader(label)
    for row in read_rows(path, list(dict.fromkeys((ids, label)))):
        place = f"{path}:{row.line}"
        found = reader.read(row.values.get(label), place)
        if found is not None:
            yield identifier(row.values.get(ids), place, ids), found, place
