"""Which data files of the base commit's policy a change edits.

Rules and baseline can stay as they are while the sources, terms or items behind them are replaced:
a reviewer must see that. Only files of the repository are compared; embedded data and data sets of
the hub cannot be edited by the change.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fairgate.adapters.embedded_names import embedded_path
from fairgate.composition.versions import Files
from fairgate.domain.errors import FairGateError
from fairgate.domain.wording import quoted
from fairgate.policy.named_files import embedded_names
from fairgate.policy.schema import Policy
from fairgate.systems.catalogue import kind_of

MOST_BYTES = 32 << 20
_MOST_FILES = 500
_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedData:
    """The edited files, and whether one of them decides what is asked or how it is measured."""

    files: tuple[str, ...] = ()
    needs_review: bool = False
    """Sources, terms, tasks, items or a measuring model changed, or could not be compared. A corpus
    and recorded answers are what is under test: their changes are what the gate tests."""
    remarks: tuple[str, ...] = ()


def changed_data(policy: Policy, root: Path, base: Files) -> ChangedData:
    """Compare what `policy` names with the base commit's bytes.

    A file that is gone from a folder of items or documents is not seen here: its cases are among
    those that the baseline has and the run has not.
    """
    decides_questions: dict[str, bool] = {}
    for kind, name, decides in _names(policy):
        path = None if _is_embedded(kind, name) else _below(root.resolve(), name)
        if path is not None:
            decides_questions[path] = decides or decides_questions.get(path, False)
    changed: dict[str, None] = {}
    remarks = []
    needs_review = False
    for path, decides in decides_questions.items():
        try:
            found = [file for file in _inside(root, path) if _is_changed(root, file, base)]
        except (FairGateError, OSError) as error:
            remarks.append(f"{quoted(path)} was not compared with the base commit's: {error}")
            needs_review |= decides
            continue
        changed.update(dict.fromkeys(found))
        needs_review |= decides and bool(found)
    return ChangedData(files=tuple(changed), needs_review=needs_review, remarks=tuple(remarks))


def _is_changed(root: Path, path: str, base: Files) -> bool:
    """Return whether the change edits, adds or removes the file. Raises _NotComparedError."""
    file = root / path
    then = base.read(path)
    if not file.is_file():  # gone, or the name of a data set or model on the hub
        return then is not None
    if then is None:
        return True
    pointer = _LFS_POINTER.match(then)
    if pointer is not None:  # the checkout has the content, or the pointer itself
        return _sha256(file) not in {pointer[1].decode(), hashlib.sha256(then).hexdigest()}
    if file.stat().st_size > MOST_BYTES:
        raise _NotComparedError(f"it is larger than {MOST_BYTES >> 20} MiB")
    # A checkout may bring CRLF.
    return then.replace(b"\r\n", b"\n") != file.read_bytes().replace(b"\r\n", b"\n")


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class _NotComparedError(FairGateError):
    """Why a file's two versions stay unknown; reported, and the run continues."""


def _below(root: Path, name: str) -> str | None:
    """Return the path from the root, None where it leads out of it.

    By the letters alone: what a link leads to is the checkout's, the name is the base's.
    """
    path = Path(os.path.relpath(root / name, root))
    return None if path.parts[:1] == ("..",) else path.as_posix()


def _inside(root: Path, path: str) -> list[str]:
    """Return the file, or the files of a folder. Raises _NotComparedError."""
    folder = root / path
    if not folder.is_dir():
        return [path]
    files = sorted(
        file.relative_to(root).as_posix() for file in folder.rglob("*") if file.is_file()
    )
    if len(files) > _MOST_FILES:
        raise _NotComparedError(f"it holds {len(files):,} files, more than {_MOST_FILES}")
    return files


def _is_embedded(kind: str, name: str) -> bool:
    if kind in ("tasks", "perturbations", "attributes"):
        return name in embedded_names(kind)
    return kind not in ("recorded", "judges", "labels") and embedded_path(kind, name) is not None


def _names(policy: Policy) -> Iterator[tuple[str, str, bool]]:
    """Yield kind, name as the policy gives it, and whether it decides what is asked."""
    kind = kind_of(policy.system)
    parts = [kind.named_files(policy.system)]
    labels = kind.labels(policy.system)
    parts += [labels.chosen.named_files()] if labels else []
    parts += [suite.named_files() for suite in policy.suites]
    parts += [policy.judge.named_files()] if policy.judge is not None else []
    for named in chain.from_iterable(parts):
        yield named.kind, named.name, named.decides_questions
