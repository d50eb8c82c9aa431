"""What reads an agent's actions: which tools it calls, with which arguments.

An answer is a call or a list of calls, the first such JSON in a text. What is read is a line:
`set_limit(limit: 5000, reason: "new customer"); notify()`. Texts are folded as labels are. A number
that may differ a little is a score (`score.py`) at its path, in a suite of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.json_text import read_json
from fairgate.domain.schema import ActionsPolicy
from fairgate.domain.units import Reading, Value
from fairgate.io.replies import json_path
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.text import fold, spoken_spans

NO_ACTION = "no action"
_MOST_READ, _MOST_LINE, _MOST_TEXT = 100_000, 2_000, 60
"""Characters of an answer, of what is read, and of a text in it; longer texts end in a hash."""
_BEGINNING = re.compile(r'\{\s*"|\[\s*\{')  # of objects: `[1]` and `{name}` in words are none
_NAME = re.compile(r"[^\W\d][\w.-]{0,63}|")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_LINE = re.compile(rf"(?:{_QUOTED}|[\w.-]*)\((?:\)|(?:{_QUOTED}|[\w.-]+): ).*|{NO_ACTION}")
_MEMBER = rf"(?:{_QUOTED}|[\w.-]+): "


def _list_of_lists(depth: int) -> str:
    """Match a list with others in it, so deep; a deeper one is told with its whole line."""
    inner = f"|{_list_of_lists(depth - 1)}" if depth else ""
    return rf'\[(?:{_QUOTED}|[^\[\]"]{inner})*+\]'


_LIST = _list_of_lists(4)
_PART = re.compile(
    rf"(?:{_QUOTED}|[\w.-]+)(?=\()|{_MEMBER}(?:{_QUOTED}|{_LIST}|[^\s,;()\[\]{{}}]+)"
)
"""A call's name, or a member whose value is a text, a number or a list."""


@dataclass(frozen=True, slots=True)
class ActionsOracle(Oracle):
    """Reads the calls in an answer."""

    rule: ActionsPolicy
    is_hidden: bool = False

    @property
    def id(self) -> str:
        """Return how answers are read, with the task's own rule."""
        return f"actions/2 {self.rule.model_dump_json(exclude_defaults=True)}"

    def stop(self) -> Stop:
        """Let the first JSON value complete an answer; no phrase does."""
        return Stop(phrases=())

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the calls; unreadable where there is none, or not as the rule places them."""
        del case
        with suppress(ValueError, RecursionError):
            return reading(self._line((execution.response or "").strip()))
        return reading(None)

    def _line(self, text: str) -> str:
        json_text, is_open = text if text == "[]" else first_value(text), False
        if json_text != text:  # texts in calls may hold tags of thinking: there they are none
            spans, is_open = spoken_spans(text)
            text = " ".join(text[start:end] for start, end in spans)
            json_text = first_value(text)
        is_silent = json_text is None and not is_open and not _BEGINNING.search(text)
        if is_silent and self.rule.without_call == "no-action":
            return NO_ACTION
        value = read_json(json_text or "")
        calls = [self._call(call) for call in (value if isinstance(value, list) else [value])]
        line = "; ".join(calls if self.rule.order else sorted(calls))
        if len(line) > _MOST_LINE:
            raise ValueError
        return line or NO_ACTION

    def _call(self, call: object) -> str:
        name: Any = ""
        tool = self.rule.tool
        arguments = next(iter(json_path(self.rule.arguments).find(call)), None)
        if tool is not None:
            name, arguments = next(iter(json_path(tool).find(call)), None), arguments or {}
        arguments = read_json(arguments) if isinstance(arguments, str) else arguments
        if not (isinstance(name, str) and isinstance(arguments, dict) and (tool is None or name)):
            raise ValueError
        return f"{self._name(name)}({self._members(arguments)})"

    def _members(self, members: dict[str, Any], before: str = "") -> str:
        return ", ".join(
            f"{self._name(name)}: {self._written(members[name], before + name)}"
            for name in sorted(members)
            if before + name not in self.rule.ignore
        )

    def _written(self, value: Any, path: str) -> str:
        if isinstance(value, dict):
            return f"{{{self._members(value, f'{path}.')}}}"
        if isinstance(value, list):
            return f"[{', '.join(self._written(entry, path) for entry in value)}]"
        if isinstance(value, str):
            return self._text(fold(value).replace("\n", " ").strip().rstrip("."))
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, float):
            value = f"{(Decimal(repr(value)) + 0).normalize():f}"  # 5e3 and 5000.0 are 5000
        return f"{value}"

    def _name(self, name: str) -> str:
        return name if _NAME.fullmatch(name) else self._text(name)

    def _text(self, text: str) -> str:
        if self.is_hidden or len(text) > _MOST_TEXT:
            begin = "" if self.is_hidden else f"{text[: _MOST_TEXT // 2]}… "
            text = f"{begin}#{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        return json.dumps(text, ensure_ascii=False)


def first_value(text: str) -> str | None:
    """Return the text of the first JSON object, or list of objects; None where none is complete."""
    begin = _BEGINNING.search(text)
    if begin is not None and len(text) <= _MOST_READ:
        with suppress(ValueError, RecursionError):
            return text[begin.start() : json.JSONDecoder().raw_decode(text, begin.start())[1]]
    return None


def what_differs(value: Value | None, other: Value | None) -> str:
    """Return `limit: 5 instead of limit: 20`, to be escaped; empty where no call differs.

    A part counts as often as it is there. The whole lines, where they have the same parts.
    """
    lines = str(value), str(other)
    if value == other or not all(map(_LINE.fullmatch, lines)):
        return ""
    here, there = map(_PART.findall, lines)
    alone, missed = Counter(here) - Counter(there), Counter(there) - Counter(here)
    sides = [", ".join(parts.elements()) or "nothing" for parts in (alone, missed)]
    return " instead of ".join(sides if alone or missed else lines)
