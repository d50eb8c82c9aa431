"""Tables as source test cases: plain texts, generated cases, written pairs.

The first line of a file of generated cases is a header of provenance (it has the key
`fairgate-cases` and no text); every further line is a case:

    {"id": "g-000001", "text": "A Hispanic engineer …", "template": "career-advice",
     "frame": "{A person} …", "attributes": [{"dimension": "ethnicity", "value": "hispanic",
     "form": "adjective", "start": 2, "end": 10}, …], "operators": ["substitute:ethnicity"]}

`manner` stands beside `form` where it is not `plain`. `frame` and `attributes` together give the
text: whoever edits one edits the others, and reading refuses a row whose parts disagree.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from fairgate.domain.attributes import AttributeUse, Dimension, Form, Manner
from fairgate.domain.cases import WRITTEN, Pair, Source
from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.domain.wording import listed, quoted, shown, suggestion
from fairgate.io.tables import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    capped,
    checked_text,
    choose_column,
    identifier,
    list_in_cell,
    needed_column,
    read_rows,
    table_columns,
)
from fairgate.relations.documents import PLACE
from fairgate.relations.frames import realise

Dimensions = Callable[[], Mapping[str, Dimension]]

_TEXT_COLUMNS = (*TEXT_COLUMNS, "input", "sentence", "prompt", "question", "query")
_ID_COLUMNS = (*ID_COLUMNS, "inputID", "input_id", "source_id")
HEADER_KEY = "fairgate-cases"
FORMAT = 1
_KEYS = {"dimension", "value", "form", "manner", "start", "end"}
PAIR_COLUMNS = "relation", "source_attribute", "items"
"""What rows with written follow-ups may say beside them."""
DOCUMENT_COLUMNS = ("document", "document_id")
_SLOT = re.compile(
    r"\{(?:they|them|their|theirs|themselves|(?:an?|the|plural) (?:person|people))\}", re.IGNORECASE
)
_FOLLOW_UP = re.compile(r'([a-z0-9][a-z0-9._ -]{0,63})/([^/#@"\s](?:[^/#@"]{0,62}[^/#@"\s])?)')
"""A column of written follow-ups: category and term, as in the keys of their cases."""


def read_source_files(
    paths: Sequence[str], spec: CorpusSpec, limit: int | None = None
) -> list[Source]:
    """Return the sources of several files, one after the other; ids are unique in all of them."""
    if not paths:
        raise DataError(f"{spec.path}: the folder holds no .jsonl file; expected one at least")
    sources: list[Source] = []
    first: dict[str, str] = {}
    for path in paths:
        for source in read_sources(replace(spec, path=path)):
            if source.id in first:
                raise DataError(
                    f"{path}: source id {capped(source.id)} is in {first[source.id]} already; "
                    "expected unique ids: rename one of the two"
                )
            first[source.id] = path
            sources.append(source)
    return sources if limit is None else sources[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCase:
    """A generated source test case."""

    id: str
    text: str
    template: str
    frame: str
    attributes: tuple[AttributeUse, ...]
    operators: tuple[str, ...] = ()
    """Operators applied to its template's plain case, in order: `intensify:age`, `boundary:age`."""


def is_header(record: Mapping[str, object], path: str) -> bool:
    """Return whether a row is the header of a file of generated cases.

    Raises DataError for a header of a form that this version does not know.
    """
    if HEADER_KEY not in record:
        return False
    if record[HEADER_KEY] != FORMAT:
        raise DataError(
            f"{path}:1: `{HEADER_KEY}` is {shown(record[HEADER_KEY])}; expected {FORMAT}: make the "
            "file again with this version of FairGate"
        )
    return True


def case_row(case: GeneratedCase) -> dict[str, object]:
    """Return a case as the object of its line."""
    row: dict[str, object] = {
        "id": case.id,
        "text": case.text,
        "template": case.template,
        "frame": case.frame,
        "attributes": [
            {
                "dimension": use.dimension.id,
                "value": use.value.id,
                "form": use.form.value,
                **({} if use.manner is Manner.PLAIN else {"manner": use.manner.value}),
                "start": use.start,
                "end": use.end,
            }
            for use in case.attributes
        ],
    }
    return row | ({"operators": list(case.operators)} if case.operators else {})


