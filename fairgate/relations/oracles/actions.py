"""What reads an agent's actions: which tools it calls, with which arguments.

An answer is one call or a list of calls in JSON, alone or as the first such value in a text. What
is read is a line: `set_limit(limit: 5000±5%, reason: "new customer"); notify()`. Names stand as
they are, texts folded as labels are, numbers with the difference that the task tolerates: two lines
say by themselves whether they agree. Calls are sorted unless the task compares their order.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.json_text import read_json
from fairgate.domain.schema import ActionsPolicy
from fairgate.domain.units import Reading, Reason, Value
from fairgate.io.replies import json_path
from fairgate.relations.oracles.oracle import Oracle, majority, reading
from fairgate.relations.oracles.text import fold, spoken_spans

NO_ACTION = "no action"
_MOST_READ, _MOST_LINE, _MOST_TEXT = 100_000, 2_000, 60
"""Characters of an answer, of what is read, and of a text in it; longer texts end in a hash."""
_BEGINNING = re.compile(r'\{\s*"|\[\s*\{')
"""Of an object or a list of objects; `[1]` and `{name}` in a sentence are none."""
_NAME = re.compile(r"[^\W\d][\w.-]{0,63}|")
_TOLERATED = re.compile(r"(-?\d[\d.e+-]*)±([\d.e+-]+)(%?)")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PART = re.compile(rf"(?:{_QUOTED}|[\w.-]+)(?=\()|[\w.-]+: (?:{_QUOTED}|[^\s,;()\[\]{{}}]+)")


@dataclass(frozen=True, slots=True)
class ActionsOracle(Oracle):
    """Reads the calls in an answer; two are the same within what the task tolerates."""

    rule: ActionsPolicy
    is_hidden: bool = False
    """Whether texts are read as hashes (`redact: hash`): reports show what is read."""

    @property
    def id(self) -> str:
        """Return how answers are read, with the task's own rule."""
        return f"actions/1 {self.rule.model_dump_json()}"

    def stop(self) -> Stop:
        """Return that the first JSON value completes an answer: no phrase does."""
        return Stop(phrases=())

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the calls; unreadable where there is none, or not as the rule places them."""
        del case
        try:
            return reading(self._line((execution.response or "").strip()))
        except (ValueError, RecursionError):
            return reading(None)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether two readings are the same calls, within the tolerance."""
        return agree(left.value, right.value)

    def _line(self, text: str) -> str:
        found, is_open = text if text == "[]" else first_value(text), False
        if found != text:  # texts in calls may hold tags of thinking: there they are none
            spans, is_open = spoken_spans(text)
            text = " ".join(text[start:end] for start, end in spans)
            found = first_value(text)
        is_silent = found is None and not is_open and not _BEGINNING.search(text)
        if is_silent and self.rule.without_call == "no-action":
            return NO_ACTION
        value = read_json(found or "")
        calls = [self._call(call) for call in (value if isinstance(value, list) else [value])]
        line = "; ".join(calls if self.rule.order else sorted(calls, key=_split))
        if len(line) > _MOST_LINE:
            raise ValueError
        return line or NO_ACTION

    def _call(self, call: object) -> str:
        name, tool = "", self.rule.tool
        given = next(iter(json_path(self.rule.arguments).find(call)), None)
        if tool is not None:
            name, given = next(iter(json_path(tool).find(call)), ""), given or {}
        given = read_json(given) if isinstance(given, str) else given
        if not (isinstance(name, str) and isinstance(given, dict) and (tool is None or name)):
            raise ValueError
        return f"{self._name(name)}({self._members(given)})"

    def _members(self, given: dict[str, Any], before: str = "") -> str:
        return ", ".join(
            f"{self._name(name)}: {self._written(given[name], before + name)}"
            for name in sorted(given)
            if before + name not in self.rule.ignore
        )

    def _written(self, value: Any, place: str) -> str:
        if isinstance(value, dict):
            return f"{{{self._members(value, f'{place}.')}}}"
        if isinstance(value, list):
            return f"[{', '.join(self._written(one, place) for one in value)}]"
        most, percent = self.rule.tolerance.get(place), self.rule.tolerance_percent.get(place)
        if isinstance(value, str):
            if most or percent:
                raise ValueError  # a number was announced
            return self._text(fold(value).replace("\n", " ").strip().rstrip("."))
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, float):
            value = f"{(Decimal(repr(value)) + 0).normalize():f}"  # 5e3 and 5000.0 are 5000
        return f"{value}" + (f"±{most:g}" if most else f"±{percent:g}%" if percent else "")

    def _name(self, name: str) -> str:
        return name if _NAME.fullmatch(name) else self._text(name)

    def _text(self, text: str) -> str:
        if self.is_hidden or len(text) > _MOST_TEXT:
            begin = "" if self.is_hidden else f"{text[: _MOST_TEXT // 2]}… "
            text = f"{begin}#{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        return json.dumps(text, ensure_ascii=False).replace("±", "\\u00b1")


