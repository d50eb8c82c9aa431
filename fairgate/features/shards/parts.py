"""Parts of one run: asked apart, checked against the others, judged as one.

The unit of assignment is a source (for question items their template): all that one source's cases
ask of each other stays in one part. Only attribution compares sources before it asks, so no part
asks for it; it follows when the parts are one run again.

A part's folder comes from another machine, and from a fork's workflow from anybody: plain files of
known names are read, up to a limit, and nothing in them is executed. `parts.json` has the hash of
each file, which finds damage and edits by accident; who writes all of them can write what he likes,
as in a folder of a run. Nothing is believed that a part says about results: there is none in it.
Every statistic is computed from the answers, by the policy and the baseline that are here.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fairgate import __version__
from fairgate.domain.cases import Case, TestPlan, first_asked, system_key, uncrossed
from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import Document, Execution, SharedDocuments
from fairgate.domain.ports import (
    NOTHING,
    Executed,
    Progress,
    Runtime,
    SystemUnderTest,
    Vectors,
)
from fairgate.domain.schema import Role
from fairgate.domain.wording import harmless, quoted
from fairgate.gate.baseline import AcceptedRuns, of_machines, plan_hash
from fairgate.gate.composition import Composition, FinishedRun
from fairgate.gate.gate import run_gate
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.manifest import contents
from fairgate.gate.origin import Counted
from fairgate.gate.run_folder import (
    PART_MANIFEST,
    RECORD,
    execution_lines,
    is_shard,
)
from fairgate.gate.waves import ask, assess
from fairgate.io.durable import PARTS, check_parts, write_parts
from fairgate.io.git import prepared, writable
from fairgate.io.tables import capped, read_json_object, read_json_objects, unreadable
from fairgate.suites.metamorphic.assess import document_key
from fairgate.systems.recorded_answers import line_from
from fairgate.systems.reference import reference_of

MOST_SHARDS = 1000
ANSWERS = "shard-answers.jsonl"
VECTORS = "shard-vectors.jsonl"
ExecutionsOrNone = dict[tuple[str, str], Execution | None]
"""(suite, key) of everything that was asked to what happened; None: the system had no answer."""
RunIdentity = Mapping[str, str]
"""What a run is about, by name; nothing where it is not on CI."""
_MOST_BYTES = {PART_MANIFEST: 1 << 20, PARTS: 1 << 20, ANSWERS: 4 << 30, VECTORS: 4 << 30}
_MOST_DIMENSIONS = 1 << 14
_MOST_CHARACTERS = 4000
_MOST_FOLDERS = 4 * MOST_SHARDS
_ABSENT, _UNLABELLED = "absent", "unlabelled"
_NOT_ASKED = tuple(role for role in Role if not (role.is_model and role.is_under_test))
"""The models under test answer in the parts alone, which name them by fingerprint."""


ShortText = Annotated[str, Field(max_length=_MOST_CHARACTERS)]
TextTable = dict[ShortText, ShortText]
NotNegative = Annotated[int, Field(ge=0, strict=True)]


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One part of a run: `number`, from 1, out of `of`."""

    number: NotNegative
    of: NotNegative

    def __str__(self) -> str:
        """Return `2/4`, as the command line takes it."""
        return f"{self.number}/{self.of}"

    @property
    def is_possible(self) -> bool:
        """Return whether a run can have this part."""
        return 1 <= self.number <= self.of <= MOST_SHARDS


def _possible(shard: Shard) -> Shard:
    if not shard.is_possible:
        raise ValueError("no run has this part")
    return shard


