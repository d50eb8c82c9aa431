"""Code that decides beside FairGate's own: what a change could bring of it is refused.

Python imports from the folders on its path, and finds plugins there; `--relations` names files. A
folder of the checkout that git tracks files in is one that a change can fill. Whoever refuses them
imports no library before: it could be the change's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairgate.domain.errors import UsageError
from fairgate.domain.plugins import hide, module_files
from fairgate.domain.wording import quoted
from fairgate.io.git import Repository, repository_of, tracked_below
from fairgate.io.tables import read_whole

if TYPE_CHECKING:
    from fairgate.github.base_commit import BaseCommit, Difference

_BELIEVED = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
"""Variables of folders with models, data sets and git's own settings."""


def hide_plugins_of_a_change(arguments: Sequence[str]) -> None:
    """Let no plugin be imported where a change is to be judged that could have brought one.

    Commands come from plugins, too; who is refused is told by the command itself.
    """
    judges = any(each.partition("=")[0] == "--base" for each in arguments)
    named = (Path(each.removeprefix("--root=")) for each in arguments)
    path, is_refused = [*sys.path], False
    try:
        for root in (Path(), *filter(os.path.isdir, named)) if judges else ():
            refuse_own_code(root)
    except UsageError:
        is_refused = True
        sys.path[:] = path
    hide(hidden=is_refused)


def refuse_own_code(root: Path) -> None:
    """Raise UsageError where a commit of the repository around `root` could bring what is run."""
    repository = repository_of(root)
    if repository is None:
        return
    fine = []
    for folder in dict.fromkeys(map(os.path.abspath, sys.path)):
        if file := _tracked(Path(folder), repository):
            # What is imported to tell it comes from elsewhere.
            sys.path[:] = [each for each in sys.path if Path(each).absolute() != Path(folder)]
            raise UsageError(
                f"{quoted(folder)} is on Python's path, where a change can bring code that "
                f"decides: git tracks {quoted(file)}. Start FairGate as `fairgate` or "
                "`python -I -m fairgate`, from an environment that imports nothing of the "
                "checkout (as after `pip install -e`)"
            )
        if Path(folder).is_relative_to(repository.top):
            fine.append(f"{folder}{os.sep}")
    for name, path in _imported():
        if path.startswith(tuple(fine)):
            continue
        if file := _tracked(Path(path), repository):
            raise UsageError(
                f"the module {quoted(name)} is imported from {quoted(file)}, which git tracks: a "
                "change could bring code there that decides. Install it, and FairGate, in an "
                "environment that imports nothing of the checkout"
            )
    for variable in _BELIEVED:
        value = os.environ.get(variable, "")
        if value and (file := _tracked(Path(value).absolute(), repository)):
            raise UsageError(
                f"{variable} is {quoted(value)}, where git tracks {quoted(file)}: a change could "
                "put there what is believed; name a folder outside of the checkout"
            )


def _imported() -> Iterator[tuple[str, str]]:
    """Yield each module that is imported, and each that a plugin names, with its file."""
    for name, module in list(sys.modules.items()):
        if isinstance(file := getattr(module, "__file__", None), str):
            yield name, file
    yield from module_files()


def _tracked(path: Path, repository: Repository) -> str:
    """Return the first file that git tracks at or below a path of the checkout; else nothing."""
    real = Path(os.path.realpath(path))
    return next(iter(tracked_below(real)), "") if real.is_relative_to(repository.top) else ""


def relation_of_base(base: BaseCommit, edited: list[Difference], scratch: Path, path: Path) -> Path:
    """Return a file of relations as the base commit has it, at a path of its own.

    One that the change edits is added to `edited`. One outside of the checkout, or that no commit
    has, is whoever starts FairGate's. Raises UsageError where the change alone has it.
    """
    from fairgate.domain.schema import Role
    from fairgate.github.base_commit import Difference
    from fairgate.github.sides import Checkout

    named, top = Path(os.path.normpath(path.absolute())), base.top
    file = named if named.is_relative_to(top) else Path(os.path.realpath(path))
    if not file.is_relative_to(top):
        return path
    name = file.relative_to(top).as_posix()
    content = base.read_from_top(name)
    if content is None:
        if not tracked_below(file) and not Checkout(top).link_to(name):
            return path
        raise UsageError(
            f"--relations names {quoted(str(path))}, which the base commit "
            f"{base.commit[:12]} does not have: what decides is the base's; bring it in a change "
            "of its own first"
        )
    if file.is_symlink() or read_whole(file) != content:
        relative = os.path.relpath(name, base.prefix or ".")
        edited.append(Difference(role=Role.RELATIONS, file=relative))
    copy = scratch / f"base-{base.commit[:12]}" / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    return copy
