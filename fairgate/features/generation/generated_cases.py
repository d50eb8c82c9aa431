"""Files of generated source cases: written whole or not at all, read back with every fault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.attributes import Dimension
from fairgate.domain.errors import DataError, UsageError
from fairgate.io.durable import write_lines
from fairgate.io.lines import capped, checked_text
from fairgate.io.tables import Row, read_rows
from fairgate.suites.metamorphic.case_rows import (
    FORMAT,
    HEADER_KEY,
    GeneratedCase,
    case_row,
    is_header,
    stated_attributes,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a row of the file."""

    line: int
    message: str


def write_cases(
    path: Path, header: Mapping[str, object], cases: Iterable[GeneratedCase], *, force: bool
) -> str:
    """Write header and cases as they come; return the SHA-256 of the file.

    Raises UsageError where the file is there already and `force` is not set, StoreError where it
    cannot be written; the file that was there stays as it was, and no part of a new one is left.
    """
    refuse_to_replace(path, force=force)
    return write_lines(path, _lines(header, cases))


def refuse_to_replace(path: Path, *, force: bool) -> None:
    """Raise UsageError where the file is there already and `force` is not set."""
    if not force and path.is_file():
        raise UsageError(
            f"{path}: is there already, and people may have reviewed it; name another file with "
            "--out, or replace it with --force"
        )


def _lines(header: Mapping[str, object], cases: Iterable[GeneratedCase]) -> Iterator[str]:
    yield json.dumps({HEADER_KEY: FORMAT, **header}, ensure_ascii=False)
    for case in cases:
        yield json.dumps(case_row(case), ensure_ascii=False)


def read_cases(
    path: str, dimensions: Mapping[str, Dimension]
) -> Iterator[dict[str, object] | GeneratedCase | Fault]:
    """Yield the header, then a case or a fault for each row; streams.

    Raises DataError for a file that is none of ours, or whose lines are no JSON objects.
    """
    ids: dict[str, int] = {}
    texts: dict[str, int] = {}
    for row in read_rows(path):
        if row.number == 1:
            if not is_header(row.values, path):
                raise DataError(
                    f"{path}:{row.line}: has no header; expected a first line with "
                    f"`{HEADER_KEY}`, as `fairgate generate` writes it"
                )
            yield dict(row.values)
            continue
        try:
            yield _case(row, path, dimensions, ids, texts)
        except DataError as error:
            yield Fault(row.line, str(error).removeprefix(f"{path}:{row.line}: "))


def _case(
    row: Row,
    path: str,
    dimensions: Mapping[str, Dimension],
    ids: dict[str, int],
    texts: dict[str, int],
) -> GeneratedCase:
    place = f"{path}:{row.line}"
    name, text, template = (
        checked_text(row.values.get(key), place, key) for key in ("id", "text", "template")
    )
    for value, known, what in ((name, ids, "id"), (text, texts, "text")):
        first = known.setdefault(value, row.line)
        if first != row.line:
            raise DataError(f"{what} {capped(value)} is already on line {first}; remove one")
    operators = row.values.get("operators", [])
    if not isinstance(operators, list) or not all(isinstance(each, str) for each in operators):
        raise DataError(f"`operators` is {capped(operators)}; expected a list of texts")
    frame, uses = stated_attributes(row.values, text, dimensions)
    return GeneratedCase(
        id=name,
        text=text,
        template=template,
        frame=frame,
        attributes=uses,
        operators=tuple(operators),
    )