class Part(BaseModel):
    """The manifest of a part: only folder and `shard` differ among the parts of a run."""

    model_config = ConfigDict(frozen=True)

    schema_version: Literal[1] = 1
    folder: Path = Field(exclude=True)
    shard: Annotated[Shard, AfterValidator(_possible)]
    sources: NotNegative
    questions: NotNegative
    answers: NotNegative = 0
    """What the system was to answer, equal questions counted once."""
    stored: NotNegative = 0
    """Of these, answers of an earlier run."""
    fairgate: str
    policy: str
    policy_path: str
    seed: NotNegative
    system: str
    """Hash of the policy's system and judge as they are written."""
    suites: TextTable
    """Suite to the hash of all that the whole run asks."""
    files: TextTable
    """Corpus, recorded answers: name to SHA-256, of those that are files of the checkout."""
    identity: TextTable
    """What the run is about, by name: on CI its repository, workflow run, head and base commit."""
    under_test: TextTable
    environment: TextTable

    @property
    def division(self) -> int:
        """Return how many parts the run has."""
        return self.shard.of


@dataclass(slots=True, kw_only=True)
class Answered:
    """What a part of a run knows, or all of them together."""

    answers: ExecutionsOrNone = field(default_factory=dict)
    vectors: dict[str, Vectors] = field(default_factory=dict)
    """Name of a document that is compared to its float32 vector `[d]`."""
    unlabelled: dict[tuple[str, str], Execution] = field(default_factory=dict)
    """Executions as the system gave them, where labels of documents were added behind it."""


# What a part asks.


def assigned(cases: Sequence[Case], division: int) -> dict[str, int]:
    """Return by source the number, from 1, of the part that asks about it.

    Sources with the most planned questions are assigned first, each to the part that has the
    fewest so far; sources of equal size by the hash of their name. So neither the order of the
    files nor that of the plan matters.
    """
    sizes = Counter(case.cluster for case in cases)
    loads = [0] * division
    parts: dict[str, int] = {}
    for source in sorted(sizes, key=lambda name: (-sizes[name], _hash(name))):
        lightest = min(range(division), key=loads.__getitem__)
        loads[lightest] += sizes[source]
        parts[source] = lightest + 1
    return parts


def part_of(plan: TestPlan, shard: Shard) -> TestPlan:
    """Return a part's cases and units, in the order of the plan."""
    parts = assigned(plan.cases, shard.of)
    cases = [case for case in plan.cases if parts[case.cluster] == shard.number]
    names = {(case.suite, case.key) for case in cases}
    units = [u for u in plan.units if all((u.suite, key) in names for key in u.asks.values())]
    return TestPlan(cases=cases, units=units)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _document_name(document: Document) -> str:
    """Return a short name of a document: the hash of what tells it from others."""
    return _hash(document_key(document) or "")


