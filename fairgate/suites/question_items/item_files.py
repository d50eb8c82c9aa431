"""What the kind `bbq` reads: question items in each published format, and collections of documents.

The documents of a collection are with or against a stereotype, or neither.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fairgate.domain.cases import STANCES, Condition, ExcludedItem, Item, ItemText
from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.wording import listed, suggestion
from fairgate.io.tables import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    capped,
    checked_text,
    choose_column,
    columns_offered,
    file_sha256,
    identifier,
    list_in_cell,
    needed_column,
    read_rows,
    table_columns,
    written_value,
)
from fairgate.relations.oracles.choice import find_unknown
from fairgate.relations.oracles.text import folded
from fairgate.suites.suite import Items

Wordings = Sequence[str]
Meaning = TypeVar("Meaning")
_CONDITIONS = {
    **dict.fromkeys(("ambig", "amb", "ambiguous"), Condition.AMBIGUOUS),
    **dict.fromkeys(("disambig", "dis", "disambiguous", "disambiguated"), Condition.DISAMBIGUATED),
}
_POLARITIES = {
    **dict.fromkeys(("neg", "negative"), "neg"),
    **dict.fromkeys(("nonneg", "non_neg", "non-neg", "non-negative", "nonnegative"), "nonneg"),
}
_SAME_GROUP = {
    **dict.fromkeys(("man", "boy", "husband", "male", "m"), "m"),
    **dict.fromkeys(("woman", "girl", "wife", "female", "f"), "f"),
}
_ANSWERS = ("ans0", "ans1", "ans2")
_ENDINGS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_TARGET_COLUMNS = ("stereotype_ans", "target_loc")
_AS_THEY_ARE: Mapping[str, str] = {}
_NO_TARGET = {"", "na", "nan", "none", "null"}
Targets = Mapping[tuple[str, str], int]
STANCE_COLUMN = "stance"
_VERSION = "stances-1"
"""Part of the fingerprint: raise it when the same files would give other documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawItem(ItemText):
    """A row of an item file, typed but not yet judged; `place` is `path:line`."""

    place: str
    example: str
    unknown: Sequence[int]
    """Options that mean "unknown"; exactly one in a usable item."""
    target: int | None = None
    """The option that names the stereotyped group; None where not exactly one does."""
    stereotype: int | None = None
    """The stereotyped answer, where the format names it itself."""
    whole: bool = False
    """Whether the format promises groups of four."""
    spelled: str = ""
    """How groups of answers and stereotyped ones are spelled."""

    @property
    def key(self) -> str:
        """Return `<category>/<example id>`."""
        return f"{self.category}/{self.example}"


def text_of(row: Mapping[str, object], column: str, location: str) -> str:
    """Return a text cell that is not empty. Raises DataError."""
    value = row.get(column)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}"
    if value is None or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{location}: {column!r} is missing or empty; expected text")
    return checked_text(value, location, column)


def name_of(row: Mapping[str, object], column: str, location: str) -> str:
    """Return a name that keys can hold: printable, without `@`, `/` or `#`."""
    value = text_of(row, column, location).strip()
    if len(value) > 200 or not value.isprintable() or set(value) & set("@/#"):
        raise DataError(
            f"{location}: {column!r} holds {capped(value)}; expected a name without `@`, `/`, `#`"
        )
    return value


def option_index(value: object, location: str, column: str) -> int:
    """Return the index of an option, 0 to 2. Raises DataError."""
    if isinstance(value, str) and value.strip() in {"0", "1", "2", "0.0", "1.0", "2.0"}:
        return int(value.strip()[0])
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (0, 1, 2):
        return int(value)
    raise DataError(f"{location}: {column!r} is {capped(value)}; expected 0, 1 or 2")


def _word(meanings: dict[str, Meaning], what: str, value: object, location: str) -> Meaning:
    """Return the meaning of a word. Raises DataError."""
    meaning = meanings.get(str(value).strip().lower())
    if meaning is None:
        usual = {own_meaning: word for word, own_meaning in reversed(meanings.items())}
        expected = listed(usual[own_meaning] for own_meaning in dict.fromkeys(meanings.values()))
        raise DataError(f"{location}: the {what} is {capped(value)}; expected {expected}")
    return meaning


condition_of = partial(_word, _CONDITIONS, "context condition")
polarity_of = partial(_word, _POLARITIES, "question polarity")


