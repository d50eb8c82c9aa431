"""Tables of outcomes: rows of a source, who is named, and what came of it, from anywhere.

A *long* table has a row an answer; a *wide* one has a row a source and a column for each identity.
Columns are found by their names, or given. What a cell means is said by the table alone: nothing is
looked up, and nothing that could be read in two ways is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import Any, NamedTuple

from fairgate.domain.errors import DataError
from fairgate.domain.wording import listed
from fairgate.io.replies import JsonPath, json_path
from fairgate.io.tables import Row, capped, checked_text, choose_column, columns_offered

_NAMES: Mapping[str, tuple[str, ...]] = {
    "source": (
        *("source", "source_id", "item", "item_id", "question", "question_id", "prompt_id"),
        *("applicant", "resume", "cv", "id"),
    ),
    "who": ("who", "identity", "group", "demographic", "term"),
    "category": ("category", "attribute", "dimension", "axis"),
    "outcome": ("outcome", "score", "rating", "label", "response", "answer", "output", "documents"),
    "repeat": ("repeat", "run", "trial"),
    "control": ("control", "is_control"),
}
"""Names by which a column is found, in this order, whatever their case."""
_CONTROL = re.compile(r"(control|neutral|placebo)([ _-]*\d+)?", re.IGNORECASE)
"""How control prompts are called where nobody says which they are."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?|nan|NaN|NA|true|false")
_YES = frozenset({"1", "true", "yes", "y", "control"})
_NO = frozenset({"0", "false", "no", "n", "", "test"})
_MOST_BY = 200
_MOST_ANSWERS = 1_000_000
_MOST_CHARACTERS = 200
_NOTHING = ("NAType", "NaTType")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeColumns:
    """Which column says what; None: found by its name, or there is none."""

    source: str | None = None
    who: str | None = None
    category: str | None = None
    outcome: Sequence[str] = ()
    """One; of a wide table those of identities and control prompts, none: all that are left."""
    repeat: str | None = None
    control: Sequence[str] = ()
    """A column that says yes or no, or values of `who` or `category`; `*` stands for anything."""
    by: str | None = None

    def given(self) -> Iterator[str]:
        """Yield the names of columns that were given, values of control prompts among them."""
        single = (self.source, self.who, self.category, self.repeat, self.by)
        yield from dict.fromkeys(filter(None, (*single, *self.outcome, *self.control)))


