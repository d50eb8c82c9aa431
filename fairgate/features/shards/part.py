"""A part of a run: asked on one machine, decided with the other parts on another."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fairgate import __version__
from fairgate.domain.errors import BudgetError, UsageError
from fairgate.domain.fields import Role
from fairgate.domain.runtime import Runtime
from fairgate.features.shards.folder import Manifest, write_shard
from fairgate.features.shards.shard import AnsweredPart, Shard, answer_part, part_of
from fairgate.gate.baseline import plan_hash
from fairgate.gate.composition import Composition
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.manifest import contents
from fairgate.gate.run_folder import RunFolder
from fairgate.io.kept_out_of_git import keep_output_out_of_git

_NOT_ASKED = tuple(role for role in Role if not (role.is_model and role.is_under_test))
"""The models under test answer in the parts alone, which name them by fingerprint."""

Identity = Mapping[str, str]
NOT_ON_CI: Identity = MappingProxyType({})


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