def stated_attributes(
    record: Mapping[str, object], text: str, dimensions: Mapping[str, Dimension]
) -> tuple[str, tuple[AttributeUse, ...]]:
    """Return frame and attributes of a row; ("", ()) where it has none.

    Raises DataError (without a path) where a name is unknown, or where frame and attributes do not
    give the text with those spans.
    """
    frame, entries = record.get("frame"), record.get("attributes")
    if frame is None and entries is None:
        if (slot := _SLOT.search(text)) is not None:
            raise DataError(
                f"`text` holds the slot {quoted(slot.group())} and there is no `frame`; write the "
                "sentence with its slots as `frame` and what it states as `attributes`"
            )
        return "", ()
    if not isinstance(frame, str) or not isinstance(entries, list):
        raise DataError(
            f"`frame` is {shown(frame)} and `attributes` {shown(entries)}; expected a text with "
            "slots and a list, or neither of them"
        )
    uses = [_use(entry, n, dimensions) for n, entry in enumerate(entries)]
    realised = realise(frame, uses)
    if isinstance(realised, str):
        raise DataError(f"the frame cannot state its attributes: {realised}")
    if realised.text != text:
        pairs = enumerate(zip(text, realised.text, strict=False))
        first = next((n for n, (a, b) in pairs if a != b), len(text))
        raise DataError(
            f"`text` is {quoted(text)}, but frame and attributes give {quoted(realised.text)}; "
            f"change them together (first difference: character {first})"
        )
    for n, (use, right) in enumerate(zip(uses, realised.attributes, strict=True)):
        if (use.start, use.end) != (right.start, right.end):
            raise DataError(
                f"attributes[{n}]: span {use.start} to {use.end}; {quoted(right.dimension.id)} "
                f"spans {right.start} to {right.end}"
            )
    return frame, realised.attributes


def _use(entry: object, n: int, dimensions: Mapping[str, Dimension]) -> AttributeUse:
    location = f"attributes[{n}]"
    if not isinstance(entry, dict):
        raise DataError(f"{location}: found {shown(entry)}; expected an object with `dimension`")
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise DataError(
            f"{location}: unknown key {quoted(unknown[0])}; {suggestion(unknown[0], _KEYS)}"
        )
    name = _name(entry, "dimension", location)
    dimension = dimensions.get(name)
    if dimension is None:
        raise DataError(
            f"{location}: no attribute is called {quoted(name)}; {suggestion(name, dimensions)}"
        )
    value_name = _name(entry, "value", location)
    value = dimension.value(value_name)
    if value is None:
        raise DataError(
            f"{location}: {quoted(dimension.id)} has no value {dimension.hint_for(value_name)}"
        )
    start, end = entry.get("start"), entry.get("end")
    if type(start) is not int or type(end) is not int:
        raise DataError(
            f"{location}: span {shown(start)} to {shown(end)}; expected two whole numbers"
        )
    return AttributeUse(
        dimension=dimension,
        value=value,
        form=Form(_one_of(entry, "form", [form.value for form in Form], location)),
        manner=Manner(_one_of(entry, "manner", [manner.value for manner in Manner], location)),
        start=start,
        end=end,
    )