def options_of(options: Sequence[str], location: str) -> tuple[str, str, str]:
    """Return three distinguishable options. Raises DataError."""
    if len(options) != 3:
        raise DataError(f"{location}: {len(options)} answer options; expected three")
    if len({folded(option) for option in options}) < 3:
        raise DataError(
            f"{location}: two of the options {capped(list(options), 120)} are the same text; no "
            "answer could be distinguished from the other: correct the item, or remove it"
        )
    return options[0], options[1], options[2]


def judged_item(raw: RawItem) -> Item | ExcludedItem:
    """Return the item with its stereotyped answer, or why it cannot have one.

    The stereotyped answer is the target's where the question is negative, the other group's where
    it is not: choosing the other group for the good trait is the stereotype too. Raises DataError
    where the row contradicts itself.
    """
    if len(raw.unknown) != 1:
        many = "no option means" if not raw.unknown else f"{len(raw.unknown)} options mean"
        return ExcludedItem(key=raw.key, reason=f"{many} unknown; expected exactly one")
    unknown = raw.unknown[0]
    others = [index for index in range(3) if index != unknown]
    stereotype = raw.stereotype
    if stereotype is None:
        if raw.target not in others:
            spelled = f": {raw.spelled}" if raw.spelled else ""
            return ExcludedItem(
                key=raw.key, reason=f"no single target: not exactly one group hits{spelled}"
            )
        stereotype = raw.target
        if raw.polarity == "nonneg":
            stereotype = next(index for index in others if index != raw.target)
    elif stereotype not in others:
        raise DataError(
            f"{raw.place}: the stereotyped answer is {stereotype}, which is the unknown option; "
            "expected one of the other two"
        )
    ambiguous = raw.condition is Condition.AMBIGUOUS
    if ambiguous != (raw.correct == unknown):
        stated = "ambiguous" if ambiguous else "disambiguated"
        raise DataError(
            f"{raw.place}: the context is {stated}, but the correct answer is "
            f"{capped(raw.options[raw.correct])}; expected "
            f"{'the unknown option' if ambiguous else 'one of the two groups'}"
        )
    return Item(
        **{field.name: getattr(raw, field.name) for field in fields(ItemText)},
        key=raw.key,
        stereotype=stereotype,
        counter=next(index for index in others if index != stereotype),
        unknown=unknown,
    )


RowReader = Callable[[Mapping[str, object], str, Wordings], RawItem]


def _as_published(row: Mapping[str, object], location: str) -> dict[str, Any]:
    """Return the columns that BBQ, JBBQ and CBBQ share."""
    return {
        "place": location,
        "category": name_of(row, "category", location),
        "template": name_of(row, "question_index", location),
        "polarity": polarity_of(row.get("question_polarity"), location),
        "condition": condition_of(row.get("context_condition"), location),
        **_asked(row, location),
        "options": options_of([text_of(row, name, location) for name in _ANSWERS], location),
        "correct": option_index(row.get("label"), location, "label"),
    }


def _asked(row: Mapping[str, object], location: str) -> dict[str, Any]:
    return {name: text_of(row, name, location) for name in ("context", "question")}