class OutcomeRow(NamedTuple):
    """One answer."""

    source: str
    who: str
    category: str
    is_control: bool
    repeat: str
    by: str
    outcome: Any
    """As the table has it; a text in CSV."""
    place: str
    """`scores.csv:12`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTable:
    """A table that was read, and what a reader must know of it."""

    place: str
    outcome: str
    """What the outcome is called."""
    rows: Sequence[OutcomeRow]
    controls: Sequence[str] = ()
    """Values that were said to be control prompts."""
    notices: Sequence[str] = field(default=())

    def by(self) -> dict[str, list[OutcomeRow]]:
        """Return the rows of each value of `by`, in their order; one part without it."""
        parts: dict[str, list[OutcomeRow]] = {}
        for row in self.rows:
            parts.setdefault(row.by, []).append(row)
        return parts


def outcome_table(
    rows: Iterable[Row], names: Sequence[str], columns: OutcomeColumns, place: str
) -> OutcomeTable:
    """Read rows whose columns are `names`. Raises DataError with the row and the column.

    A column may be a path into nested rows: `$.metadata.source`.
    """
    paths = {name: _path(name, place) for name in columns.given() if name.startswith("$")}
    chosen = _Chosen.of([*names, *paths], columns, place)
    answers = (one for row in rows for one in chosen.answers(_reached(row, paths)))
    read = [*islice(answers, _MOST_ANSWERS + 1)]
    if len(read) > _MOST_ANSWERS:
        raise DataError(
            f"{place}: holds more than {_MOST_ANSWERS:,} answers; judge a part of it at a time"
        )
    if not read:
        raise DataError(
            f"{place}: has a header and no rows; expected one row an answer: a source, who is "
            "named, the outcome"
        )
    read = chosen.with_controls(read)
    return OutcomeTable(
        place=place,
        outcome=chosen.outcome_name,
        rows=read,
        controls=chosen.controls,
        notices=[*chosen.told(read), *_layout(read, chosen)],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The columns of a table, by what they say."""

    place: str
    names: Sequence[str]
    source: str
    who: str | None
    category: str | None
    outcomes: Sequence[str]
    repeat: str | None
    control: str | None
    """A column of yes and no."""
    controls: Sequence[str]
    """Values that are control prompts."""
    by: str | None
    is_assumed: bool = False
    """Whether nobody said that the table is wide: its cells must be numbers then."""

    @classmethod
    def of(cls, names: Sequence[str], columns: OutcomeColumns, place: str) -> _Chosen:
        """Find the columns. Raises DataError for one that is not there, or not to be found."""
        folded = {name.strip().casefold(): name for name in reversed(names)}
        taken: set[str] = set()

        def found(role: str, wanted: str | None) -> str | None:
            if wanted is not None:
                column = choose_column(place, names, wanted, ())
            else:
                known = (folded.get(name) for name in _NAMES.get(role, ()))
                column = next((name for name in known if name and name not in taken), None)
            if column is not None:
                if column in taken:
                    raise DataError(
                        f"{place}: column {capped(column)} is named twice; `{role}` needs another "
                        f"one. {columns_offered(names)}"
                    )
                taken.add(column)
            return column

        taken |= {*columns.outcome} & {*names}
        flag = next((each for each in columns.control if each in names), None)
        if flag is not None and len(columns.control) > 1:
            raise DataError(
                f"{place}: {listed(columns.control, last='and')} are a column and values; expected "
                "one column of yes and no, or values of `who` or `category`"
            )
        by = found("by", columns.by)
        source = found("source", columns.source)
        if source is None:
            raise DataError(
                f"{place}: no column says which rows belong together (one question, one résumé: "
                f"the source); name it with `source`. {columns_offered(names)}"
            )
        who, category = found("who", columns.who), found("category", columns.category)
        repeat = found("repeat", columns.repeat)
        is_value = bool(columns.control) and flag is None
        control = flag if is_value or flag is not None else found("control", None)
        taken |= set(filter(None, [control]))
        outcomes = [each for each in columns.outcome if choose_column(place, names, each, ())]
        is_assumed = who is None and not outcomes
        if who is not None:
            outcomes = outcomes or [each for each in [found("outcome", None)] if each]
            if len(outcomes) != 1:
                many = "no column has" if not outcomes else f"{len(outcomes)} columns have"
                raise DataError(
                    f"{place}: {many} the outcome; expected one beside `{who}` (who is named): "
                    f"name it with `outcome`. {columns_offered(names)}"
                )
        else:
            outcomes = outcomes or [name for name in names if name not in taken]
            if len(outcomes) < 2:
                raise DataError(
                    f"{place}: no column says who is named, and there are no columns of several "
                    "identities: name it with `who` (a row an answer), or the columns with "
                    f"`outcome`, once for each identity. {columns_offered(names)}"
                )
        return cls(
            place=place, names=names, source=source, who=who, category=category,
            outcomes=outcomes, repeat=repeat, control=control,
            controls=[] if flag is not None else list(columns.control), by=by,
            is_assumed=is_assumed,
        )  # fmt: skip

    @property
    def outcome_name(self) -> str:
        """What the outcome is called; of a wide table nothing says it."""
        return self.outcomes[0] if self.who is not None else "score"

    def answers(self, row: Row) -> Iterator[OutcomeRow]:
        """Yield the answers of a row: one, or of a wide table one a column."""
        place = f"{self.place}:{row.line}"
        values = row.values
        source = self._text(values, self.source, place, most=None)
        category = "" if self.category is None else self._text(values, self.category, place)
        is_control = self.control is not None and self._flag(values, self.control, place)
        repeat = "" if self.repeat is None else cell_text(values.get(self.repeat))
        by = "" if self.by is None else self._text(values, self.by, place)
        for column in self.outcomes:
            who = column if self.who is None else self._text(values, self.who, place)
            if self.is_assumed and not _is_number(values.get(column)):
                raise DataError(
                    f"{place}: column {capped(column)} holds {capped(values.get(column))}; no "
                    "column says who is named, so that all others were taken for identities with "
                    "a number each: name the column with `who`, or theirs with `outcome`. "
                    f"{columns_offered(self.names)}"
                )
            yield OutcomeRow(
                source, who, category, is_control, repeat, by, values.get(column), place
            )

    def _text(
        self,
        values: Mapping[str, object],
        column: str,
        place: str,
        most: int | None = _MOST_CHARACTERS,
    ) -> str:
        if isinstance(values.get(column), list | dict):
            raise DataError(
                f"{place}: column {capped(column)} holds {capped(values[column])}; expected one "
                "text or number"
            )
        text = checked_text(cell_text(values.get(column)), place, column).strip()
        is_blank = not text and not (column in (self.who, self.category) and "" in self.controls)
        if is_blank:
            raise DataError(
                f"{place}: column {capped(column)} is empty; expected a value in every row"
                + (
                    ": where rows without one are control prompts, say so with `--control ''`"
                    if column == self.who
                    else ""
                )
            )
        if most is not None and len(text) > most:
            raise DataError(
                f"{place}: column {capped(column)} holds {len(text):,} characters; expected a name "
                f"of at most {most}"
            )
        return text

    def _flag(self, values: Mapping[str, object], column: str, place: str) -> bool:
        text = cell_text(values.get(column)).strip().casefold()
        if text not in _YES | _NO:
            raise DataError(
                f"{place}: column {capped(column)} holds {capped(values.get(column))}; expected "
                "true or false, whether the row is a control prompt"
            )
        return text in _YES

    def with_controls(self, rows: Sequence[OutcomeRow]) -> list[OutcomeRow]:
        """Mark the rows of control prompts. Raises DataError for a value that no row has."""
        if self.control is not None:
            return list(rows)
        used = {value: None for row in rows for value in (row.who, row.category)}
        for wanted in self.controls:
            if not any(_is(value, wanted) for value in used):
                raise DataError(
                    f"{self.place}: no row has {capped(wanted)} as who is named or as category, "
                    f"and no column is called so; expected one of {_offered(used)}"
                )
        marked = {value: self._is_control(value) for value in used}
        return [row._replace(is_control=marked[row.who] or marked[row.category]) for row in rows]

    def _is_control(self, value: str) -> bool:
        if self.controls:
            return any(_is(value, wanted) for wanted in self.controls)
        return _CONTROL.fullmatch(value) is not None

    def told(self, rows: Sequence[OutcomeRow]) -> Iterator[str]:
        """Yield how the table was understood."""
        people = len({(row.category, row.who) for row in rows if not row.is_control})
        prompts = {(row.category, row.who) for row in rows if row.is_control}
        shape = "a row an answer" if self.who else f"{len(self.outcomes)} columns of answers"
        roles = {
            "source": self.source,
            "who": self.who,
            "category": self.category,
            "outcome": self.outcomes[0] if self.who else None,
            "repeat": self.repeat,
            "one verdict for each": self.by,
        }
        parts = [f"{role} {listed([column[:60]])}" for role, column in roles.items() if column]
        yield (
            f"{shape}, {len(rows):,} answers: {', '.join(parts)}; {people:,} identities, "
            f"{len(prompts):,} control prompts"
        )


