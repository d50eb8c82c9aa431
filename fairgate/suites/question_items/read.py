"""Files of question items to items, and a count of those that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.items import ExcludedItem, Item
from fairgate.domain.wording import suggestion
from fairgate.io.lines import capped
from fairgate.io.tables import Row, read_rows, table_columns
from fairgate.suites.question_items.formats import READERS, format_of
from fairgate.suites.question_items.raw_item import RawItem, judged_item, option_index

_ENDINGS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_TARGET_COLUMNS = ("stereotype_ans", "target_loc")
_NO_TARGET = {"", "na", "nan", "none", "null"}
Targets = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFiles:
    """Which files to read and how; `path` may be a folder."""

    path: str
    format: str | None = None
    metadata: str | None = None
    categories: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedItems:
    """Usable items in file order, and the others with the reason."""

    items: Sequence[Item]
    excluded: Sequence[ExcludedItem]


def read_items(files: ItemFiles, unknown_wordings: Sequence[str]) -> LoadedItems:
    """Return the items of a file or folder.

    Items without a single stereotyped group, with no or two unknown options, and of groups of four
    that are incomplete are left out and reported. Raises DataError with `path:line` for what
    contradicts itself, a repeated id, a category that is not there, and files without an item.
    """
    targets = read_targets(files.metadata) if files.metadata else {}
    raw = [
        _with_target(item, targets, files.metadata or "")
        for path in _paths(files)
        for item in _raw_items(path, files.format, unknown_wordings)
    ]
    _check_unique(raw)
    raw = _of_categories(raw, files)
    broken = _broken_groups(raw)
    items: list[Item] = []
    excluded: list[ExcludedItem] = []
    for row in raw:
        reason = broken.get((row.category, row.group)) if row.whole else None
        found = ExcludedItem(key=row.key, reason=reason) if reason else judged_item(row)
        if isinstance(found, Item):
            items.append(found)
        else:
            excluded.append(found)
    if not items:
        why = Counter(item.reason for item in excluded).most_common(1)
        raise DataError(
            f"{files.path}: holds no usable item"
            + (f", {why[0][1]} have the defect: {why[0][0]}" if why else "; expected at least one")
        )
    return LoadedItems(items=items, excluded=excluded)


def _paths(files: ItemFiles) -> list[str]:
    """Return the item files of a folder (of its folders, where it has none itself)."""
    folder = Path(files.path)
    if not folder.is_dir():
        return [files.path]
    for level in ("*", "**/*"):
        tables = [p for p in sorted(folder.glob(level)) if p.suffix.lower() in _ENDINGS]
        found = [str(path) for path in tables if path.is_file() and _has_items(str(path), files)]
        if found:
            return found
    raise DataError(
        f"{files.path}: the folder holds no {', '.join(_ENDINGS)} file with question items"
    )


def _has_items(path: str, files: ItemFiles) -> bool:
    """Return whether a folder's file is meant: of the named format, or of any that is known."""
    columns = table_columns(path)
    try:
        found = format_of(columns, path)
    except DataError:
        return False  # templates and vocabularies lie beside the items
    return files.format in (None, found)


def _raw_items(path: str, named: str | None, wordings: Sequence[str]) -> Iterator[RawItem]:
    read = READERS[named or format_of(table_columns(path), path)]
    for row in read_rows(path):
        yield read(row.values, f"{path}:{row.line}", wordings)


def read_targets(path: str) -> Targets:
    """Return (category, example id) to the stereotyped answer, as a metadata file has it."""
    columns = table_columns(path)
    column = next((name for name in _TARGET_COLUMNS if name in columns), None)
    if column is None or not {"category", "example_id"} <= set(columns):
        raise DataError(
            f"{path}: has the columns {capped(list(columns), 200)}; expected `category`, "
            "`example_id` and `stereotype_ans` or `target_loc`"
        )
    return {
        (str(row.values.get("category")), _plain(row)): option_index(
            row.values.get(column), f"{path}:{row.line}", column
        )
        for row in read_rows(path)
        if str(row.values.get(column) or "0" * (row.values.get(column) == 0)).strip().lower()
        not in _NO_TARGET
    }


def _plain(row: Row) -> str:
    return str(row.values.get("example_id")).strip()


def _with_target(raw: RawItem, targets: Targets, path: str) -> RawItem:
    """Add the metadata's stereotyped answer. Raises DataError where the item has another one."""
    target = targets.get((raw.category, raw.example))
    if target is None:
        return raw
    own = judged_item(raw)
    if isinstance(own, Item) and own.stereotype != target:
        raise DataError(
            f"{raw.place}: item {capped(raw.key)} has the stereotyped answer {own.stereotype} by "
            f"its own fields, {target} by {path}; correct one of the two"
        )
    if isinstance(own, Item) or len(raw.unknown) != 1:
        return raw
    return replace(raw, stereotype=target)


def _check_unique(raw: Sequence[RawItem]) -> None:
    first: dict[str, str] = {}
    for row in raw:
        if first.setdefault(row.key, row.place) != row.place:
            raise DataError(
                f"{row.place}: item {capped(row.key)} is at {first[row.key]} already; expected "
                "unique ids in a category"
            )


def _of_categories(raw: Sequence[RawItem], files: ItemFiles) -> list[RawItem]:
    if files.categories is None:
        return list(raw)
    known = list(dict.fromkeys(row.category for row in raw))
    for name in files.categories:
        if name not in known:
            raise DataError(
                f"{files.path}: no item is of category {capped(name)}; {suggestion(name, known)}"
            )
    return [row for row in raw if row.category in files.categories]


def _broken_groups(raw: Sequence[RawItem]) -> dict[tuple[str, str], str]:
    """Return the groups of four that lack a member, and what is wrong with them."""
    groups: dict[tuple[str, str], list[RawItem]] = {}
    for row in raw:
        if row.whole:
            groups.setdefault((row.category, row.group), []).append(row)
    broken = {}
    for name, members in groups.items():
        kinds = {(row.condition, row.polarity) for row in members}
        if len(kinds) < 4 or len(members) != 4:
            broken[name] = f"its 4-tuple is not whole: {len(members)} items, {len(kinds)} kinds"
        elif len({row.options for row in members}) > 1:
            broken[name] = "its 4-tuple does not share the same three answers"
    return broken
