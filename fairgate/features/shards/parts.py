"""Parts of a run: each asked by itself, checked against the others, then judged as one.

Nothing is believed that a part says about results: there is none in it. Every statistic is computed
from the answers, by the policy and the baseline that are here.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from fairgate import __version__
from fairgate.domain.errors import BudgetError, DataError, UsageError
from fairgate.domain.executions import Execution
from fairgate.domain.ports import SILENT, SystemUnderTest, Vectors
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Role
from fairgate.domain.wording import harmless, quoted
from fairgate.features.shards.folder import (
    Manifest,
    ReadShard,
    read_manifest,
    read_shard,
    write_shard,
)
from fairgate.features.shards.shard import (
    MOST_SHARDS,
    AnsweredPart,
    Shard,
    UnitedSystem,
    answer_part,
    ask_attribution,
    part_of,
)
from fairgate.gate.baseline import References, of_machines, plan_hash
from fairgate.gate.composition import Composition, on_its_machines
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.manifest import contents
from fairgate.gate.run_folder import RunFolder, is_shard
from fairgate.gate.waves import answer_waves
from fairgate.io.git import keep_output_out_of_git

_NAMED = 5
_MOST_FOLDERS = 4 * MOST_SHARDS
_WORDS = {
    "fairgate": "was asked by FairGate {there}, this is {here}",
    "policy": "is of policy {there}, not of {here}",
    "seed": "was asked with seed {there}, the policy's is {here}",
    "system": "is of another system: the policy's `system` or `judge` is not as it was",
}
_TABLES = {
    "suites": "its questions of suite {} are not those of the policy here",
    "files": "it was asked with another file {} than is here",
    "identity": "it was asked for another {} than this run is of",
}
_NOT_ASKED = tuple(role for role in Role if not (role.is_model and role.is_under_test))
"""The models under test answer in the parts alone, which name them by fingerprint."""
Identity = Mapping[str, str]
NOT_ON_CI: Identity = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A folder that holds a part of a run, not read any further."""

    folder: Path
    manifest: Manifest


def find_shards(named: Sequence[Path]) -> list[Found]:
    """Return the parts in the folders that are named, or lie directly in them.

    Raises UsageError for a folder without any, DataError where one is damaged.
    """
    found = [Found(folder=folder, manifest=read_manifest(folder)) for folder in _folders(named)]
    return sorted(found, key=lambda one: (one.manifest.shard, str(one.folder)))