def _path(text: str, place: str) -> JsonPath:
    try:
        return json_path(text)
    except ValueError as error:
        raise DataError(f"{place}: {error}") from error


def _reached(row: Row, paths: Mapping[str, JsonPath]) -> Row:
    """Return a row with the values that paths lead to; None where there is none, or more."""
    if not paths:
        return row
    found = {name: path.find(row.values) for name, path in paths.items()}
    reached = {name: values[0] if len(values) == 1 else None for name, values in found.items()}
    return row._replace(values={**row.values, **reached})


def _layout(rows: Sequence[OutcomeRow], chosen: _Chosen) -> Iterator[str]:
    """Yield what of a table lowers what can be said, with counts and the next step.

    Raises DataError where no source has two prompts, every row is a control prompt, or the verdicts
    would be too many.
    """
    own: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for row in rows:
        own.setdefault((row.by, row.source), set()).add((row.category, row.who))
    if all(len(prompts) == 1 for prompts in own.values()):
        raise DataError(
            f"{chosen.place}: none of {len(own):,} sources (column {capped(chosen.source)}) has "
            "rows for two identities, so that nothing can be compared; expected the same source "
            f"once for each identity. {columns_offered(chosen.names)}"
        )
    prompts_of: dict[str, set[tuple[str, str]]] = {}
    for (by, _), prompts in own.items():
        prompts_of.setdefault(by, set()).update(prompts)
    if len(prompts_of) > _MOST_BY:
        raise DataError(
            f"{chosen.place}: column {capped(chosen.by)} has {len(prompts_of):,} values; at most "
            f"{_MOST_BY} verdicts are given at once"
        )
    if all(row.is_control for row in rows):
        raise DataError(
            f"{chosen.place}: every row is a control prompt; expected rows of identities beside "
            "them: see `control`"
        )
    lacking = [len(prompts_of[by]) - len(prompts) for (by, _), prompts in own.items()]
    cells = sum(map(len, own.values()))
    if gaps := sum(lacking):
        yield (
            f"{gaps:,} of {gaps + cells:,} combinations of source and prompt have no row; "
            f"{lacking.count(0):,} of {len(own):,} sources have all: what is missing is not "
            "guessed, and makes ranges wider"
        )
    if more := len(rows) - cells:
        why = "repeats" if chosen.repeat else "repeats, or another column tells them apart"
        yield (
            f"{more:,} rows are further answers to the same source and prompt: {why}; they are "
            "averaged"
        )