@dataclass(slots=True)
class _VectorRecorder:
    """A system under test, with all vectors that it gave by the names of the documents."""

    inner: SystemUnderTest
    vectors_by_document: dict[str, Vectors] = field(default_factory=dict)

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        return self.inner.execute(cases, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        rows = self.inner.vectors(documents)
        if rows is not None:
            self.vectors_by_document |= dict(zip(map(_document_name, documents), rows, strict=True))
        return rows


def shard_folder(chosen: Path | None, composition: Composition, shard: Shard) -> Path:
    """Return the folder of a part: the one named, else one of its own in the cache.

    Raises UsageError where it holds a run: that would stay beside the part.
    """
    name = f"{composition.loaded.policy.name}.{shard.number}-of-{shard.of}"
    cache = composition.runtime.cache
    if chosen is None:
        writable(cache, "--cache")
    folder = writable(chosen or cache / "shards" / name, "--out")
    if (folder / RECORD).exists():
        raise UsageError(f"{folder}: holds a run; a part needs its own: name another with --out")
    return folder


def run_shard(
    composition: Composition, shard: Shard, folder: Path, identity: RunIdentity | None = None
) -> Part:
    """Ask a part of a policy's plan, all but attribution, and write its folder; decide nothing.

    What was answered before comes from the store, as in a run. Raises what the system raises;
    nothing is written then.
    """
    loaded = composition.loaded
    asks = part_of(loaded.plan, shard)
    own = {case.suite for case in asks.cases}
    suites = {name: suite for name, suite in loaded.suites.items() if name in own}
    with composition.until_it_ends(f"{shard.number} of {shard.of}"):
        with composition.serving():
            under_test = dict(composition.system.under_test())
            recorder, counted = _VectorRecorder(composition.system), Counted(composition.progress)
            done = ask(asks, suites, recorder, counted)
            assess(done, recorder)  # looks up the vectors that the whole run will compare
        names = [
            (case.suite, case.key)
            for case in (*(case for case in asks.cases if not case.waits), *done.added)
        ]
        answered = Answered(
            answers={name: done.executions.get(name) for name in names},
            vectors=recorder.vectors_by_document,
            unlabelled=dict(composition.unlabelled),
        )
        part = Part(
            folder=folder,
            shard=shard,
            sources=len({case.cluster for case in asks.cases}),
            questions=len(answered.answers),
            answers=counted.answers,
            stored=composition.reused(counted),
            policy_path=loaded.parsed.path,
            **expected(loaded, composition.runtime, identity),
            under_test=under_test,
            environment=composition.environment,
        )
        _write(part, answered)
    return part


def expected(
    loaded: LoadedPolicy, runtime: Runtime, identity: RunIdentity | None = None
) -> dict[str, Any]:
    """Return the facts that all parts of a run of a policy share, by the manifest's names.

    It holds all that decides what is asked, of which system; rules are no part of it. `identity`
    names what the run is about, on CI.
    """
    policy = loaded.policy
    judge = "" if policy.judge is None else policy.judge.model_dump_json()
    system = f"{policy.system.model_dump_json()}\0{judge}"
    reference = reference_of(policy, runtime)
    if reference is not None:
        system = f"{system}\0{reference[0].model_dump_json()}"
    return {
        "fairgate": __version__,
        "policy": policy.name,
        "seed": policy.seed,
        "system": hashlib.sha256(system.encode()).hexdigest(),
        "suites": {name: plan_hash(loaded.plan.cases_of(name)) for name in loaded.suites},
        "files": contents(policy, runtime, *_NOT_ASKED),
        "identity": dict(identity or {}),
    }


# The folder of a part.


def _write(part: Part, answered: Answered) -> None:
    """Write a part's folder, all of it or nothing. Equal parts give equal bytes."""
    about = {"is": "a part of a run, not a verdict", **part.model_dump()}
    head = json.dumps(about, indent=1, ensure_ascii=False)
    vectors = (
        (name, row.astype("<f4").tobytes()) for name, row in sorted(answered.vectors.items())
    )
    files = {
        PART_MANIFEST: (head, "\n"),
        ANSWERS: _answer_lines(answered),
        VECTORS: (
            json.dumps({"document": name, "vector": base64.b64encode(raw).decode()}) + "\n"
            for name, raw in vectors
        ),
    }
    write_parts(prepared(part.folder, "--out"), files)


def _answer_lines(part: Answered) -> Iterator[str]:
    lines = execution_lines(
        (name, execution) for name, execution in part.answers.items() if execution is not None
    )
    for (suite, key), execution in part.answers.items():
        if execution is None:
            yield json.dumps({"suite": suite, "key": key, _ABSENT: True}, ensure_ascii=False) + "\n"
            continue
        line, unlabelled = next(lines), part.unlabelled.get((suite, key))
        if unlabelled is not None and execution.documents:
            pairs = enumerate(zip(unlabelled.documents or (), execution.documents, strict=True))
            indices = [index for index, (bare, both) in pairs if bare.label != both.label]
            line = f'{line[:-1]}, "{_UNLABELLED}": {json.dumps(indices)}}}'
        yield line + "\n"


def find_shards(paths: Sequence[Path]) -> list[Part]:
    """Return the parts in the folders that are named, or lie directly in them.

    Raises UsageError for a folder without any, DataError where one is damaged.
    """
    folders: dict[Path, None] = {}
    for folder in paths:
        manifests = (
            manifest for deep in ("*", "*/*") for manifest in folder.glob(f"{deep}/{PART_MANIFEST}")
        )
        inner = {manifest.parent.relative_to(folder) for manifest in manifests}
        plain = sorted(
            path for path in inner if (folder / path).resolve() == folder.resolve() / path
        )
        below = [folder] if is_shard(folder) else [folder / path for path in plain]
        if not below:
            raise UsageError(
                f"{folder}: holds no part of a run; name the folders that `fairgate run --shard` "
                "wrote, or the one that they lie in"
            )
        folders.update(dict.fromkeys(below))
    if len(folders) > _MOST_FOLDERS:
        raise UsageError(f"{len(folders):,} folders of parts are more than {_MOST_FOLDERS:,}")
    return sorted(map(_read_manifest, folders), key=lambda part: (part.shard, str(part.folder)))


def _read_manifest(folder: Path) -> Part:
    """Read the part in a folder. Raises DataError, also for a folder of another kind."""
    for name, most in _MOST_BYTES.items():
        path = folder / name
        try:
            state = path.lstat()
        except OSError as error:
            raise unreadable(str(path), error) from error
        if not stat.S_ISREG(state.st_mode) or state.st_size > most:  # a link, a pipe
            raise DataError(
                f"{path}: is no plain file, or larger than {most >> 20:,} MiB; expected the one "
                "that `fairgate run --shard` wrote"
            )
    names = (PART_MANIFEST, ANSWERS, VECTORS)
    listed = read_json_object(folder / PARTS, _MOST_BYTES[PARTS]).get("parts")
    if isinstance(listed, dict) and not set(listed) <= set(names):
        raise DataError(
            f"{folder / PARTS}: names more than {', '.join(names)}; expected a folder as "
            "`fairgate run --shard` wrote it: run that part again"
        )
    check_parts(folder, names)
    path = folder / PART_MANIFEST
    content = read_json_object(path, _MOST_BYTES[PART_MANIFEST])
    try:
        return Part.model_validate({**content, "folder": folder})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise DataError(
            f"{path}: {name!r} is {capped(content.get(name))}; run the part again with this "
            "version of FairGate, and leave the folder as it was written"
        ) from error


def _read(part: Part, plan: TestPlan) -> Answered:
    """Read the answers of a part of a run.

    Raises DataError for a question that the part does not ask, one that stands twice, and broken
    lines.
    """
    planned = {(case.suite, case.key) for case in part_of(plan, part.shard).cases}
    answered = Answered()
    path, shared = part.folder / ANSWERS, SharedDocuments()
    for line, record in read_json_objects(str(path)):
        location = f"{path}:{line}"
        own = dict(record)
        absent, without = own.pop(_ABSENT, False), own.pop(_UNLABELLED, None)
        whole = own | ({"response": None} if absent is True else {})
        suite, key, execution = line_from(whole, location, shared)
        name = suite, key
        # Attribution's questions may be there, too, where they were asked in parts.
        asked = key, first_asked(key), uncrossed(key), system_key(key)
        is_own = any((suite, base) in planned for base in asked)
        if name in answered.answers or not is_own:
            fault = "occurs twice" if name in answered.answers else "is no question of this part"
            raise DataError(f"{location}: {quoted(key)} {fault}; run the part again")
        answered.answers[name] = None if absent is True else execution
        if without is not None:
            documents = list(execution.documents or ())
            for number in without if isinstance(without, list) else [None]:
                if type(number) is not int or not 0 <= number < len(documents):
                    raise DataError(
                        f"{location}: {_UNLABELLED!r} is {capped(without)}; expected document "
                        "places"
                    )
                documents[number] = replace(documents[number], label=None)
            answered.unlabelled[name] = execution._replace(documents=documents)
    if len(answered.answers) != part.questions:
        raise DataError(
            f"{path}: holds {len(answered.answers):,} answers, {PART_MANIFEST} names "
            f"{part.questions:,}; run the part again"
        )
    answered.vectors = _vectors(part.folder / VECTORS, answered.answers)
    return answered


def _vectors(path: Path, answers: ExecutionsOrNone) -> dict[str, Vectors]:
    """Return the vectors of documents that the answers name, and of no others."""
    lists = [execution.documents or () for execution in answers.values() if execution is not None]
    names = {_document_name(document) for documents in lists for document in documents}
    vectors: dict[str, Vectors] = {}
    for line, record in read_json_objects(str(path)):
        name, text, row = record.get("document"), record.get("vector"), np.empty(0, "<f4")
        if isinstance(name, str) and name in names and isinstance(text, str):
            with contextlib.suppress(ValueError):
                row = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
        sizes = {len(vector) for vector in (row, *islice(vectors.values(), 1))}
        if not 0 < len(row) <= _MOST_DIMENSIONS or len(sizes) > 1 or not np.isfinite(row).all():
            raise DataError(
                f"{path}:{line}: holds no vector ({capped(text)}) of a document of this part; "
                "expected finite numbers, as many as on the other lines: run the part again"
            )
        vectors[str(name)] = row
    return vectors


# All parts as one run.


def merge(
    parts: Sequence[Part], composition: Composition, accepted_runs: AcceptedRuns, *, asks: bool
) -> FinishedRun:
    """Judge parts as one run; equal to the run of one process where `asks`.

    Attribution's questions follow from the answers of all parts: where `asks`, and there are some,
    they are asked here. Raises UsageError where parts are foreign, missing or there twice, or the
    system to ask is another one here; DataError where one is damaged.
    """
    loaded, under_test = composition.loaded, parts[0].under_test
    read = read_all(parts, loaded, composition.runtime)
    environment = of_machines([part.environment for part in parts])
    gate_input = composition.gate_input(accepted_runs, under_test, environment)
    system = UnitedSystem(read, under_test, composition if asks else None)
    with system.stack:
        counted = Counted(composition.progress)
        judged = run_gate(gate_input, system, counted)
        answers = counted.answers + sum(part.answers for part in parts)
        stored = composition.reused(counted) + sum(part.stored for part in parts)
        environment = system.environment(environment)
    notice = (
        f"attribution was not asked (--no-attribution): {system.left_out:,} questions that "
        "separate retriever and generator follow from the answers of all parts; merge them "
        "without that option where the system can be asked"
    )
    return composition.finished(
        judged,
        origin=composition.origin(answers, stored),
        environment=environment,
        notice=notice if system.left_out else "",
    )


def read_all(parts: Sequence[Part], loaded: LoadedPolicy, runtime: Runtime) -> list[Answered]:
    """Read the answers of all parts of a run, in their order, each once.

    What a run is about only CI knows (`change`); here the parts must agree on it. Raises UsageError
    where parts are of other runs, missing or there twice.
    """
    first = parts[0]
    facts = expected(loaded, runtime, first.identity)
    facts |= {"division": first.division, "under_test": first.under_test}
    for part in parts:
        if (wrong := objection(part, facts)) is not None:
            raise UsageError(
                f"{part.folder}: {wrong}; such a part says nothing about this run: leave it out, "
                f"or run `fairgate run {loaded.parsed.path} --shard {part.shard}` again"
            )
    for part, other in pairwise(parts):  # in the order of their numbers
        if part.shard == other.shard:
            raise UsageError(
                f"part {part.shard} is there twice: {part.folder} and {other.folder}; leave one out"
            )
    count = first.division
    missing = sorted(set(range(1, count + 1)) - {part.shard.number for part in parts})
    if missing:
        raise UsageError(
            f"{len(missing)} of {count} parts are missing: {', '.join(map(str, missing[:5]))}; run "
            f"`fairgate run {loaded.parsed.path} --shard {Shard(missing[0], count)}`, and merge all"
        )
    return [_read(part, loaded.plan) for part in parts]


def objection(part: Part, facts: Mapping[str, Any]) -> str | None:
    """Return why a part is not of the run that `expected` describes; None where it is."""
    for name, then, now in _differing({name: getattr(part, name) for name in facts}, facts):
        return f"its {name} is {then}, here it is {now}"
    return None


def _differing(
    before_table: Mapping[str, Any], after_table: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield what two descriptions say otherwise, in words; of tables entry by entry."""
    for name in dict.fromkeys((*before_table, *after_table)):
        then, now = before_table.get(name, "nothing"), after_table.get(name, "nothing")
        if isinstance(then, Mapping):
            for key, before, after in _differing(then, now):
                yield f"{name} {quoted(key)}", before, after
        elif then != now:
            yield harmless(name), quoted(str(then)), quoted(str(now))


class UnitedSystem:
    """The system under test of a whole run, whose answers were asked in parts.

    What the plan asks is never asked again. Those of attribution's questions that no part has asked
    go to the policy's system, which is opened when the first of them comes up, until `stack` ends.
    """

    def __init__(
        self,
        parts: Sequence[Answered],
        under_test: Mapping[str, str],
        live: Composition | None = None,
    ) -> None:
        """Take all parts and the system that they asked; without `live` nothing is asked."""
        self._answered = Answered()
        for part in reversed(parts):  # of two parts' vectors of a document the first counts
            for name in Answered.__slots__:
                getattr(self._answered, name).update(getattr(part, name))
        self._under_test, self._live = under_test, live
        self._opened: SystemUnderTest | None = None
        self.stack = contextlib.ExitStack()
        self.left_out = 0
        """How many of attribution's questions were not asked."""

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return the executions in the order of the cases.

        Raises DataError where the parts were never asked a case of the plan, UsageError where the
        system to ask is not the one that the parts asked.
        """
        answers = self._answered.answers
        unknown = [case for case in cases if (case.suite, case.key) not in answers]
        crossed = [case for case in unknown if case.is_crossing]
        lacking = [case for case in unknown if not case.is_crossing]
        if lacking:
            raise DataError(
                f"the parts of the run lack {len(lacking):,} questions of the plan, first "
                f"{quoted(lacking[0].key)} of suite {quoted(lacking[0].suite)}; expected all of "
                "them: run every part again, and leave the folders as they were written"
            )
        executions: Executed = NOTHING
        if crossed and self._live is not None:
            executions = self._system(self._live).execute(crossed, progress, earlier)
        else:
            self.left_out += len(crossed)
        names = [(case.suite, case.key) for case in cases]
        pairs = ((name, answers.get(name) or executions.get(name)) for name in names)
        return {name: execution for name, execution in pairs if execution is not None}

    def _system(self, live: Composition) -> SystemUnderTest:
        if self._opened is None:
            self.stack.enter_context(live.serving())
            for name, then, now in _differing(self._under_test, live.system.under_test()):
                raise UsageError(
                    f"attribution's questions would be put to another system: {name} is {now} "
                    f"here, the parts asked {then}; merge where that one is, or leave attribution "
                    "out with --no-attribution"
                )
            live.unlabelled.update(self._answered.unlabelled)
            self._opened = live.system
        return self._opened

    def environment(self, of_parts: Mapping[str, str]) -> dict[str, str]:
        """Return the parts' machines and, where the system was asked here, its own."""
        if self._live is None or self._opened is None:
            return of_machines([of_parts])
        return of_machines([of_parts, self._live.environment])

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings that the parts looked up; None where one of them is not known."""
        embeddings = [
            self._answered.vectors.get(_document_name(document)) for document in documents
        ]
        rows = [row for row in embeddings if row is not None]
        return np.stack(rows) if rows and len(rows) == len(embeddings) else None