def _folders(named: Sequence[Path]) -> list[Path]:
    folders: dict[Path, None] = {}
    for folder in named:
        below = [folder] if is_shard(folder) else sorted(filter(is_shard, _below(folder)))
        if not below:
            raise UsageError(
                f"{folder}: holds no part of a run; name the folders that `fairgate run --shard` "
                "wrote, or the one that they lie in"
            )
        folders.update(dict.fromkeys(below))
    if len(folders) > _MOST_FOLDERS:
        raise UsageError(f"{len(folders):,} folders of parts are more than {_MOST_FOLDERS:,}")
    return list(folders)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder, and those in them; no links."""
    for inner in _inside(folder):
        yield inner
        yield from _inside(inner)


def _inside(folder: Path) -> Iterator[Path]:
    try:
        yield from (each for each in folder.iterdir() if each.is_dir() and not each.is_symlink())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from error


def shard_folder(named: Path | None, runtime: Runtime, loaded: LoadedPolicy, shard: Shard) -> Path:
    """Return the folder of a part: the one named, else one of its own in the cache.

    Raises UsageError where it holds a run: that would stay beside the part.
    """
    name = f"{loaded.policy.name}.{shard.number}-of-{shard.of}"
    folder = named or runtime.cache / "shards" / name
    if RunFolder(path=folder).record.exists():
        raise UsageError(
            f"{folder}: holds a run; a part of one needs a folder of its own: name another with "
            "--out"
        )
    return folder


def run_shard(
    composition: Composition, shard: Shard, folder: Path, identity: Identity = NOT_ON_CI
) -> tuple[Manifest, list[str]]:
    """Ask a part of a policy's plan and write its folder; return what it was, and notices.

    What was answered before comes from the store, as in a run. Raises what the system raises; the
    folder of a part whose budget is spent says so to the merge.
    """
    loaded, progress = composition.loaded, composition.progress
    part = part_of(loaded.plan, shard)
    with composition.until_it_ends(f"{shard.number} of {shard.of}"):
        with composition.serving():
            under_test = dict(composition.system.under_test())
            seed, system, error = loaded.policy.seed, composition.system, None
            try:
                answered = answer_part(part, loaded.suites, seed, system, progress)
            except BudgetError as spent:
                answered, error = AnsweredPart(answers={}, vectors={}), spent
        manifest = Manifest(
            shard=shard,
            sources=len({case.cluster for case in part.cases}),
            questions=len(answered.answers),
            under_test=under_test,
            environment=composition.environment,
            **expected(loaded, composition.runtime, identity),  # type: ignore[arg-type]
        )
        manifest = manifest if error is None else manifest.ended_by(error)
        keep_output_out_of_git(folder)
        write_shard(folder, manifest, answered, composition.unlabelled)
        if error is not None:
            raise error
    return manifest, composition.notices


def expected(
    loaded: LoadedPolicy, runtime: Runtime, identity: Identity = NOT_ON_CI
) -> dict[str, object]:
    """Return what is equal in all parts of a run of a policy, by the manifest's names.

    It holds all that decides what is asked, of which system; rules are no part of it. `identity`
    names what the run is about, on CI.
    """
    policy = loaded.policy
    return {
        "fairgate": __version__,
        "policy": policy.name,
        "policy_path": loaded.parsed.path,
        "seed": policy.seed,
        "system": _system_hash(loaded),
        "suites": {name: plan_hash(loaded.plan.cases_of(name)) for name in loaded.suites},
        "files": contents(policy, runtime, *_NOT_ASKED),
        "identity": dict(identity),
    }


def _system_hash(loaded: LoadedPolicy) -> str:
    policy = loaded.policy
    judge = "" if policy.judge is None else policy.judge.model_dump_json()
    return hashlib.sha256(f"{policy.system.model_dump_json()}\0{judge}".encode()).hexdigest()


def require_whole(shards: Sequence[Found], loaded: LoadedPolicy, runtime: Runtime) -> None:
    """Raise UsageError where parts are foreign, missing or there twice.

    What a run is about only CI knows (`change_parts`); here the parts must agree on it.
    """
    here = expected(loaded, runtime, shards[0].manifest.identity)
    for one in shards:
        wrong = objection(one.manifest, here)
        if wrong is not None:
            raise UsageError(
                f"{one.folder}: {wrong}; such a part says nothing about this run: leave it out, or "
                f"run `fairgate run {loaded.parsed.path} --shard {one.manifest.shard}` again"
            )
    first = shards[0]
    for one in shards[1:]:
        _require_same_run(first, one)
    _require_each_once(shards)


def objection(there: Manifest, here: Mapping[str, object]) -> str | None:
    """Return why a part is not of the run that `expected` describes; None where it is."""
    return next(_foreign(there, here), None)


def _foreign(there: Manifest, here: Mapping[str, object]) -> Iterator[str]:
    for name, words in _WORDS.items():
        value = getattr(there, name)
        if value != here[name]:
            yield words.format(there=quoted(str(value)), here=quoted(str(here[name])))
    for name, sentence in _TABLES.items():
        then, now = getattr(there, name), here[name]
        assert isinstance(now, dict)  # noqa: S101 - as `expected` makes it
        differing = sorted(key for key in {*then, *now} if then.get(key) != now.get(key))
        yield from (sentence.format(quoted(key)) for key in differing)


def _require_same_run(first: Found, other: Found) -> None:
    one, two = first.manifest, other.manifest
    if one.shard.of != two.shard.of:
        raise UsageError(
            f"{other.folder}: is part {two.shard.number} of {two.shard.of}, {first.folder} is one "
            f"of {one.shard.of}: they are parts of different runs; name those of one"
        )
    for name in sorted({*one.under_test, *two.under_test}):
        values = one.under_test.get(name, "nothing"), two.under_test.get(name, "nothing")
        if values[0] != values[1]:
            raise UsageError(
                f"{other.folder}: what was asked is another system: {harmless(name)} is "
                f"{quoted(values[1])}, in {first.folder} {quoted(values[0])}; run all parts with "
                "the same model, corpus and revision"
            )


def _require_each_once(shards: Sequence[Found]) -> None:
    by_number: dict[int, Found] = {}
    of = shards[0].manifest.shard.of
    for one in shards:
        number = one.manifest.shard.number
        if number in by_number:
            raise UsageError(
                f"part {number} of {of} is there twice: {by_number[number].folder} and "
                f"{one.folder}; leave one out"
            )
        by_number[number] = one
    missing = [number for number in range(1, of + 1) if number not in by_number]
    if missing:
        named = ", ".join(map(str, missing[:_NAMED]))
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise UsageError(
            f"{len(missing)} of {of} parts are missing: {named}{more}; run `fairgate run "
            f"{shards[0].manifest.policy_path} --shard {Shard(missing[0], of)}`, and merge them all"
        )


def _require_all_asked(shards: Sequence[Found]) -> None:
    ended = [(one.manifest, one.manifest.error) for one in shards]
    spent = [(manifest, error) for manifest, error in ended if error is not None]
    if spent:
        first = spent[0][1]
        again = ", ".join(
            f"`fairgate run {harmless(one.policy_path)} --shard {one.shard}`" for one, _ in spent
        )
        raise BudgetError(
            first.spent,
            left=sum(error.left for _, error in spent),
            next_step=f"{first.next_step} (in parts: {again})",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A run that was asked in parts, judged as one."""

    given: GateInput
    run: GateRun
    notices: Sequence[str]


