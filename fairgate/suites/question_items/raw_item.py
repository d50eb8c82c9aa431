"""What every format is read into before anything is decided about it, and the checks it passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.errors import DataError
from fairgate.domain.items import Condition, ExcludedItem, Item
from fairgate.io.lines import capped, checked_text
from fairgate.relations.oracles.folding import folded

_CONDITIONS = {
    "ambig": Condition.AMBIGUOUS,
    "amb": Condition.AMBIGUOUS,
    "ambiguous": Condition.AMBIGUOUS,
    "disambig": Condition.DISAMBIGUATED,
    "dis": Condition.DISAMBIGUATED,
    "disambiguous": Condition.DISAMBIGUATED,
    "disambiguated": Condition.DISAMBIGUATED,
}
_POLARITIES = {"neg": "neg", "nonneg": "nonneg", "non_neg": "nonneg", "non-neg": "nonneg"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawItem:
    """A row of an item file, typed but not yet judged; `place` is `path:line`."""

    place: str
    category: str
    example: str
    template: str
    group: str
    polarity: str
    condition: Condition
    context: str
    question: str
    options: tuple[str, str, str]
    correct: int
    unknown: Sequence[int]
    """Options that mean "unknown"; exactly one in a usable item."""
    target: int | None
    """The option that names the stereotyped group; None where not exactly one does."""
    stereotype: int | None = None
    """The stereotyped answer, where the format names it itself."""
    whole: bool = False
    """Whether the format promises groups of four."""

    @property
    def key(self) -> str:
        """Return `<category>/<example id>`."""
        return f"{self.category}/{self.example}"


def text_of(row: Mapping[str, object], column: str, place: str) -> str:
    """Return a text cell that is not empty. Raises DataError."""
    value = row.get(column)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}"
    if value is None or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{place}: {column!r} is missing or empty; expected text")
    return checked_text(value, place, column)


def name_of(row: Mapping[str, object], column: str, place: str) -> str:
    """Return a name that keys can hold: printable, without `@`, `/` or `#`."""
    value = text_of(row, column, place).strip()
    if len(value) > 200 or not value.isprintable() or set(value) & set("@/#"):
        raise DataError(
            f"{place}: {column!r} holds {capped(value)}; expected a name without `@`, `/`, `#`"
        )
    return value


def option_index(value: object, place: str, column: str) -> int:
    """Return the index of an option, 0 to 2. Raises DataError."""
    if isinstance(value, str) and value.strip() in {"0", "1", "2", "0.0", "1.0", "2.0"}:
        return int(value.strip()[0])
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (0, 1, 2):
        return int(value)
    raise DataError(f"{place}: {column!r} is {capped(value)}; expected 0, 1 or 2")


def condition_of(value: object, place: str) -> Condition:
    """Return the context's condition. Raises DataError."""
    found = _CONDITIONS.get(str(value).strip().lower())
    if found is None:
        raise DataError(
            f"{place}: the context condition is {capped(value)}; expected `ambig` or `disambig`"
        )
    return found


def polarity_of(value: object, place: str) -> str:
    """Return `neg` or `nonneg`. Raises DataError."""
    found = _POLARITIES.get(str(value).strip().lower())
    if found is None:
        raise DataError(
            f"{place}: the question polarity is {capped(value)}; expected `neg` or `nonneg`"
        )
    return found


def options_of(options: Sequence[str], place: str) -> tuple[str, str, str]:
    """Return three distinguishable options. Raises DataError."""
    if len(options) != 3:
        raise DataError(f"{place}: {len(options)} answer options; expected three")
    if len({folded(option) for option in options}) < 3:
        raise DataError(
            f"{place}: two of the options {capped(list(options), 120)} are the same text; no "
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
    known = [index for index in range(3) if index != unknown]
    stereotype = raw.stereotype
    if stereotype is None:
        if raw.target not in known:
            return ExcludedItem(key=raw.key, reason="no single target: not exactly one group hits")
        stereotype = raw.target
        if raw.polarity == "nonneg":
            stereotype = next(index for index in known if index != raw.target)
    elif stereotype not in known:
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
        key=raw.key,
        category=raw.category,
        template=raw.template,
        group=raw.group,
        polarity=raw.polarity,
        condition=raw.condition,
        context=raw.context,
        question=raw.question,
        options=raw.options,
        stereotype=stereotype,
        counter=next(index for index in known if index != stereotype),
        unknown=unknown,
        correct=raw.correct,
    )
