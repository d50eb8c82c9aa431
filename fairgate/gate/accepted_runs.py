"""Where a policy's baseline and anchor are kept, and how they are read and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fairgate.domain.errors import BaselineError, DataError
from fairgate.domain.findings import KeptKillScore
from fairgate.domain.wording import quoted
from fairgate.gate.baseline import Baseline
from fairgate.gate.baseline_files import dump_baseline, load_baseline
from fairgate.gate.history import history_with
from fairgate.gate.kill_score import kill_score_path, policy_hash, read_kill_score
from fairgate.gate.loaded_policy import NO_BASELINE, LoadedPolicy
from fairgate.gate.references import Reference, References
from fairgate.gate.rules import expand_rules
from fairgate.io.durable import write_text
from fairgate.io.json_file import read_whole
from fairgate.policy.schema import ANCHOR_SUFFIX

if TYPE_CHECKING:
    from fairgate.gate.gate import GateInput

_SUFFIXES = {Reference.BASELINE: "", Reference.ANCHOR: ANCHOR_SUFFIX}


def path_in_repository(policy: str, name: str, reference: Reference) -> str:
    """Return where baseline or anchor of a policy belong: in `baselines/` beside `policies/`.

    By the path's letters alone: a change could turn `policies` into a link, which must not move
    what the base commit is asked.
    """
    folder = PurePosixPath(policy).parent
    home = folder.parent if folder.name == "policies" else folder
    return (home / "baselines" / f"{name}{_SUFFIXES[reference]}.json").as_posix()


def accepted_path(
    policy: Path, loaded: LoadedPolicy, reference: Reference = Reference.BASELINE
) -> Path:
    """Return the file of a policy's baseline or anchor, from the current folder if it is in it."""
    path = Path(path_in_repository(policy.resolve().as_posix(), loaded.policy.name, reference))
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def locate_references(loaded: LoadedPolicy, policy: Path, named: str | None) -> References:
    """Return what to compare with; no baseline on a first run, no anchor where none is pinned.

    `named` is the baseline's file; `none` leaves out both. The anchor is read where a rule has a
    budget. Raises BaselineError where a named file does not exist, or one cannot be read.
    """
    baseline, path = _locate_baseline(loaded, policy, named)
    score, notices = _kill_score(loaded, policy)
    found = References(baseline=baseline, baseline_path=path, kill_score=score, notices=notices)
    if not loaded.policy.has_budget:
        return found
    at = accepted_path(policy, loaded, Reference.ANCHOR)
    anchor = None
    if named != NO_BASELINE and at.is_file():
        anchor = read_baseline(at, loaded.policy.name, Reference.ANCHOR)
    return replace(
        found, anchor=anchor, anchor_path=NO_BASELINE if named == NO_BASELINE else str(at)
    )


def _kill_score(loaded: LoadedPolicy, policy: Path) -> tuple[KeptKillScore | None, list[str]]:
    """Return what is kept beside the policy, of this version of it, and what is wrong with it."""
    path = kill_score_path(policy)
    try:
        score = read_kill_score(path)
    except DataError as error:
        return None, [f"the kill score is not shown: {error}"]
    if score is None:
        return None, []
    if score.policy_hash != policy_hash(loaded.policy.model_dump_json()):
        other = f"the kill score in {path} is of another version of the policy"
        return None, [f"{other}; make it again with `fairgate mutate POLICY RUN --save`"]
    return score, []


def _locate_baseline(
    loaded: LoadedPolicy, policy: Path, named: str | None
) -> tuple[Baseline | None, str]:
    if named == NO_BASELINE:
        return None, NO_BASELINE
    path = Path(named) if named else accepted_path(policy, loaded)
    if not path.is_file():
        if named:
            raise BaselineError(
                f"there is no baseline {str(path)!r}; accept a run with `fairgate baseline accept "
                "RUN --reason …`, or say `--baseline none` for a first run"
            )
        return None, str(path)
    return read_baseline(path, loaded.policy.name), str(path)


def read_baseline(
    path: Path, policy: str | None = None, reference: Reference = Reference.BASELINE
) -> Baseline:
    """Return a baseline file's content. Raises BaselineError."""
    try:
        raw = read_whole(path)
    except DataError as error:
        raise BaselineError(f"{path}: cannot be read ({error})") from error
    return decoded_baseline(raw, str(path), policy, reference)


def decoded_baseline(
    raw: bytes, path: str, policy: str | None, reference: Reference = Reference.BASELINE
) -> Baseline:
    """Return what the bytes of a baseline (an anchor) say. Raises BaselineError.

    `policy` is whose it must be; None: anybody's.
    """
    try:
        baseline = load_baseline(raw.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}: is not UTF-8; restore it from version control") from error
    if policy is not None and baseline.policy != policy:
        instead = {
            Reference.BASELINE: "name the right file with --baseline",
            Reference.ANCHOR: "pin one with `fairgate baseline anchor RUN --reason …`",
        }
        raise BaselineError(
            f"{path}: is the {reference} of policy {quoted(baseline.policy)}, not of "
            f"{quoted(policy)}; {instead[reference]}"
        )
    return baseline


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline; the old file stays until the new one is complete."""
    write_text(path, dump_baseline(baseline), option="--output")


def with_history(made: Baseline, given: GateInput, path: Path) -> tuple[Baseline, str]:
    """Return a new baseline with the history of the one that it takes the place of, and a note.

    A file at `path` that cannot be read is replaced all the same; the note then says why the
    history starts anew.
    """
    if not path.is_file():
        return made, ""
    try:
        before = read_baseline(path, given.policy.name)
    except BaselineError as error:
        return made, f"the history of accepted runs starts anew: {error}"
    rules = expand_rules(given.policy, given.plan)
    return replace(made, history=history_with(before, made, rules)), ""