@lru_cache(maxsize=64)
def first_value(text: str) -> str | None:
    """Return the text of the first JSON object, or list of objects; None where none is complete."""
    begin = _BEGINNING.search(text)
    if begin is None or len(text) > _MOST_READ:
        return None
    try:
        return text[begin.start() : json.JSONDecoder().raw_decode(text, begin.start())[1]]
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def _split(line: str) -> tuple[str, tuple[Decimal, ...]]:
    """Return a line without its tolerated numbers, and these."""
    return _TOLERATED.sub(r"±\2\3", line), tuple(Decimal(n[1]) for n in _TOLERATED.finditer(line))


def agree(left: Value | None, right: Value | None) -> bool:
    """Return whether two values are equal, or the same calls within the tolerance they name.

    A tolerance in per cent is of the greater number. Symmetric, and not transitive.
    """
    if left == right or not (_is_tolerant(left) and _is_tolerant(right)):
        return left == right
    (without, numbers), (other, others) = _split(str(left)), _split(str(right))
    return without == other and all(
        abs(a - b) <= Decimal(how[2]) * (max(abs(a), abs(b)) / 100 if how[3] else 1)
        for how, a, b in zip(_TOLERATED.finditer(str(left)), numbers, others, strict=True)
    )


def _is_tolerant(value: Value | None) -> bool:
    return isinstance(value, str) and "±" in value and value.endswith(")")


def usual(readings: Sequence[Reading], source: Reading) -> Reading:
    """Return what most readings agree with, as `majority` does; of such calls the middle ones.

    Where numbers are tolerated, each reading counts those that agree with it. Of the readings with
    the greatest count, which must agree with each other or with the source's, it is the one in the
    middle by its numbers (the lower of two).
    """
    many = Counter(one.value for one in readings if one.value is not None)
    if not any(map(_is_tolerant, many)):
        return majority(readings, source)
    counts = {one: sum(n for other, n in many.items() if agree(one, other)) for one in many}
    leaders = [str(one) for one, count in counts.items() if count == max(counts.values())]
    if not all(agree(one, other) for one in leaders for other in leaders):
        leaders = [one for one in leaders if agree(one, source.value)]
    if not leaders:
        return Reading(value=None, reason=Reason.NO_MAJORITY)
    return Reading(value=sorted(leaders, key=_split)[(len(leaders) - 1) // 2])


def what_differs(value: Value | None, other: Value | None) -> str:
    """Return `limit: 5000 instead of limit: 20000`; empty where these are no calls, or they agree.

    Names and texts in it are the system's own: whoever shows it escapes and cuts it.
    """
    lines = [str(value), str(other)]
    if agree(value, other) or not all(line.endswith((")", NO_ACTION)) for line in lines):
        return ""
    here, there = (_PART.findall(line) for line in lines)

    def only(own: list[str], others: list[str]) -> str:
        left = [one for one in own if not any(agree(f"({one})", f"({each})") for each in others)]
        return ", ".join(_TOLERATED.sub(r"\1", one) for one in left)

    found = only(here, there), only(there, here)
    return f"{found[0] or 'nothing'} instead of {found[1] or 'nothing'}" if any(found) else ""