def _is_number(value: object) -> bool:
    text = cell_text(value).strip()
    return not text or _NUMBER.fullmatch(text) is not None


def _is(value: str, wanted: str) -> bool:
    return value == wanted or (bool(value) and fnmatchcase(value, wanted))


def _offered(values: Iterable[str]) -> str:
    some = [value[:40] for value in values if value]
    more = f" and {len(some) - 12} more" if len(some) > 12 else ""
    return f"{listed(some[:12])}{more}"


def cell_text(value: object) -> str:
    """Return a cell as text: nothing where it is empty or no number, `1` for 1.0."""
    if isinstance(value, str):
        return value
    if hasattr(value, "item") and not isinstance(value, list | dict):
        value = value.item()
    if value is None or type(value).__name__ in _NOTHING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.17g}" if value % 1 else f"{value:.0f}"
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def rows_of(frame: Any) -> tuple[list[Row], list[str]]:
    """Return rows and names of columns of a frame, of columns by name, or of a list of mappings.

    Frames are whatever has `columns` and gives one by its name: pandas' and polars', say. Raises
    DataError for anything else, and for columns of different lengths.
    """
    if isinstance(frame, Mapping):
        columns = {str(name): list(values) for name, values in frame.items()}
    elif isinstance(frame, Sequence) and all(isinstance(row, Mapping) for row in frame):
        names = list(dict.fromkeys(chain.from_iterable(frame)))
        columns = {str(name): [row.get(name) for row in frame] for name in names}
    elif hasattr(frame, "column_names"):
        columns = {str(name): frame[name].to_pylist() for name in frame.column_names}
    elif hasattr(frame, "columns"):
        columns = {str(name): list(frame[name]) for name in frame.columns}
    else:
        raise DataError(
            f"the table is a {type(frame).__name__}; expected a frame, columns by name, or a list "
            "of mappings"
        )
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise DataError(
            f"the columns have {listed(map(str, sorted(lengths)), last='and')} values; expected as "
            "many in each"
        )
    cells = zip(*columns.values(), strict=True)
    rows = [
        Row(number, number, dict(zip(columns, values, strict=True)))
        for number, values in enumerate(cells, 1)
    ]
    return rows, list(columns)
