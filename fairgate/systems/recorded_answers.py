"""Answers that were produced elsewhere: a JSON Lines file, one answer a line (SPEC 10)."""

from __future__ import annotations

from collections.abc import Mapping

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.io.lines import capped, file_sha256, read_lines
from fairgate.io.tables import json_object, read_json_objects
from fairgate.systems.recorded_line import RecordedAnswer, RecordedLine, SeenDocuments, line_from
from fairgate.systems.repeated_documents import RepeatedDocuments
from fairgate.systems.repeated_lines import RepeatedLines

_Name = str | tuple[str, str]
"""The key, with the suite before it where the line names one."""


class RecordedAnswers:
    """The answers of a recorded file, found by suite and key."""

    def __init__(self, path: str, answers: Mapping[_Name, RecordedAnswer]) -> None:
        """Hold answers by key, those of lines for one suite by `(suite, key)`."""
        self.path = path
        self._answers = answers
        self._is_of_suites = any(isinstance(name, tuple) for name in answers)

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_sha256(self.path)

    def __len__(self) -> int:
        """Return the number of different answers."""
        return len(self._answers)

    def __contains__(self, suite_and_key: tuple[str, str]) -> bool:
        """Return whether the file has a line for this case, even one without a response."""
        return suite_and_key in self._answers or suite_and_key[1] in self._answers

    def keys(self) -> list[tuple[str, str]]:
        """Return every `(suite, key)` in the order of the file; no suite named is ''."""
        return [name if isinstance(name, tuple) else ("", name) for name in self._answers]

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case; None where the file has none."""
        return self.lookup(case.suite, case.key)

    def lookup(self, suite: str, key: str) -> Execution | None:
        """Return the answer to a case: the line that names the suite, else the one that names none.

        None where the file has no line for it.
        """
        found = self._answers.get((suite, key)) if self._is_of_suites else None
        if found is None:
            found = self._answers.get(key)
        return None if found is None else found.to(suite, key)


def read_recorded(path: str) -> RecordedAnswers:
    """Read a recorded file. The same line twice is one answer.

    Raises DataError with `path:line` for broken JSON, unknown fields, wrong types, two different
    answers to one key, and a file without any line.
    """
    answers: dict[_Name, RecordedAnswer] = {}
    known, seen, documents = RepeatedLines(), SeenDocuments(), RepeatedDocuments()
    for number, text in read_lines(path):
        line = known.line(text)
        if line is None:
            record = json_object(text, path, number, documents)
            if record is None:
                continue
            line = line_from(record, f"{path}:{number}", seen)
            known.add(text, line)
        name = _name(line)
        first = answers.setdefault(name, line.answer)
        if first is not line.answer and first != line.answer:
            raise DataError(
                f"{path}:{number}: key {capped(line.key)} was answered differently on line "
                f"{_line_of(path, name)}; expected one answer a key: remove one of the two"
            )
    _refuse_shadows(path, answers)
    if not answers:
        raise DataError(
            f'{path}: is empty; expected lines such as {{"key": "s1", "response": "positive"}}: '
            "put each line of `fairgate plan POLICY` to your system and write its answer here"
        )
    return RecordedAnswers(path, answers)


def _name(line: RecordedLine) -> _Name:
    return (line.suite, line.key) if line.suite else line.key


def _line_of(path: str, name: _Name) -> int:
    """Return the first line of a suite and key; read again, because it is asked of wrong files."""
    wanted = name if isinstance(name, tuple) else ("", name)
    found = read_json_objects(path)
    return next(line for line, row in found if (row.get("suite") or "", row.get("key")) == wanted)


def _refuse_shadows(path: str, answers: Mapping[_Name, RecordedAnswer]) -> None:
    """Raise DataError where a line for one suite and a line for all suites answer differently."""
    for name, answer in answers.items():
        if isinstance(name, str):
            continue
        suite, key = name
        if answers.get(key, answer) != answer:
            one, other = sorted((_line_of(path, name), _line_of(path, key)))
            raise DataError(
                f"{path}:{other}: key {capped(key)} is answered differently on line {one}: one of "
                f"the lines is for suite {capped(suite)}, the other for every suite; name the "
                "suite on both, or remove one"
            )
