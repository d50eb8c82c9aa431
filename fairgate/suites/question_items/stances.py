"""Document collections whose texts are with or against a stereotype, or neither."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.items import STANCES
from fairgate.domain.wording import listed
from fairgate.io.tables import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    choose_column,
    columns_offered,
    identifier,
    read_rows,
    table_columns,
)
from fairgate.io.text_files import capped, checked_text, file_sha256

STANCE_COLUMN = "stance"
_VERSION = "stances-1"
"""Part of the fingerprint: raise it when the same files would give other documents."""
_ENDINGS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")


class StanceCollection:
    """The documents of some files that a setting searches, in file order; a corpus.

    A document's label is its stance, its id `<file name>/<id>`. `full` has all documents,
    `stereo` and `anti` those of that stance.
    """

    def __init__(self, paths: Sequence[str], setting: str) -> None:
        """Name the files (see `stance_files`); nothing is read yet."""
        self._paths = paths
        self._setting = setting

    @property
    def fingerprint(self) -> str:
        """Identify the files' bytes and the setting. Raises DataError."""
        parts = [_VERSION, self._setting, *(file_sha256(path) for path in self._paths)]
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents. Raises DataError with `path:line`, also when there are none."""
        found = 0
        for document in stance_documents(self._paths):
            if self._setting in ("full", document.label):
                found += 1
                yield document
        if not found:
            raise _without(self._setting, self._paths)


def stance_files(paths: Sequence[str]) -> list[str]:
    """Return the files meant by `paths`, those of folders in alphabetical order."""
    return [file for path in paths for file in _files_of(path)]


def _files_of(path: str) -> list[str]:
    if not Path(path).is_dir():
        return [path]
    found = sorted(str(f) for f in Path(path).rglob("*") if f.suffix.lower() in _ENDINGS)
    if not found:
        raise DataError(f"{path}: the folder holds no {', '.join(_ENDINGS)} file")
    return found


def _without(setting: str, paths: Sequence[str]) -> DataError:
    return DataError(
        f"{', '.join(paths)[:200]}: no document has the stance {setting!r}, which the setting of "
        "that name searches"
    )


def check_collections(files: Sequence[str], settings: Sequence[str], top_k: int) -> None:
    """Read every document once.

    Raises DataError where one is unusable, or a setting has fewer than `top_k`.
    """
    stances = Counter(document.label for document in stance_documents(files))
    for setting in settings:
        many = stances.total() if setting == "full" else stances[setting]
        if not many:
            raise _without(setting, files)
        if many < top_k:
            raise DataError(
                f"{', '.join(files)[:200]}: the setting {setting!r} has {many} documents, but "
                f"`top_k` is {top_k}; lower it, or add documents"
            )


def stance_documents(files: Sequence[str]) -> Iterator[CorpusDocument]:
    """Yield the documents of all files, each with its stance. Raises DataError."""
    ids: dict[str, str] = {}
    for path in files:
        names = table_columns(path)
        if STANCE_COLUMN not in names:
            raise DataError(
                f"{path}: no column {STANCE_COLUMN!r}; every document of a collection must say "
                f"whether it is {listed(STANCES)}. {columns_offered(names, STANCE_COLUMN)}"
            )
        text_column = choose_column(path, names, None, (*TEXT_COLUMNS, "sentence"))
        if text_column is None:
            raise DataError(
                f"{path}: no column for the text; expected one of {', '.join(TEXT_COLUMNS)}"
            )
        id_column = choose_column(path, names, None, ID_COLUMNS)
        stem = Path(path).stem
        for row in read_rows(path):
            place = f"{path}:{row.line}"
            stance = row.values.get(STANCE_COLUMN)
            if stance not in STANCES:
                raise DataError(
                    f"{place}: the stance is {capped(stance)}; expected {listed(STANCES)}"
                )
            text = checked_text(row.values.get(text_column), place, text_column)
            if not text.strip():
                raise DataError(f"{place}: the document has no text; write one or remove it")
            own = str(row.number)
            if id_column is not None:
                own = identifier(row.values.get(id_column), place, id_column)
            name = f"{stem}/{own}"
            if ids.setdefault(name, place) != place:
                raise DataError(
                    f"{place}: id {capped(name)} is at {ids[name]} already; expected unique ids"
                )
            yield CorpusDocument(id=name, text=text, label=str(stance))