def merge(
    shards: Sequence[Found], composition: Composition, references: References, *, asks: bool
) -> Merged:
    """Judge parts as one run; equal to the run of one process where `asks`.

    Attribution's questions follow from the answers of all parts: where `asks`, and there are some,
    they are asked here. Raises UsageError where parts are foreign, missing or there twice, or the
    system to ask is another one here; DataError where one is damaged.
    """
    read = read_all(shards, composition.loaded, composition.runtime)
    under_test = dict(shards[0].manifest.under_test)
    given = composition.gate_input(references, under_test, _environment(shards))
    with contextlib.ExitStack() as stack:
        live = Live(composition, under_test, read, stack)
        united = united_system(read, live if asks else None)
        done = run_gate(given, united, composition.progress)
        given, done = on_its_machines(given, done, live.environment(given.provenance.environment))
    if united.left_out:
        given, done = _with_notice(given, done, _left_out(united.left_out))
    return Merged(given=given, run=done, notices=composition.notices)


def read_all(shards: Sequence[Found], loaded: LoadedPolicy, runtime: Runtime) -> list[ReadShard]:
    """Return all parts of a run, the first one first.

    Raises UsageError and DataError; BudgetError where the budget of one was spent, as a run in one
    process does.
    """
    require_whole(shards, loaded, runtime)
    _require_all_asked(shards)
    return [_read(one, loaded) for one in shards]


def united_system(
    read: Sequence[ReadShard], live: Callable[[], SystemUnderTest] | None
) -> UnitedSystem:
    """Return the system that answers from all parts."""
    answers: dict[tuple[str, str], Execution | None] = {}
    vectors: dict[str, Vectors] = {}
    for one in reversed(read):  # where two parts differ in a document's vector, the first counts
        answers |= one.part.answers
        vectors |= one.part.vectors
    return UnitedSystem(answers, vectors, live)


