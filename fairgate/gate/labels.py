"""Labels: what people say of how cases were read, and how far that lets a reading be trusted.

`labels/<policy>.jsonl`, beside `baselines/`, has a JSON object a line, as `fairgate explain RUN
CASE --verdict` writes it. A case is known by its content, the hash of what was asked, answered and
read, so that a label never counts for another answer. No verdict of the gate depends on labels.
They measure a suite's reading (its *precision*: the share of reported differences that people call
read right), and a false reading is no example of a report again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.outcomes import CONFIDENCE
from fairgate.domain.ports import Executed
from fairgate.domain.units import Assessed, Reason
from fairgate.domain.wording import harmless
from fairgate.io.durable import write_text
from fairgate.io.git import link_on_the_way
from fairgate.io.tables import read_whole
from fairgate.metrics.sentences import READINGS
from fairgate.stats.interval import Interval, wilson
from fairgate.suites.metamorphic.assess import CONTROLS, is_violated
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.readings import Readings

ENOUGH = 30
"""Labelled cases from which a report says how far a reading can be trusted."""
MOST_CHARACTERS = 200
"""Of each text of a label."""
_MOST_LINE, _MOST_BYTES = 4096, 4 << 20
_FORMS = {"content": r"[0-9a-f]{64}", "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}"}
_AGAIN = "remove the line, or restore the file from version control"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Somebody's word on how one case was read; a line of the file has these fields as keys."""

    suite: str
    case: str
    """Its key, for people: the content decides."""
    content: str
    """SHA-256 in hexadecimal digits."""
    reported: bool
    """Whether the gate counts a difference here."""
    read: str
    """What was read, in words."""
    right: bool
    """Whether the person calls that right."""
    by: str
    date: str
    """YYYY-MM-DD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The labelled cases of a suite in which a difference was reported."""

    right: int
    labelled: int

    @property
    def interval(self) -> Interval:
        """Return Wilson's interval at 0.95 of the share that is right."""
        interval = wilson(self.right, self.labelled, confidence=CONFIDENCE)
        assert isinstance(interval, Interval)  # noqa: S101 (nobody makes one of no case)
        return interval


def what_stands_out(item: Assessed) -> list[str]:
    """Return the readings of an answer in sentences that are events and shown by it."""
    return [
        reading.column.partition("/")[2]
        for reading in READINGS
        if reading.is_event and item.claims.get(reading.column) == 1.0
    ]


def reading_of(item: Assessed) -> tuple[bool, str]:
    """Return whether a difference is reported in a pair, and what was read, in words.

    Raises UsageError where no answer was read.
    """
    if item.readings[FOLLOW_UP].reason is Reason.NOT_ASKED:
        raise UsageError(f"no answer was asked for in {item.unit.key}, so there is none to label")
    if any(reading.column in item.claims for reading in READINGS):
        names = what_stands_out(item)
        return bool(names), f"stands out by {', '.join(names)}" if names else "nothing stands out"
    if isinstance(item.decision, Reason):
        return False, f"no verdict: {item.decision}"
    sides = (str(item.readings[role].value) for role in (SOURCE, FOLLOW_UP))
    return is_violated(item), " → ".join(sides)


def content_of(readings: Mapping[str, Readings], executions: Executed, item: Assessed) -> str:
    """Return the hash of what a pair asked, what came back and what was read, whatever its key."""
    unit = item.unit
    keys = [unit.asks[role] for role in (SOURCE, FOLLOW_UP)]
    cases = (readings[unit.suite].case(key) for key in keys)
    answers = (executions.get((unit.suite, key)) for key in keys)
    parts = [
        unit.content,
        unit.dimensions["relation"],
        *(None if case is None else [case.instruction, case.varied] for case in cases),
        *(None if answer is None else answer.response for answer in answers),
        str(item.readings[CONTROLS].value),
        *reading_of(item),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def decoded_labels(raw: bytes, path: str) -> list[Label]:
    """Return the labels of a file. Raises DataError with `path:line` for what is none."""
    if len(raw) > _MOST_BYTES:
        raise DataError(f"{path}: larger than {_MOST_BYTES >> 20} MiB; no file of labels")
    lines = enumerate(raw.split(b"\n"), 1)
    return [_label(line, f"{path}:{number}") for number, line in lines if line.strip()]


def _label(line: bytes, location: str) -> Label:
    types = {field.name: bool if field.type == "bool" else str for field in fields(Label)}
    try:
        row = read_json(line) if len(line) <= _MOST_LINE else "longer than any"
    except JsonError as error:
        raise DataError(f"{location}: {error}; {_AGAIN}") from error
    if not isinstance(row, dict) or row.keys() != types.keys():
        raise DataError(f"{location}: no label; {_AGAIN}")
    for name, value in row.items():
        if type(value) is not types[name]:
            raise DataError(f"{location}: `{name}` is of another type; {_AGAIN}")
        form = _FORMS.get(name, rf"(?s:.){{1,{MOST_CHARACTERS}}}")
        if isinstance(value, str) and not re.fullmatch(form, value):
            raise DataError(f"{location}: `{name}` has another form or length; {_AGAIN}")
    return Label(**row)


def read_labels(path: Path) -> list[Label]:
    """Return the labels of a file, none where there is no file. Raises DataError."""
    return decoded_labels(read_whole(path, _MOST_BYTES), str(path)) if path.exists() else []


def add_label(path: Path, label: Label) -> None:
    """Append a label to a file, whole or not at all. Raises DataError and UsageError.

    Nothing is written that could not be read again.
    """
    if link := link_on_the_way(path):
        raise UsageError(f"{harmless(str(link))} is a link, and labels are written through none")
    labels = [*read_labels(path), label]
    lines = (json.dumps(asdict(each), sort_keys=True, ensure_ascii=False) for each in labels)
    text = "".join(f"{line}\n" for line in lines)
    decoded_labels(text.encode(), str(path))
    write_text(path, text, option="--policy")


def false_readings(labels: Sequence[Label]) -> frozenset[tuple[str, str]]:
    """Return suite and content of the cases that somebody calls read wrong, by their last word."""
    return frozenset((label.suite, label.content) for label in _last(labels) if not label.right)


def precisions(labels: Sequence[Label]) -> Mapping[str, Precision]:
    """Return by suite how many labelled differences nobody calls read wrong; suites sorted."""
    wrong = false_readings(labels)
    cases = {(label.suite, label.content) for label in labels if label.reported}
    by_suite: dict[str, list[bool]] = {}
    for suite, content in sorted(cases):
        by_suite.setdefault(suite, []).append((suite, content) not in wrong)
    return {
        suite: Precision(right=sum(right), labelled=len(right)) for suite, right in by_suite.items()
    }


def _last(labels: Sequence[Label]) -> list[Label]:
    """Return everybody's last word on each case."""
    return [*{(label.suite, label.content, label.by): label for label in labels}.values()]
