"""A column of a table as labels of documents."""

from __future__ import annotations

import math

from fairgate.domain.errors import DataError
from fairgate.io.lines import capped, checked_text

_NEUTRAL_NAMES = frozenset({"label", "labels", "class", "category", "target"})
_FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_MOST_LABELS = 100


class LabelReader:
    """Turns the values of one column into labels; refuses what cannot be a label.

    A column that is named after a label (`toxic`) holds flags: true and 1 become `toxic`, false
    and 0 become `non-toxic`. In a column with a neutral name (`label`) values stay as they are.
    Empty values become None.
    """

    def __init__(self, column: str) -> None:
        """Read values of `column`."""
        self._column = column
        self._named_after_label = column.lower() not in _NEUTRAL_NAMES
        self._seen: set[str] = set()
        self._flags: bool | None = None
        """Whether the values are flags; unknown before the first value."""

    def read(self, value: object, place: str) -> str | None:
        """Return the label; raises DataError for scores, nested values and too many labels."""
        text = self._text_of(value, place)
        if not text:
            return None
        flag = _FLAGS.get(text.lower()) if self._named_after_label else None
        if self._flags is None:
            self._flags = flag is not None
        if self._flags != (flag is not None):
            raise DataError(
                f"{place}: column {self._column!r} mixes {capped(text)} with other kinds of "
                "values; expected either only true/false (or 1/0), or only names of labels"
            )
        if flag is not None:
            return self._column if flag else f"non-{self._column}"
        self._seen.add(text)
        if len(self._seen) > _MOST_LABELS:
            raise DataError(
                f"{place}: column {self._column!r} holds more than {_MOST_LABELS} different "
                f"values, the last {capped(text)}; expected labels: name another column as `label`"
            )
        return text

    def _text_of(self, value: object, place: str) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if isinstance(value, str):
            if self._named_after_label and _is_score(value):
                raise self._refused(value, place)
            return checked_text(value, place, self._column).strip()
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
            return str(int(value))
        raise self._refused(value, place)

    def _refused(self, value: object, place: str) -> DataError:
        return DataError(
            f"{place}: column {self._column!r} holds {capped(value)}, which is no label; expected "
            "a name, true/false or a whole number: turn scores into labels with a threshold, or "
            "name another column as `label`"
        )


def _is_score(text: str) -> bool:
    try:
        return not float(text).is_integer()
    except (ValueError, OverflowError):
        return False
