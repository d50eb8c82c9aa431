"""Answers that were produced elsewhere: a JSON Lines file, one answer a line.

A line may tell which question it answers, as lines of `fairgate plan` do. Where none does, the hash
of a plan's questions ties the lines to them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from fairgate.domain.cases import TURNS, Case, source_of
from fairgate.domain.degrees import degrees_from
from fairgate.domain.errors import DataError
from fairgate.domain.executions import (
    CorpusDocument,
    Document,
    Execution,
    SharedDocuments,
    served_from,
)
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.tables import (
    MAX_TEXT_CHARACTERS,
    capped,
    checked_text,
    file_sha256,
    is_one_value,
    json_object,
    read_json_objects,
    read_lines,
)
from fairgate.systems.generator import prompt_alone

Value = TypeVar("Value")
PLAN = "plan"
"""Field of a line: the hash of the questions that its file was written for."""
Name = str | tuple[str, str]
"""The key, with the suite before it where the line names one."""
_FIELDS = (
    "key",
    "response",
    "documents",
    "options",
    "suite",
    "margin",
    "degrees",
    "at_most",
    "served",
)
_PLAN_FIELDS = (PLAN, "wave", "query", "before", "prompt", "instruction", "labels", "changed")
"""What a line of `fairgate plan` carries: accepted, so that answers can be added to the plan."""
_TYING = ("query", "prompt")
"""Fields of which one at least ties a line to its question."""
_PARTS = ("before", "changed", "instruction")
"""Fields that tell a part of a question: what is told counts, and ties nothing by itself."""
_TIED, _WITH_BEFORE, _WITH_CHANGED = 1, 2, 4
"""What a line tells that is compared part by part; a hash instead where it is query and prompt."""
_ALL = _TIED | _WITH_BEFORE | _WITH_CHANGED
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b"))
_BEFORE_TEXT = r"""(?:^|[\n:>\]"'“‘„«*#`])\s*"""  # noqa: RUF001 -- quotation marks
_AFTER_TEXT = r"""\s*(?:$|[\n<\["'”’»*#`]|\w+:)"""
"""What stands around the text in a prompt: ends of lines, marks, labels such as `Answer:`."""
_NAMED = 3
"""Answers to other questions that are named."""
_as_json = json.JSONEncoder().encode
_DOCUMENT_FIELDS = ("id", "text", "label", "score")
_MOST_DOCUMENTS = 1000
_MOST_LISTS = 50_000
_PLAIN = r'[^"\\\x00-\x1f]'
"""A character that stands in a JSON text as itself."""
_BEGIN = re.compile(rf'{{(?:"suite": "({_PLAIN}*)", )?"key": "({_PLAIN}+)"')
_MOST_CHARACTERS = 4 * 2**20
"""Of all lines that are known, without their keys."""


class SeenDocuments:
    """The documents of the lines so far: equal lists are checked once, and held once."""

    def __init__(self) -> None:
        """Begin with none."""
        self._shared = SharedDocuments()
        self._known: dict[tuple[object, ...], tuple[Document, ...]] = {}

    def documents(self, values: Sequence[object], location: str) -> tuple[Document, ...]:
        """Return the documents that a recording's objects are. Raises DataError."""
        name = tuple(field for value in values for field in _named(value))
        try:
            shared = self._known.get(name)
        except TypeError:  # a list is no text; which field holds it is said below
            shared = None
        if shared is None:
            shared = self._shared.held(
                _document(value, f"{location}: documents[{i}]") for i, value in enumerate(values)
            )
            if len(self._known) < _MOST_LISTS:
                self._known[name] = shared
        return shared


def _named(value: object) -> tuple[object, ...]:
    """Return a key for documents before they are checked: equal ones are equally valid."""
    if not isinstance(value, dict) or not value.keys() <= set(_DOCUMENT_FIELDS):
        return (value,)
    id_, score = value.get("id"), value.get("score")
    # With the types, because 1, 1.0 and True are equal and not equally valid.
    return type(id_), id_, value.get("text"), value.get("label"), type(score), score


def line_from(
    record: Mapping[str, Any], location: str, seen: SeenDocuments
) -> tuple[str, str, Execution]:
    """Return suite (empty where it names none), key and answer of a line's object.

    Raises DataError, which names `location`.
    """
    _refuse_unknown(record, (*_FIELDS, *_PLAN_FIELDS), location)
    key = _text(record, "key", location)
    if not key:
        raise DataError(f"{location}: no `key`; expected the key of a case, see `fairgate plan`")
    if "response" not in record:
        raise DataError(
            f"{location}: no `response`; expected the answer as text, empty if there is none"
        )
    _check_question(record, location)
    answer = Execution(
        response=_text(record, "response", location),
        documents=_documents(record.get("documents"), location, seen),
        margin=_number(record.get("margin"), f"{location}: margin"),
        options=_texts(record, "options", location),
        degrees=_stored(degrees_from, record, location),
        served=_stored(served_from, record.get("served"), location),
    )
    return _text(record, "suite", location) or "", key, answer


def _refuse_unknown(record: Mapping[str, Any], fields: tuple[str, ...], location: str) -> None:
    for field in record:
        if field not in fields:
            raise DataError(
                f"{location}: unknown field {capped(field)}; {suggestion(field, fields)} "
                f"Expected fields: {', '.join(fields)}"
            )


def _text(record: Mapping[str, Any], field: str, location: str) -> str | None:
    value = record.get(field)
    return None if value is None else checked_text(value, location, field)


def _check_question(record: Mapping[str, Any], location: str) -> None:
    """Raise DataError where what a line tells of its question is of another type than a plan's."""
    for field in (*_TYING, "instruction"):
        _text(record, field, location)
    _texts(record, "before", location)
    changed = record.get("changed")
    if changed is not None and not isinstance(changed, dict):
        raise DataError(
            f"{location}: changed is {capped(changed)}; expected an object with id and text or null"
        )


def _texts(record: Mapping[str, Any], field: str, location: str) -> tuple[str, ...]:
    value = record.get(field)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DataError(f"{location}: {field} is {capped(value)}; expected a list of texts or null")
    return tuple(checked_text(text, location, f"{field}[{i}]") for i, text in enumerate(value))


def _stored(read: Callable[[Any], Value], fields: Any, location: str) -> Value:
    try:
        return read(fields)
    except ValueError as error:
        raise DataError(f"{location}: {error}") from None


def _documents(value: object, location: str, seen: SeenDocuments) -> tuple[Document, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > _MOST_DOCUMENTS:
        raise DataError(
            f"{location}: documents is {capped(value)}; expected a list of at most "
            f"{_MOST_DOCUMENTS:,} objects in rank order, or null"
        )
    return seen.documents(value, location)


def _document(value: object, location: str) -> Document:
    if not isinstance(value, dict):
        raise DataError(
            f"{location} is {capped(value)}; expected an object with id, text, label, score"
        )
    _refuse_unknown(value, _DOCUMENT_FIELDS, location)
    id_ = value.get("id")
    if isinstance(id_, int) and not isinstance(id_, bool):
        id_ = str(id_)
    return Document(
        id=None if id_ is None else checked_text(id_, location, "id"),
        text=_text(value, "text", location),
        label=_text(value, "label", location),
        score=_number(value.get("score"), f"{location}: score"),
    )


def _number(value: object, location: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{location} is {capped(value)}; expected a finite number or null")
    return float(value)


def questions_hash(cases: Iterable[Case]) -> str:
    """Return a hash of what cases ask by key; their order and their suites do not matter.

    Cases whose question follows from answers are left out: `fairgate plan` does not write them.
    """
    # Lines sort as the keys do that they begin with, so one after the other is made and hashed.
    keyed = [(_as_json(case.key), case) for case in cases if not case.waits]
    hashed, separator = hashlib.sha256(), ""
    for key, alike in groupby(sorted(keyed, key=itemgetter(0)), key=itemgetter(0)):
        for line in sorted({_question_line(key, case) for _, case in alike}):
            hashed.update(f"{separator}{line}".encode())
            separator = "\n"
    return hashed.hexdigest()[:16]


def _question_line(key: str, case: Case) -> str:
    """Return as JSON what a case asks; `key` is its key as JSON."""
    more = "[], []" if not case.before and not case.options else ""
    more = more or f"{_as_json(case.before)}, {_as_json(case.options)}"
    changed = None if case.changed is None else [case.changed.id, case.changed.text]
    return (
        f"[{key}, {_as_json(case.query)}, {_as_json(prompt_alone(case))}, {more}, "
        f"{_as_json(changed)}]"
    )


def _told_by(record: Mapping[str, Any]) -> int | None:
    """Return a hash of the query and prompt that a line tells, where it tells nothing else.

    Else which parts it tells; None where it tells none.
    """
    query, prompt = (record.get(field) for field in _TYING)
    is_tied = query is not None or prompt is not None
    told = [record.get(field) is not None for field in _PARTS]
    if not any(told):
        return hash((query, prompt)) if is_tied else None
    has_before, has_changed, *_ = told
    return is_tied * _TIED | has_before * _WITH_BEFORE | has_changed * _WITH_CHANGED


def _parts_of(told: int) -> int:
    """Return which parts a line tells."""
    return told if 0 <= told <= _ALL else _TIED


def _is_told_alike(told: int, case: Case) -> bool:
    """Return whether a line tells the very question that a case asks, by its hash alone."""
    if case.before or case.changed is not None:
        return False
    if told == hash((case.query, None)):
        return True
    prompt = prompt_alone(case)
    return told in (hash((case.query, prompt)), hash((None, prompt)))


def _difference(record: Mapping[str, Any], case: Case) -> tuple[str, str] | None:
    """Return a line's own question and the case's where they differ, else None.

    White space and Unicode's ways to write a letter count alike. A prompt may be a longer one,
    which holds instruction and text.
    """
    query, prompt = (record.get(name) for name in _TYING)
    if prompt is not None and not _is_prompt_of(prompt, case, is_tied=query is not None):
        return prompt, prompt_alone(case)
    for told, planned in _told_beside(record, case):
        if told is not None and folded_question(told) != folded_question(planned):
            return told, planned
    return None


def _told_beside(record: Mapping[str, Any], case: Case) -> Iterator[tuple[str | None, str]]:
    """Yield each part of a question that a line can tell, but the prompt, with the case's own."""
    yield record.get("query"), case.query
    yield record.get("instruction"), case.instruction
    before, changed = record.get("before"), record.get("changed")
    if before is not None:
        yield TURNS.join(before), TURNS.join(case.before)
    if changed is not None:
        none = CorpusDocument(id="", text="no changed document")
        planned = case.changed or none
        yield str(changed.get("text")), planned.text
        yield str(changed.get("id")), planned.id


def _is_prompt_of(prompt: str, case: Case, *, is_tied: bool) -> bool:
    """Return whether a prompt is the case's own, or a longer one with its instruction and text.

    Where nothing else ties a line to its question, the text must stand apart in the prompt: the
    text of a source that was cut is a part of what stood there before.
    """
    if folded_question(prompt) == folded_question(prompt_alone(case)):
        return True
    instruction, text = (_pattern(part) for part in (case.instruction, case.text or case.query))
    told = unicodedata.normalize("NFC", prompt).translate(_INVISIBLE)
    rest, count = re.subn(instruction, "\n", told) if instruction else (told, 1)
    if is_tied:
        return bool(count) and re.search(text, told) is not None
    return bool(count) and re.search(f"{_BEFORE_TEXT}{text}{_AFTER_TEXT}", rest) is not None


def _pattern(text: str) -> str:
    """Return a pattern of a text in which all white space counts alike."""
    return r"\s+".join(map(re.escape, folded_question(text).split()))


def require_one_instruction(path: str, cases: Iterable[tuple[str, Case]], expected: str) -> None:
    """Raise DataError where cases that one answer of a file is for have different instructions.

    `cases` come with the name of their answer; `expected` is what would tell them apart.
    """
    instructions: dict[str, str] = {}
    for name, case in cases:
        first = instructions.setdefault(name, case.instruction)
        if first != case.instruction:
            raise DataError(
                f"{path}: {quoted(name)} is asked with the instructions {quoted(first)} and "
                f"{quoted(case.instruction)}, and the file does not say which of them it answers; "
                f"expected {expected}"
            )


def folded_question(text: str) -> str:
    """Question in the form in which two of them are compared: NFC, with white space as one."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_INVISIBLE).split())


class RecordedAnswers:
    """The answers of a recorded file, found by suite and key."""

    def __init__(
        self,
        path: str,
        answers: Mapping[Name, Execution],
        *,
        told: Mapping[Name, int],
        plans: Iterable[str] = (),
        notices: Sequence[str] = (),
    ) -> None:
        """Hold answers by key, those of lines for one suite by `(suite, key)`.

        `told` has the hash of the question that a line tells, where one does (`_told_by`);
        `plans` are the hashes of plans in the file, `notices` what of it answers nothing.
        """
        self.path = path
        self.notices = notices
        self.answers = answers
        self._is_of_suites = any(isinstance(name, tuple) for name in answers)
        self._told = told
        self._plans = frozenset(plans)

    @property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_sha256(self.path)

    def keys(self) -> list[tuple[str, str]]:
        """Return every `(suite, key)` in the order of the file; no suite named is ''."""
        return [name if isinstance(name, tuple) else ("", name) for name in self.answers]

    def names(self, cases: Sequence[Case]) -> list[str]:
        """List by what lines name the questions of cases: by key."""
        return [case.key for case in cases]

    def unasked(self, cases: Sequence[Case]) -> list[str]:
        """List the keys of lines that answer no case."""
        known = {case.key for case in cases}
        # The keys of attribution's questions follow from the first answers.
        return [key for _, key in self.keys() if key not in known and "@documents=" not in key]

    def sources_of(self, names: Iterable[str]) -> Iterable[str]:
        """List the sources that lines are about, by their keys."""
        return map(source_of, names)

    def answer(self, case: Case) -> Execution | None:
        """Return the answer to a case: the line that names the suite, else the one that names none.

        None where the file has no line for it.
        """
        name = self.name_of(case)
        return None if name is None else self.answers[name]._replace(suite=case.suite, key=case.key)

    def name_of(self, case: Case) -> Name | None:
        """Return by what the file names a case; None where it has no line for it."""
        own = (case.suite, case.key)
        if self._is_of_suites and own in self.answers:
            return own
        return case.key if case.key in self.answers else None

    def untied(self, plan: str, cases: Iterable[Case]) -> str:
        """Return a sentence where nothing shows what the answers answer; empty where all do.

        `plan` is the hash of the questions that are put to it, empty where it is not known;
        `cases` ask them. Raises DataError where the file was written for other ones.
        """
        if plan and self._plans == {plan}:
            return ""
        parts = {name: _parts_of(told) for name, told in self._told.items()}
        tied = {name for name, told in parts.items() if told & _TIED}
        for case in cases:
            needed = bool(case.before) * _WITH_BEFORE | (case.changed is not None) * _WITH_CHANGED
            if needed and (name := self.name_of(case)) in tied and needed & ~parts[name]:
                tied.remove(name)
        untold = len(self.answers) - len(tied)
        if not untold:
            return ""
        lines = f"{untold:,} of {len(self.answers):,} lines"
        if plan and self._plans:
            raise DataError(
                f"{self.path}: was written for other questions than the plan's (`plan` is "
                f"{', '.join(sorted(self._plans))}, expected {plan}), and {lines} do not tell "
                "theirs: answer the questions of `fairgate plan` again, and keep the `query` of "
                "each line, so that only what changed has to be asked"
            )
        return (
            f"nothing ties {lines} of the recorded answers to their questions: where a source has "
            "another text now, the answer to its old one counts. Keep the `query` of the lines of "
            "`fairgate plan`, and their `before` and `changed` where they have some, or the `plan` "
            "of its first one"
        )

    def require_same_questions(self, cases: Iterable[Case]) -> None:
        """Raise DataError that counts and names the lines that tell another question than a case.

        Also where a line without a suite is one answer to several instructions. The file is read
        again where a line does not tell the very same.
        """
        cases = list(cases)
        shared = ((str(name), case) for case in cases if (name := self.name_of(case)) == case.key)
        require_one_instruction(
            self.path, shared, "a `suite` in each line, as in those of `fairgate plan`"
        )
        wanted: dict[Name, list[Case]] = {}
        for case in cases if self._told else ():
            name = self.name_of(case)
            told = None if name is None else self._told.get(name)
            if name is not None and told is not None and not _is_told_alike(told, case):
                wanted.setdefault(name, []).append(case)
        others = [*self._others(wanted)] if wanted else []
        if not others:
            return
        examples = "; ".join(
            f"{quoted(key)} on line {line} answers {quoted(told)}, the plan asks {quoted(planned)}"
            for key, line, (told, planned) in others[:_NAMED]
        )
        count = "1 line answers" if len(others) == 1 else f"{len(others):,} lines answer"
        raise DataError(
            f"{self.path}: {count} another question than the plan asks under its key: {examples}. "
            "Answer the questions of `fairgate plan` again, or bring back the sources that were "
            "asked"
        )

    def _others(
        self, wanted: Mapping[Name, Sequence[Case]]
    ) -> Iterator[tuple[str, int, tuple[str, str]]]:
        """Yield the key of each line that tells another question, with its number and both."""
        for line, record in read_json_objects(self.path):
            if _told_by(record) is None:
                continue
            key, suite = record.get("key"), record.get("suite")
            name = (str(suite), str(key)) if suite else str(key)
            for case in wanted.get(name, ()):
                if (both := _difference(record, case)) is not None:
                    yield case.key, line, both
                    break


def read_recorded(path: str) -> RecordedAnswers:
    """Read a recorded file. The same line twice is one answer.

    Raises DataError with `path:line` for broken JSON, unknown fields, wrong types, two different
    answers to one key, also where a line for one suite and one for all differ, and a file without
    any line.
    """
    answers: dict[Name, Execution] = {}
    known_lines, seen = _KnownLines(), SeenDocuments()
    told: dict[Name, int] = {}
    plans: set[str] = set()
    for number, text, entry in _lines_or_entries(path):
        question = None
        if entry is not None or (line := known_lines.line(text)) is None:
            record = json_object(text, path, number) if entry is None else entry
            if record is None:
                continue
            line = line_from(record, f"{path}:{number}", seen)
            question = _told_by(record)
            if record.get(PLAN) is not None:
                plans.add(checked_text(record[PLAN], f"{path}:{number}", PLAN)[:64])
            if (
                question is None and entry is None
            ):  # a line that tells its question is like no other one
                known_lines.add(text, line)
        suite, key, answer = line
        name = (suite, key) if suite else key
        if question is not None and told.setdefault(name, question) != question:
            told[name] = _parts_of(told[name]) & _parts_of(question)
        first = answers.setdefault(name, answer)
        if first is not answer and first != answer:
            raise DataError(
                f"{path}:{number}: key {capped(key)} was answered differently on line "
                f"{_line_of(path, name)}; expected one answer a key: remove one of the two"
            )
    for name, answer in answers.items():
        if isinstance(name, tuple) and answers.get(name[1], answer) != answer:
            earlier, other = sorted((_line_of(path, name), _line_of(path, name[1])))
            raise DataError(
                f"{path}:{other}: key {capped(name[1])} is answered differently on line {earlier}: "
                f"one of the lines is for suite {capped(name[0])}, the other for every suite; name "
                "the suite on both, or remove one"
            )
    if not answers:
        raise DataError(
            f'{path}: is empty; expected lines such as {{"key": "s1", "response": "positive"}}: '
            "put each line of `fairgate plan POLICY` to your system and write its answer here"
        )
    return RecordedAnswers(path, answers, told=told, plans=plans)


def _lines_or_entries(path: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Yield each line of a file, or each entry of the one array that it is, with its line."""
    if is_one_value(path):
        yield from ((line, "", record) for line, record in read_json_objects(path))
    else:
        yield from ((line, text, None) for line, text in read_lines(path))


class _KnownLines:
    """The lines read so far, found by all they say beside their key.

    A line that begins with its key, or with suite and key, is the same JSON with another plain key
    in its place, so that what was read and checked once holds for it: a source's follow-ups mostly
    get its answer and its documents.
    """

    def __init__(self) -> None:
        self.answers: dict[tuple[str | None, str], Execution] = {}
        self._characters = 0

    def line(self, text: str) -> tuple[str, str, Execution] | None:
        """Return the answer of a line; None where it is to be read."""
        begin = _BEGIN.match(text)
        if begin is None or len(text) > MAX_TEXT_CHARACTERS:
            return None
        same = self.answers.get((begin[1], text[begin.end() :]))
        return None if same is None else (begin[1] or "", begin[2], same)

    def add(self, text: str, line: tuple[str, str, Execution]) -> tuple[str, str, Execution]:
        """Remember a line that was read, and return it."""
        begin = _BEGIN.match(text)
        # What begins the line need not be its suite and key: the suite may stand at its end.
        if begin and line[:2] == (begin[1] or "", begin[2]) and len(text) <= MAX_TEXT_CHARACTERS:
            if self._characters > _MOST_CHARACTERS:
                self.answers.clear()
                self._characters = 0
            self.answers[begin[1], text[begin.end() :]] = line[2]
            self._characters += len(text)
        return line


def _line_of(path: str, name: Name) -> int:
    """Return the first line of a suite and key; read again, because it is asked of wrong files."""
    wanted = name if isinstance(name, tuple) else ("", name)
    lines = read_json_objects(path)
    return next(line for line, row in lines if (row.get("suite") or "", row.get("key")) == wanted)
