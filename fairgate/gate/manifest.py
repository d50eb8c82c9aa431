"""The manifest: every file, folder and model that a policy names.

On a pull request the base's version of them counts (`github/base_commit.py`): a name that is
missing here is a file that is not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from fairgate.domain.errors import DataError, PolicyError
from fairgate.domain.ports import Runtime
from fairgate.domain.schema import Named, Role, named_in
from fairgate.io.named_files import bundled_path, existing
from fairgate.io.tables import file_sha256
from fairgate.policy.definition_files import bundled_names, read_task
from fairgate.policy.schema import Policy

_BUNDLED = {
    Role.ATTRIBUTES: "attributes",
    Role.CLASSIFIER: "classifiers",
    Role.COLLECTION: "collections",
    Role.CORPUS: "corpora",
    Role.ITEMS: "items",
    Role.PERTURBATIONS: "perturbations",
    Role.SOURCES: "sources",
    Role.TASK: "tasks",
    **dict.fromkeys((Role.EMBEDDER, Role.GENERATOR, Role.JUDGE, Role.RETRIEVER), "models"),
}
"""Which bundled data a name may mean instead, by what it is."""
_YAML = ("attributes", "perturbations", "tasks")


def named_by(policy: BaseModel, runtime: Runtime) -> Iterator[Named]:
    """Yield everything that a policy, or a part of one, names and FairGate does not bring.

    What a task file names follows the file, which is read only then.
    """
    for named in dict.fromkeys(named_in(policy)):
        if _is_bundled(named):
            continue
        yield named
        if named.role is Role.TASK:
            try:
                task = read_task(named.name, folder=runtime.root, confined=runtime.confined)
            except (DataError, PolicyError):  # told, with its place, where the policy is loaded
                continue
            yield from (inner for inner in named_in(task) if not _is_bundled(inner))


def _is_bundled(named: Named) -> bool:
    kind = _BUNDLED.get(named.role)
    if kind is None:
        return False
    if kind in _YAML:
        return named.name in ("none", *bundled_names(kind))
    return bundled_path(kind, named.name) is not None


def may_be_path(named: Named) -> bool:
    """Return whether a name can mean a file or folder; that of a model on the hub cannot."""
    from fairgate.onnx.model_folder import is_hub_id

    return named.revision is None and not (named.role.is_model and is_hub_id(named.name))


def contents(policy: Policy, runtime: Runtime, *roles: Role) -> dict[str, str]:
    """Return role and name of everything that a policy names to a hash of its content.

    Of these roles alone, where there are some. A folder's hash covers every file in it; of what is
    on the hub the revision is known.
    """
    found = {}
    for named in named_by(policy, runtime):
        if roles and named.role not in roles:
            continue
        place = runtime.under_test if named.is_under_test else runtime
        try:
            path = existing(named.name, place.root, confined=place.confined)
            digest = _digest(path) if may_be_path(named) else named.revision or "hub"
        except DataError:  # on the hub, or told where it is read
            digest = named.revision or "hub"
        found[f"{named.role} {named.name}"] = digest
    return found


def _digest(path: Path) -> str:
    if path.is_file():
        return file_sha256(str(path))
    below = [file for file in files_below(path) if file.is_file()]
    files = sorted((file.relative_to(path).as_posix(), file_sha256(str(file))) for file in below)
    return hashlib.sha256(repr(files).encode("utf-8", "surrogatepass")).hexdigest()


def files_below(
    folder: Path, within: Path = Path("/"), above: frozenset[Path] = frozenset()
) -> Iterator[Path]:
    """Yield every file below a folder, behind links too: models are read through them.

    A link that leads back up, or out of `within`, is yielded itself.
    """
    passed = above | {folder.resolve()}
    for entry in folder.iterdir():
        if entry.name == ".git":
            continue
        if not entry.is_dir():
            yield from (entry,) if entry.is_file() else ()
        elif (real := entry.resolve()) in passed or not real.is_relative_to(within):
            yield entry
        else:
            yield from files_below(entry, within, passed)