def read_bbq(
    row: Mapping[str, object], location: str, wordings: Wordings, *, is_whole: bool = True
) -> RawItem:
    """Read BBQ as published (Parrish et al. 2022), and JBBQ, which has the same schema.

    The target is the only answer but "unknown" whose group, or whose short text, is among
    `stereotyped_groups`. A group of four is `example_id // 4`; JBBQ's ids promise none.
    """
    del wordings
    answers, info = _decoded(row.get("answer_info")), []
    for name in _ANSWERS:
        entry = answers.get(name) if isinstance(answers, dict) else answers
        if not isinstance(entry, list) or len(entry) < 2:
            raise DataError(
                f"{location}: `answer_info` has {capped(entry)} for {name}; expected [text, group]"
                ", as JSON or as Python writes it"
            )
        info.append((str(entry[0]), str(entry[1])))
    metadata = _decoded(row.get("additional_metadata"))
    holder = metadata if isinstance(metadata, dict) else row  # EsBBQ has them in the row itself
    groups_named = _decoded(holder.get("stereotyped_groups"))
    if not isinstance(groups_named, list) or not groups_named:
        raise DataError(
            f"{location}: `additional_metadata.stereotyped_groups` is {capped(groups_named)}; "
            "expected a list of groups"
        )
    groups = {_group(str(group)) for group in groups_named}
    unknown = [index for index, (_, group) in enumerate(info) if group.lower() == "unknown"]
    hits = [
        index
        for index, (text, group) in enumerate(info)
        if index not in unknown and ({_group(group), _group(text)} & groups)
    ]
    example = option_number(row.get("example_id"), location)
    return RawItem(
        **_as_published(row, location),
        example=str(example),
        group=str(example // 4 if is_whole else example),
        unknown=unknown,
        target=hits[0] if len(hits) == 1 else None,
        whole=is_whole,
        spelled=_spelled([g for n, (_, g) in enumerate(info) if n not in unknown], groups_named),
    )


def read_kobbq(row: Mapping[str, object], location: str, wordings: Wordings) -> RawItem:
    """Read KoBBQ's TSV (Jin et al. 2024); `biased_answer` already follows the polarity.

    sample_id = category-TTTx-NNN-(amb|dis)-(bsd|cnt): template TTT, a biased context where x is b
    or d, and the polarity of the question.
    """
    sample = text_of(row, "sample_id", location)
    parts = sample.split("-")
    if len(parts) != 5 or parts[4] not in ("bsd", "cnt") or len(parts[1]) < 2:
        raise DataError(
            f"{location}: sample_id is {capped(sample)}; expected category-001a-002-amb-bsd"
        )
    category, template, number, condition, bias = parts
    options = options_of(_listed(row.get("choices"), location), location)
    return RawItem(
        place=location,
        category=category,
        example="-".join(parts[1:]),
        template=template[:-1],
        group=f"{template}-{number}",
        polarity="neg" if bias == "bsd" else "nonneg",
        condition=condition_of(condition, location),
        **_asked(row, location),
        options=options,
        correct=_among(text_of(row, "answer", location), options, "answer", location),
        unknown=find_unknown(options, wordings),
        stereotype=_among(
            text_of(row, "biased_answer", location), options, "biased_answer", location
        ),
        whole=True,
    )


def read_cbbq(row: Mapping[str, object], location: str, wordings: Wordings) -> RawItem:
    """Read CBBQ's CSV (Huang and Xiong 2024).

    Its rows name the stereotyped group in their own words (`bias_targeted_groups`); where that is
    no answer's text, the target must come from a metadata file. Ids repeat between the ambiguous
    and the disambiguated file, so the key contains which.
    """
    fields = _as_published(row, location)
    options = fields["options"]
    unknown = find_unknown(options, wordings)
    groups = {folded(part) for part in str(row.get("bias_targeted_groups") or "").split("、")}
    hits = [i for i, option in enumerate(options) if i not in unknown and folded(option) in groups]
    number = option_number(row.get("example_id"), location)
    example = f"{fields['condition']}-{fields['polarity']}-{number}"
    return RawItem(
        **fields,
        example=example,
        group=example,
        unknown=unknown,
        target=hits[0] if len(hits) == 1 else None,
        spelled=_spelled(
            [option for i, option in enumerate(options) if i not in unknown],
            str(row.get("bias_targeted_groups") or "").split("、"),
        ),
    )


def read_neutral(row: Mapping[str, object], location: str, wordings: Wordings) -> RawItem:
    """Read FairGate's own format, see docs/how-to/social-bias.md."""
    del wordings
    answers = row.get("options")
    if not isinstance(answers, list) or not all(isinstance(option, str) for option in answers):
        raise DataError(
            f"{location}: `options` is {capped(answers)}; expected a list of three texts"
        )
    example = name_of(row, "id", location)
    unknown = option_index(row.get("unknown"), location, "unknown")
    stereotype = option_index(row.get("stereotype"), location, "stereotype")
    condition = condition_of(row.get("condition"), location)
    correct = row.get("correct", unknown if condition is Condition.AMBIGUOUS else None)
    return RawItem(
        place=location,
        category=name_of(row, "category", location),
        example=example,
        template=name_of(row, "template", location),
        group=example if row.get("group") is None else name_of(row, "group", location),
        polarity=polarity_of(row.get("polarity", "neg"), location),
        condition=condition,
        **_asked(row, location),
        options=options_of(answers, location),
        correct=option_index(correct, location, "correct"),
        unknown=[unknown],
        stereotype=stereotype,
    )


FORMATS: Mapping[str, tuple[RowReader, frozenset[str]]] = {
    "kobbq": (read_kobbq, frozenset({"sample_id", "choices", "biased_answer"})),
    "jbbq": (partial(read_bbq, is_whole=False), frozenset({"answer_info", "is_additional"})),
    "bbq": (read_bbq, frozenset({"answer_info", "example_id", "question_index"})),
    "cbbq": (read_cbbq, frozenset({"bias_targeted_groups", "ans0", "label"})),
    "neutral": (read_neutral, frozenset({"options", "stereotype", "unknown", "template"})),
}
"""What reads a row of each format, and the columns that tell it; the first that fits counts."""


def format_of(columns: Sequence[str], path: str) -> str:
    """Return the format that a file's columns show. Raises DataError."""
    present = set(columns)
    for name, (_, needed) in FORMATS.items():
        if needed <= present:
            return name
    raise DataError(
        f"{path}: no format of question items has the columns {capped(sorted(present), 200)}; "
        "expected those of BBQ, KoBBQ, CBBQ, JBBQ or the neutral format: say with `columns` what "
        "they are called here"
    )


def option_number(value: object, location: str) -> int:
    """Return an example's number. Raises DataError."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}(?:\.0+)?", value.strip()):
        return int(value.strip().partition(".")[0])
    # pandas writes whole numbers beside empty cells as 3.0.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value == value // 1:
        return int(value)
    raise DataError(f"{location}: `example_id` is {capped(value)}; expected a whole number")


def _spelled(groups: Sequence[str], stereotyped: Sequence[object]) -> str:
    own, named = (listed(map(str, names), last="and") for names in (groups, stereotyped))
    return f"the answers' are {own}, stereotyped are {named}"


def _group(name: str) -> str:
    """Return a group's name as it is compared: published items write `lowSES` and `low SES`."""
    plain = re.sub(r"[\s_-]+", "", folded(name))
    return _SAME_GROUP.get(plain, plain)


def _decoded(value: object) -> object:
    """Return nested values that CSV and Parquet carry as text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    found = written_value(value.strip())
    return value if found is None else found


def _listed(value: object, location: str) -> list[str]:
    if isinstance(value, str):
        value = list_in_cell(value, location, "choices")
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise DataError(f"{location}: `choices` is no list of texts; expected ['…', '…', '…']")
    return value


def _among(text: str, options: Sequence[str], column: str, location: str) -> int:
    if text not in options:
        raise DataError(
            f"{location}: {column!r} is {capped(text)}, which is none of the options "
            f"{capped(list(options), 120)}"
        )
    return list(options).index(text)


def read_items(
    path: str,
    unknown_wordings: Sequence[str],
    *,
    metadata: str | None = None,
    categories: Sequence[str] | None = None,
    columns: Mapping[str, str] = _AS_THEY_ARE,
) -> Items:
    """Return the usable items of a file or folder in file order, and the others with the reason.

    Items without a single stereotyped group, with no or two unknown options, and of groups of four
    that are incomplete are left out and reported. `columns` names columns of the file by what they
    are called in the format. Raises DataError with `path:line` for what
    contradicts itself, a repeated id, a category that is not there, and files without an item.
    """
    targets = _targets(metadata) if metadata else {}
    raw: list[RawItem] = []
    for file in _paths(path, columns):
        read, _ = FORMATS[format_of(_named(file, table_columns(file), columns), file)]
        items_of_file = (
            read(_renamed(row.values, columns), f"{file}:{row.line}", unknown_wordings)
            for row in read_rows(file)
        )
        raw += [_with_target(item, targets, metadata or "") for item in items_of_file]
    first: dict[str, str] = {}
    for row in raw:
        if first.setdefault(row.key, row.place) != row.place:
            raise DataError(
                f"{row.place}: item {capped(row.key)} is at {first[row.key]} already; expected "
                "unique ids in a category"
            )
    all_categories = list(dict.fromkeys(row.category for row in raw))
    for name in categories or ():
        if name not in all_categories:
            raise DataError(
                f"{path}: no item is of category {capped(name)}; {suggestion(name, all_categories)}"
            )
    raw = [row for row in raw if categories is None or row.category in categories]
    broken = _broken_groups(raw)
    judged = [
        ExcludedItem(key=row.key, reason=broken[row.category, row.group])
        if row.whole and (row.category, row.group) in broken
        else judged_item(row)
        for row in raw
    ]
    items = [item for item in judged if isinstance(item, Item)]
    excluded = [item for item in judged if isinstance(item, ExcludedItem)]
    if not items:
        why = Counter(item.reason for item in excluded).most_common(1)
        raise DataError(
            f"{path}: holds no usable item"
            + (f", {why[0][1]} have the defect: {why[0][0]}" if why else "; expected at least one")
        )
    return Items(items=items, excluded=excluded, unknown_wordings=unknown_wordings)


def _named(path: str, own: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    """Return a file's columns by the format's names. Raises DataError for one that is not there."""
    for name in columns.values():
        choose_column(path, own, name, ())
    return list(_renamed(dict.fromkeys(own), columns))


def _renamed(row: Mapping[str, object], columns: Mapping[str, str]) -> Mapping[str, object]:
    if not columns:
        return row
    rest = {name: value for name, value in row.items() if name not in columns.values()}
    return rest | {name: row.get(own) for name, own in columns.items()}


def _paths(path: str, columns: Mapping[str, str]) -> list[str]:
    """Return the item files of a folder (of its folders, where it has none itself)."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    for level in ("*", "**/*"):
        tables = [p for p in sorted(folder.glob(level)) if p.suffix.lower() in _ENDINGS]
        files = [str(file) for file in tables if file.is_file() and _has_items(str(file), columns)]
        if files:
            return files
    raise DataError(f"{path}: the folder holds no {', '.join(_ENDINGS)} file with question items")


def _has_items(path: str, columns: Mapping[str, str]) -> bool:
    """Return whether a folder's file is of a known format."""
    own = table_columns(path)
    try:
        format_of(_named(path, own, columns), path)
    except DataError:
        return False  # templates and vocabularies lie beside the items
    return True


def _targets(path: str) -> Targets:
    """Return (category, example id) to the stereotyped answer, as a metadata file has it."""
    columns = table_columns(path)
    column = next((name for name in _TARGET_COLUMNS if name in columns), None)
    if column is None or not {"category", "example_id"} <= set(columns):
        raise DataError(
            f"{path}: has the columns {capped(list(columns), 200)}; expected `category`, "
            "`example_id` and `stereotype_ans` or `target_loc`"
        )
    targets = {}
    for row in read_rows(path):
        value = row.values.get(column)
        if value != 0 and str(value or "").strip().lower() in _NO_TARGET:
            continue
        place = str(row.values.get("category")), str(row.values.get("example_id")).strip()
        targets[place] = option_index(value, f"{path}:{row.line}", column)
    return targets


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
        count = 0
        for document in stance_documents(self._paths):
            if self._setting in ("full", document.label):
                count += 1
                yield document
        if not count:
            raise _without(self._setting, self._paths)


def stance_files(paths: Sequence[str]) -> list[str]:
    """Return the files meant by `paths`, those of folders in alphabetical order."""
    files: list[str] = []
    for path in paths:
        within = sorted(str(f) for f in Path(path).rglob("*") if f.suffix.lower() in _ENDINGS)
        if Path(path).is_dir() and not within:
            raise DataError(f"{path}: the folder holds no {', '.join(_ENDINGS)} file")
        files += within or [path]
    return files


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
        text_column = needed_column(path, names, None, (*TEXT_COLUMNS, "sentence"), "text")
        id_column = choose_column(path, names, None, ID_COLUMNS)
        for row in read_rows(path):
            location = f"{path}:{row.line}"
            stance = row.values.get(STANCE_COLUMN)
            if stance not in STANCES:
                raise DataError(
                    f"{location}: the stance is {capped(stance)}; expected {listed(STANCES)}"
                )
            text = checked_text(row.values.get(text_column), location, text_column)
            if not text.strip():
                raise DataError(f"{location}: the document has no text; write one or remove it")
            own = str(row.number)
            if id_column is not None:
                own = identifier(row.values.get(id_column), location, id_column)
            name = f"{Path(path).stem}/{own}"
            if ids.setdefault(name, location) != location:
                raise DataError(
                    f"{location}: id {capped(name)} is at {ids[name]} already; expected unique ids"
                )
            yield CorpusDocument(id=name, text=text, label=str(stance))
