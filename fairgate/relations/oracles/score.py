"""Scores: a number that stands in an answer, on a scale or on none.

A score is read where an answer, what follows its marker or what it calls its score, is one number
and nothing else that could be one: `7`, `7.5`, `7,5`, `7/10`, `7 out of 10`, `seven`. Ranges,
several numbers, refusals, other scales and numbers beyond the scale are unreadable; none is
guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.schema import ScorePolicy
from fairgate.domain.units import Reading
from fairgate.domain.wording import quoted
from fairgate.io.replies import json_path
from fairgate.relations.oracles.actions import first_value
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.text import spoken

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {word: value for value, word in enumerate(_UNITS)}
_WORDS |= {word: 10 * value for value, word in enumerate(_TENS, 2)}
_WORDS |= {
    f"{ten}{sign}{one}": 10 * place + value
    for place, ten in enumerate(_TENS, 2)
    for value, one in enumerate(_UNITS[1:10], 1)
    for sign in "- "
}
_WORDS |= {"hundred": 100, "one hundred": 100, "a hundred": 100}
_WORD = "|".join(sorted(map(re.escape, _WORDS), key=len, reverse=True))
_DIGITS = r"\d+(?:\.\d+|,\d{1,2}(?!\d)|,\d{4,})?"
"""A comma before three digits may part thousands or decimals: it is neither."""
_CALLED = re.compile(
    r"\W*(?:(?:the|my|final|overall)\s+)*(?:score|rating|answer)\W*(?:\bis\b|[:=])[\s*_]*",
    re.IGNORECASE,
)
"""What an answer may call its number without a marker that says so."""
_ENDS = re.compile(r"[*_`\"')\]]*\s*(?:[.;:,](?=\s|$)|\s[-\u2013\u2014(])")
"""What may stand behind a score on the line of its marker: a sentence begins, or a remark."""
_AROUND = " \t\r\n*_`\"'.!()[]"
_LONGEST = 4096
_LARGEST = 1e15
"""Beyond it, and where it is no number at all, sums of scores would be of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From where to where scores go; None: they have no end there."""

    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether a score lies on the scale."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        """Return it as messages write it: `1 to 10`."""
        return " to ".join("…" if end is None else f"{end:g}" for end in (self.low, self.high))


ANY = Scale()


@cache
def _number() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<value>[+\-\u2212]?{_DIGITS}(?:e[+\-]?\d+)?(?![\d,])|\b(?:{_WORD})\b)"
        rf"(?:\s*(?:/|\bout\s+of\b|\bof\b)\s*(?P<most>{_DIGITS}|\b(?:{_WORD})\b))?"
        r"(?:\s*(?P<points>%|points?\b))?",
        re.IGNORECASE,
    )


@cache
def _another() -> re.Pattern[str]:
    return re.compile(rf"\d|\b(?:{_WORD})\b", re.IGNORECASE)


def read_score(text: str, scale: Scale = ANY, marker: str = "") -> float | None:
    """Return the number that a text is; None where it is none, or more than one."""
    if marker:
        _, found, text = text.casefold().rpartition(marker.casefold())
        lines = text.strip().splitlines() if found else []
        text = lines[0] if lines else ""
    called = _CALLED.match(text)
    text = text[called.end() if called else 0 :].strip(_AROUND)
    if not text or len(text) > _LONGEST:
        return None
    match = _number().fullmatch(text) or (_beginning(text) if marker or called else None)
    if match is None:
        return None
    most = match["most"]
    if most is not None and (scale.high is None or _value(most) != scale.high):
        return None
    if match["points"] == "%" and scale.high != 100:
        return None
    value = _value(match["value"])
    return value if abs(value) <= _LARGEST and scale.holds(value) else None


def scale_of(texts: Iterable[str]) -> Scale:
    """Return the scale that texts name alike (`7/10`, `8/10`: up to 10; `70 %`), else none."""
    matches = (_number().fullmatch(text.strip(_AROUND)) for text in texts if len(text) <= _LONGEST)
    ends = {
        100.0 if match["points"] == "%" else _value(match["most"])
        for match in matches
        if match and (match["most"] or match["points"] == "%")
    }
    return Scale(high=ends.pop()) if len(ends) == 1 else ANY


def _beginning(text: str) -> re.Match[str] | None:
    """Return the number that a line begins with, where a remark without any number follows."""
    match = _number().match(text)
    if match is None or not _ENDS.match(text, match.end()):
        return None
    return None if _another().search(text, match.end()) else match


def _value(text: str) -> float:
    word = " ".join(text.casefold().split())
    if word in _WORDS:
        return float(_WORDS[word])
    return float(word.replace("\u2212", "-").replace(",", "."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOracle(Oracle):
    """Reads a score; those of repeats are averaged."""

    scale: Scale = ANY
    marker: str = ""
    path: str = ""
    """Where the score stands in an answer in JSON."""

    averages: ClassVar[bool] = True

    @property
    def id(self) -> str:
        """Identify the rule, with the scale."""
        return " ".join(filter(None, ("score 1", str(self.scale), self.marker, self.path)))

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the score, unreadable where there is none."""
        del case
        text = spoken(execution.response or "")
        if self.path:
            text = _at(text, self.path)
        return reading(read_score(text, self.scale, self.marker))

    def why(self, execution: Execution, case: Case) -> str:
        """Say what is expected."""
        del case
        if not (execution.response or "").strip():
            return "it is empty"
        place = self.marker or self.path
        where = f"it has at {quoted(place)} no" if place else "it is no"
        return f"{where} single number{'' if self.scale == ANY else f' from {self.scale}'}"


def score_oracle(policy: ScorePolicy) -> ScoreOracle:
    """Return the oracle of a task whose answers are scores."""
    return ScoreOracle(
        scale=Scale(low=policy.low, high=policy.high),
        marker=policy.marker or "",
        path=policy.path or "",
    )


def _at(text: str, path: str) -> str:
    """Return the one number or text at a path of an answer in JSON; empty where there is none."""
    value = first_value(text)
    found = [] if value is None else json_path(path).find(json.loads(value, object_hook=_opened))
    if len(found) != 1 or isinstance(found[0], bool) or not isinstance(found[0], int | float | str):
        return ""
    return str(found[0])


def _opened(members: dict[str, Any]) -> dict[str, Any]:
    """Return an object whose members are no texts of objects, as the arguments of a call are."""
    for name, value in members.items():
        if isinstance(value, str) and value.startswith("{"):
            with suppress(JsonError):
                members[name] = read_json(value)
    return members
