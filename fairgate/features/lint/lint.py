"""Pairs of texts from a file, judged by the linter; with labels also the linter itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.wording import harmless, listed
from fairgate.features.lint.edit_kinds import EditKind, edit_kind
from fairgate.features.lint.pair_linter import PairLinter
from fairgate.io.lines import capped, checked_text
from fairgate.io.tables import Row, read_rows
from fairgate.policy.attribute_files import embedded_dimensions


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedPairs:
    """What the linter says of the pairs of a file."""

    lines: tuple[str, ...]
    rejected: int
    labelled: bool
    """Whether every pair says if it is valid."""


@dataclass(frozen=True, slots=True)
class _Judged:
    line: int
    fault: str | None
    valid: bool | None


def lint_pairs(path: Path) -> LintedPairs:
    """Judge every pair. Raises DataError with `path:line` for a line that is no pair."""
    judged = list(_judged(str(path)))
    if not judged:
        raise DataError(f"{path}: holds no pairs; expected a JSON object a line")
    labelled = all(pair.valid is not None for pair in judged)
    rejected = [pair for pair in judged if pair.fault is not None]
    lines = [f"{path}:{pair.line}: {harmless(pair.fault or '')}" for pair in rejected]
    lines.append(
        f"{len(judged)} pairs: {len(judged) - len(rejected)} accepted, {len(rejected)} rejected"
    )
    return LintedPairs(
        lines=(*lines, *(_agreement(judged) if labelled else ())),
        rejected=len(rejected),
        labelled=labelled,
    )


def _judged(path: str) -> Iterator[_Judged]:
    linter = PairLinter(embedded_dimensions())
    for row in read_rows(path):
        kind, source, follow_up = _pair(row, f"{path}:{row.line}")
        valid = row.values.get("valid")
        if valid is not None and not isinstance(valid, bool):
            raise DataError(
                f"{path}:{row.line}: `valid` is {capped(valid)}; expected true or false"
            )
        yield _Judged(row.line, linter.fault(kind, source, follow_up), valid)


def _pair(row: Row, place: str) -> tuple[EditKind, str, str]:
    name, source, follow_up = (
        checked_text(row.values.get(key), place, key) for key in ("relation", "source", "follow_up")
    )
    kind = edit_kind(name)
    if kind is None:
        known = listed([each.value for each in EditKind])
        raise DataError(f"{place}: `relation` is {capped(name)}; expected {known}")
    return kind, source, follow_up


def _agreement(judged: list[_Judged]) -> Iterator[str]:
    """Yield how the linter agrees with the labels; what is broken is what it should find."""
    hits = sum(pair.fault is not None and not pair.valid for pair in judged)
    rejected = sum(pair.fault is not None for pair in judged)
    broken = sum(not pair.valid for pair in judged)
    yield f"  labelled broken: {broken}, of them rejected: {hits} (recall {_share(hits, broken)})"
    yield f"  rejected: {rejected}, of them broken: {hits} (precision {_share(hits, rejected)})"
    for pair in judged:
        if (pair.fault is None) != pair.valid:
            what = "valid, but rejected" if pair.valid else "broken, but accepted"
            yield f"  line {pair.line}: {what}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "not defined"