def _name(entry: Mapping[str, object], key: str, location: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise DataError(f"{location}: `{key}` is {shown(value)}; expected a name")
    return value


def _one_of(entry: Mapping[str, object], key: str, allowed: Sequence[str], location: str) -> str:
    value = entry.get(key, Manner.PLAIN.value if key == "manner" else None)
    if value not in allowed or not isinstance(value, str):
        raise DataError(f"{location}: `{key}` is {shown(value)}; expected {listed(allowed)}")
    return value


def _columns_of_pairs(path: str, names: Sequence[str]) -> list[str]:
    """Return the columns of written follow-ups and what is said beside them; none of plain texts.

    Raises DataError for one that is nearly called as a column of follow-ups is.
    """
    paired = [name for name in names if name in PAIR_COLUMNS or _FOLLOW_UP.fullmatch(name)]
    if "relation" not in paired and {*paired} <= {*PAIR_COLUMNS}:
        return []
    if wrong := next((name for name in names if "/" in name and name not in paired), None):
        raise DataError(
            f"{path}: the column {capped(wrong)} is no name of follow-ups; expected a lower-case "
            "category, `/` and a term of up to 64 characters without `/`, `#`, `@` and double "
            "quotes, such as `gender/man`: rename or remove it"
        )
    return paired


def written_pairs(values: Mapping[str, object], location: str) -> tuple[Pair, ...]:
    """Return the follow-ups that a row brings: a text in each column `category/term`, or none.

    `control/…` are control prompts. `relation` says what asks them (default: `written`),
    `source_attribute` what the source's text names; a follow-up of that very name is the text
    without it. `items` is a list, or a text with `|` between the items. Raises DataError with the
    place.
    """
    relation, own = (
        "" if (value := values.get(name)) is None else checked_text(value, location, name).strip()
        for name in PAIR_COLUMNS[:-1]
    )
    items = _items(values.get("items"), location)
    pairs = [
        Pair(
            relation=relation or WRITTEN,
            follow_up=text,
            dimension=column[1],
            attribute="" if _folded(column[2]) == _folded(own) else column[2],
            source_attribute=own,
            items=items,
        )
        for name, value in values.items()
        if (column := _FOLLOW_UP.fullmatch(name))
        and value is not None
        and (text := checked_text(value, location, name)).strip()
    ]
    if relation and not pairs:
        raise DataError(
            f"{location}: a row with a `relation` needs its follow-up, in a column that is named "
            "by category and term, such as `gender/man`"
        )
    keys = [(pair.dimension, pair.term) for pair in pairs]
    if twice := next((key for n, key in enumerate(keys) if key in keys[:n]), None):
        raise DataError(
            f"{location}: two columns are called {quoted('/'.join(twice))} but for the case of "
            "their letters; rename one"
        )
    return tuple(pairs)


def _folded(name: str) -> str:
    return " ".join(name.lower().split())


def _items(value: object, location: str) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    parts: object = value
    if isinstance(value, str):
        parts = list_in_cell(value, location, "items", between="|")
    if not isinstance(parts, list):
        raise DataError(f"{location}: 'items' holds {capped(value)}; expected a list of texts")
    items = tuple(checked_text(item, location, "items").strip() for item in parts)
    if any(not item.strip() for item in items) or len(set(map(str.casefold, items))) < len(items):
        raise DataError(f"{location}: 'items' holds an empty text or one of them twice")
    return items


def _document(values: Mapping[str, object], location: str) -> CorpusDocument | None:
    """Return the document of a row, if it names one. Raises DataError with the place."""
    if not values.get("document"):
        return None
    text = checked_text(values["document"], location, "document")
    named = PLACE.findall(text)
    if len({who.casefold() for who in named}) != 1:
        raise DataError(
            f"{location}: 'document' holds {capped(text)}; expected braces around whom it names, "
            "in the same words each time: `Sold by {the potter}.`"
        )
    rest = re.sub(r"\s+", " ", PLACE.sub("{}", text))
    if again := re.search(rf"(?<!\w){re.escape(named[0])}(?!\w)", rest, re.IGNORECASE):
        raise DataError(
            f"{location}: 'document' names {capped(again[0])} outside the braces as well; put "
            "braces around each location, or the document would be about two people"
        )
    return CorpusDocument(
        id=identifier(values.get("document_id"), location, "document_id"), text=text
    )


def own_id(content: Sequence[object], taken: Container[str]) -> str:
    """Return an id for what a row says: 12 hexadecimal digits of its hash.

    The second row that says the same has `-2` behind them, the third `-3`.
    """
    written = json.dumps(content, ensure_ascii=True, default=str)
    digits = hashlib.sha256(written.encode()).hexdigest()[:12]
    again = (f"{digits}-{number}" for number in count(2))
    return next(name for name in chain([digits], again) if name not in taken)


def read_sources(
    spec: CorpusSpec, limit: int | None = None, dimensions: Dimensions = dict
) -> list[Source]:
    """Return the sources of a CSV, TSV, JSONL or Parquet file, in file order, at most `limit`.

    Texts stay exactly as they are: quotes, line ends and trailing blanks included. Without an id
    column an id is a hash of what its row says, so that a row that moves is the same source and one
    that is edited is another (`own_id`). Rows of generated cases keep their attributes, which
    `dimensions` gives by name; the header of such a file is skipped. Columns `category/term`
    bring the follow-ups that were written for a row (`written_pairs`). Raises DataError for a
    missing column, a repeated id (naming both lines), an empty text, and a file without sources.
    """
    path = spec.path
    names = table_columns(path)
    text_column = needed_column(path, names, spec.text, _TEXT_COLUMNS, "text")
    id_column = choose_column(path, names, spec.id, _ID_COLUMNS)
    sources: list[Source] = []
    lines: dict[str, int] = {}
    dimensions_read: Mapping[str, Dimension] | None = None
    wanted = [text_column] if id_column is None else [id_column, text_column]
    paired = _columns_of_pairs(path, names)
    with_document = [*DOCUMENT_COLUMNS] if {*DOCUMENT_COLUMNS} <= {*names} else []
    for row in read_rows(path, [*wanted, *paired, *with_document]):
        if limit is not None and len(sources) == limit:
            break
        if row.number == 1 and is_header(row.values, path):
            dimensions_read = dimensions()
            continue
        location = f"{path}:{row.line}"
        if id_column is not None:
            id_ = identifier(row.values.get(id_column), location, id_column)
        else:
            content = [row.values.get(name) for name in (text_column, *paired, *with_document)]
            id_ = own_id(content, lines)
        first = lines.setdefault(id_, row.line)
        if first != row.line:
            raise DataError(
                f"{location}: source id {capped(id_)} was used on line {first} already; expected "
                "unique ids: rename one of the two"
            )
        text = checked_text(row.values.get(text_column), location, text_column)
        if not text.strip():
            raise DataError(f"{location}: source {capped(id_)} has no text; write one or remove it")
        frame, uses = "", tuple[AttributeUse, ...]()
        if dimensions_read is not None:
            try:
                frame, uses = stated_attributes(row.values, text, dimensions_read)
            except DataError as error:
                raise DataError(f"{location}: {error}") from error
        pairs = written_pairs({name: row.values.get(name) for name in paired}, location)
        document = _document(row.values, location) if with_document else None
        source = Source(id=id_, text=text, frame=frame, attributes=uses, pairs=pairs)
        sources.append(replace(source, document=document))
    if not sources:
        raise DataError(f"{path}: holds no sources; expected at least one row below the header")
    return sources
