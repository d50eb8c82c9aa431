"""Generated source cases as rows of a JSON Lines file: their form, and reading them back.

The first line of such a file is a header of provenance (it has the key `fairgate-cases` and no
text); every further line is a case:

    {"id": "g-000001", "text": "A Hispanic engineer …", "template": "career-advice",
     "frame": "{A person} …", "attributes": [{"dimension": "ethnicity", "value": "hispanic",
     "form": "adjective", "start": 2, "end": 10}, …], "operators": ["substitute:ethnicity"]}

`manner` stands beside `form` where it is not `plain`. `frame` and `attributes` together give the
text: whoever edits one edits the others, and reading refuses a row whose parts disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.attributes import AttributeUse, Dimension, Form, Manner
from fairgate.domain.errors import DataError
from fairgate.domain.wording import listed, quoted, shown, suggestion
from fairgate.relations.frames import Unrealisable, realise

HEADER_KEY = "fairgate-cases"
FORMAT = 1
_KEYS = {"dimension", "value", "form", "manner", "start", "end"}


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
        "attributes": [_use_row(use) for use in case.attributes],
    }
    if case.operators:
        row["operators"] = list(case.operators)
    return row


def _use_row(use: AttributeUse) -> dict[str, object]:
    row: dict[str, object] = {
        "dimension": use.dimension.id,
        "value": use.value.id,
        "form": use.form.value,
    }
    if use.manner is not Manner.PLAIN:
        row["manner"] = use.manner.value
    return row | {"start": use.start, "end": use.end}


def stated_attributes(
    record: Mapping[str, object], text: str, dimensions: Mapping[str, Dimension]
) -> tuple[str, tuple[AttributeUse, ...]]:
    """Return frame and attributes of a row; ("", ()) where it has none.

    Raises DataError (without a path) where a name is unknown, or where frame and attributes do not
    give the text with those spans.
    """
    frame, entries = record.get("frame"), record.get("attributes")
    if frame is None and entries is None:
        return "", ()
    if not isinstance(frame, str) or not isinstance(entries, list):
        raise DataError(
            f"`frame` is {shown(frame)} and `attributes` {shown(entries)}; expected a text with "
            "slots and a list, or neither of them"
        )
    uses = [_use(entry, n, dimensions) for n, entry in enumerate(entries)]
    realised = realise(frame, uses)
    if isinstance(realised, Unrealisable):
        raise DataError(f"the frame cannot state its attributes: {realised.reason}")
    if realised.text != text:
        raise DataError(
            f"`text` is {quoted(text)}, but frame and attributes give {quoted(realised.text)}; "
            f"change them together (first difference: character "
            f"{_first_difference(text, realised.text)})"
        )
    for n, (use, right) in enumerate(zip(uses, realised.attributes, strict=True)):
        if (use.start, use.end) != (right.start, right.end):
            raise DataError(
                f"attributes[{n}]: span {use.start} to {use.end}; {quoted(right.dimension.id)} "
                f"stands from {right.start} to {right.end}"
            )
    return frame, realised.attributes


def _first_difference(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _use(entry: object, n: int, dimensions: Mapping[str, Dimension]) -> AttributeUse:
    place = f"attributes[{n}]"
    if not isinstance(entry, dict):
        raise DataError(f"{place}: found {shown(entry)}; expected an object with `dimension`")
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise DataError(
            f"{place}: unknown key {quoted(unknown[0])}; {suggestion(unknown[0], _KEYS)}"
        )
    dimension = dimensions.get(_name(entry, "dimension", place))
    if dimension is None:
        name = _name(entry, "dimension", place)
        raise DataError(
            f"{place}: no attribute is called {quoted(name)}; {suggestion(name, dimensions)}"
        )
    value = dimension.value(_name(entry, "value", place))
    if value is None:
        known = dimension.known(_name(entry, "value", place))
        raise DataError(f"{place}: {quoted(dimension.id)} has no value {known}")
    start, end = entry.get("start"), entry.get("end")
    if type(start) is not int or type(end) is not int:
        raise DataError(f"{place}: span {shown(start)} to {shown(end)}; expected two whole numbers")
    return AttributeUse(
        dimension=dimension,
        value=value,
        form=Form(_one_of(entry, "form", [form.value for form in Form], place)),
        manner=Manner(_one_of(entry, "manner", [manner.value for manner in Manner], place)),
        start=start,
        end=end,
    )


def _name(entry: Mapping[str, object], key: str, place: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise DataError(f"{place}: `{key}` is {shown(value)}; expected a name")
    return value


def _one_of(entry: Mapping[str, object], key: str, known: Sequence[str], place: str) -> str:
    value = entry.get(key, Manner.PLAIN.value if key == "manner" else None)
    if value not in known or not isinstance(value, str):
        raise DataError(f"{place}: `{key}` is {shown(value)}; expected {listed(known)}")
    return value
