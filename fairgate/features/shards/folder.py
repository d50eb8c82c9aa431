"""The folder of one part of a run: what it was, its answers, its documents' vectors.

A folder comes from another machine, and from a fork's workflow from anybody: plain files of known
names are read, up to a limit, and nothing in them is executed. `parts.json` has the hash of each
file, which finds damage and edits by accident; who writes all of them can write what he likes, as
in a folder of a run.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairgate.domain.errors import BudgetError, DataError
from fairgate.domain.executions import Execution
from fairgate.domain.ports import Vectors
from fairgate.domain.wording import quoted
from fairgate.features.shards.shard import (
    MOST_SHARDS,
    AnsweredPart,
    Answers,
    Shard,
    document_name,
    may_be_asked,
)
from fairgate.gate.run_folder import PART_MANIFEST, execution_lines
from fairgate.io.durable import PARTS, check_parts, write_parts
from fairgate.io.tables import read_json_objects
from fairgate.io.text_files import capped, read_json_object
from fairgate.systems.recorded_answers import RepeatedDocuments, SeenDocuments, line_from

ANSWERS = "shard-answers.jsonl"
VECTORS = "shard-vectors.jsonl"
_VERSION = 1
_MOST_BYTES = {PART_MANIFEST: 1 << 20, PARTS: 1 << 20, ANSWERS: 4 << 30, VECTORS: 4 << 30}
_MOST_DIMENSIONS = 1 << 14
_ABSENT, _UNLABELLED = "absent", "unlabelled"
_STATED = re.compile(r"(?:[A-Za-z0-9_ ,.;`+-]|: )*")
"""What a budget says when it is spent: a part is not to say anything else in a comment."""
_TEXTS = ("fairgate", "policy", "policy_path", "system")
_TABLES = ("suites", "files", "identity", "under_test", "environment", "spent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a part of a run was: equal in everything but `shard` among the parts of one run."""

    shard: Shard
    sources: int
    questions: int
    fairgate: str
    policy: str
    policy_path: str
    seed: int
    system: str
    """Hash of the policy's system and judge as they are written."""
    suites: Mapping[str, str]
    """Suite to the hash of all that the whole run asks."""
    files: Mapping[str, str]
    """Corpus, recorded answers: name to SHA-256, of those that are files of the checkout."""
    identity: Mapping[str, str]
    """What the run is about, by name: on CI its repository, workflow run, head and base commit."""
    under_test: Mapping[str, str]
    environment: Mapping[str, str]
    spent: Mapping[str, str] = field(default_factory=dict)
    """What ended the part before all was asked, as `BudgetError` says it; else empty."""

    @property
    def error(self) -> BudgetError | None:
        """Return what ended the part; None where all of it was asked."""
        if not self.spent:
            return None
        left = self.spent.get("left", "")
        return BudgetError(
            self.spent.get("spent", ""),
            left=int(left) if left.isascii() and left.isdigit() else 0,
            next_step=self.spent.get("next_step", ""),
        )

    def ended_by(self, error: BudgetError) -> Manifest:
        """Return the same of a part that its budget has ended."""
        facts = {"spent": error.spent, "left": str(error.left), "next_step": error.next_step}
        return replace(self, spent=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadShard:
    """A part of a run as its folder holds it."""

    folder: Path
    manifest: Manifest
    part: AnsweredPart
    unlabelled: Mapping[tuple[str, str], Execution]
    """Executions as the system gave them, where labels of documents were added behind it."""


def write_shard(
    folder: Path,
    manifest: Manifest,
    part: AnsweredPart,
    unlabelled: Mapping[tuple[str, str], Execution],
) -> None:
    """Write the folder, all of it or nothing; equal parts give equal bytes. Raises StoreError."""
    head = {"schema_version": _VERSION, "is": "a part of a run, not a verdict", **asdict(manifest)}
    write_parts(
        folder,
        {
            PART_MANIFEST: (json.dumps(head, indent=1, ensure_ascii=False), "\n"),
            ANSWERS: _answer_lines(part, unlabelled),
            VECTORS: _vector_lines(part.vectors),
        },
    )


def _answer_lines(
    part: AnsweredPart, unlabelled: Mapping[tuple[str, str], Execution]
) -> Iterator[str]:
    lines = execution_lines(one for one in part.answers.values() if one is not None)
    for (suite, key), execution in part.answers.items():
        if execution is None:
            absent = {"suite": suite, "key": key, _ABSENT: True}
            yield json.dumps(absent, ensure_ascii=False) + "\n"
            continue
        line, given = next(lines), unlabelled.get((suite, key))
        if given is not None and execution.documents:
            own = given.documents or ()
            pairs = enumerate(zip(own, execution.documents, strict=True))
            places = [place for place, (one, both) in pairs if one.label != both.label]
            line = f'{line[:-1]}, "{_UNLABELLED}": {json.dumps(places)}}}'
        yield line + "\n"


def _vector_lines(vectors: Mapping[str, Vectors]) -> Iterator[str]:
    for name in sorted(vectors):
        raw = base64.b64encode(vectors[name].astype("<f4").tobytes()).decode()
        yield json.dumps({"document": name, "vector": raw}) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Return what the part in a folder was. Raises DataError, also for a folder of another kind."""
    for name, most in _MOST_BYTES.items():
        _require_plain(folder / name, most)
    names = (PART_MANIFEST, ANSWERS, VECTORS)
    listed = read_json_object(folder / PARTS, _MOST_BYTES[PARTS]).get("parts")
    if isinstance(listed, dict) and not set(listed) <= set(names):
        raise DataError(
            f"{folder / PARTS}: names more than {', '.join(names)}; expected a folder as "
            "`fairgate run --shard` wrote it: run that part again"
        )
    check_parts(folder, names)
    path = folder / PART_MANIFEST
    return _manifest(read_json_object(path, _MOST_BYTES[PART_MANIFEST]), path)


def _require_plain(path: Path, most: int) -> None:
    """Raise DataError where the path is no plain file: a link, a pipe; or it is too large."""
    try:
        state = path.lstat()
    except OSError as error:
        raise DataError(
            f"{path.parent}: is no complete part of a run: {path.name} cannot be read "
            f"({error.strerror}); name the folder that `fairgate run --shard` wrote"
        ) from error
    if not stat.S_ISREG(state.st_mode):
        raise DataError(f"{path}: is no plain file; expected the one that `fairgate run` wrote")
    if state.st_size > most:
        raise DataError(f"{path}: larger than {most >> 20:,} MiB; expected a file that we wrote")


def _manifest(found: Mapping[str, Any], path: Path) -> Manifest:
    again = "run the part again, and leave the folder as it was written"
    if found.get("schema_version") != _VERSION:
        raise DataError(
            f"{path}: 'schema_version' is {capped(found.get('schema_version'))}, expected "
            f"{_VERSION}: run the part again with this version of FairGate"
        )
    named = found.get("shard")
    values = named if isinstance(named, dict) else {}
    number, of = _count(values.get("number")), _count(values.get("of"))
    if number is None or of is None or not 1 <= number <= of <= MOST_SHARDS:
        raise DataError(f"{path}: 'shard' is {capped(named)}, expected its number; {again}")
    counts = {name: _count(found.get(name)) for name in ("sources", "questions", "seed")}
    texts = {name: found.get(name) for name in _TEXTS}
    tables: dict[str, Any] = {name: found.get(name) for name in _TABLES}
    wrong = [name for name, value in counts.items() if value is None]
    wrong += [name for name, value in texts.items() if not isinstance(value, str)]
    wrong += [name for name, value in tables.items() if not _is_table(value)]
    wrong += [] if wrong or all(map(_STATED.fullmatch, tables["spent"].values())) else ["spent"]
    if wrong:
        raise DataError(f"{path}: {wrong[0]!r} is {capped(found.get(wrong[0]))}; {again}")
    return Manifest(shard=Shard(number, of), **counts, **texts, **tables)  # type: ignore[arg-type]


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count else None  # type: ignore[return-value]


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, str) and len(name) + len(each) <= 4000 for name, each in value.items()
    )


def read_shard(folder: Path, manifest: Manifest, expected: frozenset[tuple[str, str]]) -> ReadShard:
    """Return a part of a run with its answers; `expected` is what its part of the plan asks.

    Raises DataError for another question, one that stands twice, and broken lines.
    """
    answers: dict[tuple[str, str], Execution | None] = {}
    unlabelled: dict[tuple[str, str], Execution] = {}
    path, seen = folder / ANSWERS, SeenDocuments()
    for line, record in read_json_objects(str(path), RepeatedDocuments()):
        place = f"{path}:{line}"
        own = dict(record)
        absent, without = own.pop(_ABSENT, False), own.pop(_UNLABELLED, None)
        whole = own | ({"response": None} if absent is True else {})
        suite, key, answer = line_from(whole, place, seen)
        name, execution = (suite, key), answer.to(suite, key)
        if name in answers or not may_be_asked(*name, expected):
            what = "stands twice" if name in answers else "is no question of this part"
            raise DataError(f"{place}: {quoted(execution.key)} {what}; run the part again")
        answers[name] = None if absent is True else execution
        if without is not None:
            unlabelled[name] = _without_labels(execution, without, place)
    if len(answers) != manifest.questions:
        raise DataError(
            f"{path}: holds {len(answers):,} answers, {PART_MANIFEST} names "
            f"{manifest.questions:,}; run the part again"
        )
    return ReadShard(
        folder=folder,
        manifest=manifest,
        part=AnsweredPart(answers=answers, vectors=_vectors(folder / VECTORS, answers)),
        unlabelled=unlabelled,
    )


def _without_labels(execution: Execution, places: object, place: str) -> Execution:
    documents = list(execution.documents or ())
    for number in places if isinstance(places, list) else [None]:
        position = _count(number)
        if position is None or position >= len(documents):
            raise DataError(
                f"{place}: {_UNLABELLED!r} is {capped(places)}; expected places of documents"
            )
        documents[position] = replace(documents[position], label=None)
    return execution._replace(documents=documents)


def _vectors(path: Path, answers: Answers) -> dict[str, Vectors]:
    """Return the vectors of documents that the answers name, and of no others."""
    shown = [one.documents or () for one in answers.values() if one is not None]
    names = {document_name(document) for documents in shown for document in documents}
    found: dict[str, Vectors] = {}
    size = None
    for line, record in read_json_objects(str(path)):
        name, text = record.get("document"), record.get("vector")
        row = (
            _vector(text)
            if isinstance(name, str) and name in names and isinstance(text, str)
            else None
        )
        if row is None or (size is not None and len(row) != size):
            raise DataError(
                f"{path}:{line}: holds no vector ({capped(text)}) of a document of this part; "
                "expected finite numbers, as many as on the other lines: run the part again"
            )
        size = len(row)
        found[str(name)] = row
    return found


def _vector(text: str) -> Vectors | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not raw or len(raw) % 4 or len(raw) > 4 * _MOST_DIMENSIONS:
        return None
    row = np.frombuffer(raw, dtype="<f4")
    return row if bool(np.isfinite(row).all()) else None