def _read(found: Found, loaded: LoadedPolicy) -> ReadShard:
    part = part_of(loaded.plan, found.manifest.shard)
    names = frozenset((case.suite, case.key) for case in part.cases)
    return read_shard(found.folder, found.manifest, names)


def _environment(shards: Sequence[Found]) -> dict[str, str]:
    """Return where the answers were made."""
    return of_machines([one.manifest.environment for one in shards])


def _left_out(count: int) -> str:
    return (
        f"attribution was not asked (--no-attribution): {count:,} questions that separate "
        "retriever and generator follow from the answers of all parts; merge them without that "
        "option where the system can be asked"
    )


def _with_notice(given: GateInput, done: GateRun, notice: str) -> tuple[GateInput, GateRun]:
    given = replace(given, notices=[notice, *given.notices])
    result = replace(done.result, notices=[notice, *done.result.notices])
    return given, replace(done, result=result)


@dataclass(slots=True)
class Live:
    """Opens the policy's system when attribution has questions, and makes sure it is the same."""

    composition: Composition
    under_test: Mapping[str, str]
    shards: Sequence[ReadShard]
    stack: contextlib.ExitStack
    is_open: bool = False

    def __call__(self) -> SystemUnderTest:
        """Return the system. Raises UsageError where it is not the one that the parts asked."""
        self.stack.enter_context(self.composition.serving())
        system = self.composition.system
        now = system.under_test()
        for name in sorted({*now, *self.under_test}):
            if now.get(name) != self.under_test.get(name):
                raise UsageError(
                    f"attribution's questions would be put to another system: {harmless(name)} is "
                    f"{quoted(str(now.get(name, 'nothing')))} here, the parts asked "
                    f"{quoted(self.under_test.get(name, 'nothing'))}; merge where that one is, or "
                    "leave attribution out with --no-attribution"
                )
        for one in self.shards:
            self.composition.unlabelled.update(one.unlabelled)
        self.is_open = True
        return system

    def environment(self, of_parts: Mapping[str, str]) -> dict[str, str]:
        """Return the parts' machines and, where the system was asked here, its own and workers'."""
        asked_here = [self.composition.environment] if self.is_open else []
        return of_machines([of_parts, *asked_here])


def run_attribution(
    composition: Composition, shard: Shard, earlier: Sequence[Found], folder: Path
) -> tuple[Manifest, list[str]]:
    """Write a part again, with its answers and those to its share of attribution's questions.

    `earlier` are all parts of the run. Raises UsageError where they are not, or are another
    number of parts.
    """
    loaded = composition.loaded
    read = read_all(earlier, loaded, composition.runtime)
    own = next((one for one in read if one.manifest.shard == shard), None)
    if own is None:
        raise UsageError(
            f"--shard is {shard}, but --after names {len(read)} parts; name one of those: "
            f"{shard.number}/{len(read)}"
        )
    plan, suites, seed = loaded.plan, loaded.suites, loaded.policy.seed
    answered = answer_waves(plan, suites, seed, united_system(read, None), SILENT)
    with contextlib.ExitStack() as stack:
        live = Live(composition, own.manifest.under_test, read, stack)
        error = None
        try:
            crossed = ask_attribution(answered, part_of(plan, shard), live, composition.progress)
        except BudgetError as spent:
            crossed, error = {}, spent
        environment = live.environment(own.manifest.environment)
    answers = {**own.part.answers, **crossed}
    manifest = replace(own.manifest, questions=len(answers), environment=environment)
    manifest = manifest if error is None else manifest.ended_by(error)
    keep_output_out_of_git(folder)
    part = AnsweredPart(answers=answers, vectors=own.part.vectors)
    write_shard(folder, manifest, part, {**own.unlabelled, **composition.unlabelled})
    if error is not None:
        raise error
    return manifest, composition.notices
