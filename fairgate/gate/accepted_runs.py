"""What is kept beside a policy of its runs, and where: baseline, anchor, labels."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fairgate.domain.errors import BaselineError, DataError, UsageError
from fairgate.domain.wording import first_few, quoted
from fairgate.gate.baseline import (
    AcceptedRun,
    AcceptedRuns,
    Baseline,
    BaselineSuite,
    unit_contents,
    with_texts_of,
)
from fairgate.gate.baseline_files import dump_baseline, load_baseline
from fairgate.gate.decide import diluted
from fairgate.gate.labels import Label, read_labels
from fairgate.gate.loaded_policy import NO_BASELINE, LoadedPolicy
from fairgate.gate.measure import quartiles
from fairgate.io.durable import write_text
from fairgate.io.tables import read_whole
from fairgate.metrics.attribution import COLUMNS
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Table
from fairgate.policy.schema import ANCHOR_SUFFIX

if TYPE_CHECKING:
    from fairgate.gate.gate import GateRun

_SUFFIXES = {AcceptedRun.BASELINE: "", AcceptedRun.ANCHOR: ANCHOR_SUFFIX}


def path_in_repository(policy: str, name: str, accepted: AcceptedRun) -> str:
    """Return where baseline or anchor of a policy belong: in `baselines/` beside `policies/`.

    By the path's letters alone: a change could turn `policies` into a link, which must not move
    what the base commit is asked.
    """
    return _beside_policies(policy, "baselines", f"{name}{_SUFFIXES[accepted]}.json")


def labels_in_repository(policy: str, name: str) -> str:
    """Return where the labels of a policy's cases belong: in `labels/`, as baselines in theirs."""
    return _beside_policies(policy, "labels", f"{name}.jsonl")


def _beside_policies(policy: str, folder: str, file: str) -> str:
    own = PurePosixPath(policy).parent
    home = own.parent if own.name == "policies" else own
    return (home / folder / file).as_posix()


def accepted_path(
    policy: Path, loaded: LoadedPolicy, accepted: AcceptedRun = AcceptedRun.BASELINE
) -> Path:
    """Return the file of a policy's baseline or anchor, from the current folder if it is in it."""
    return _from_here(path_in_repository(policy.resolve().as_posix(), loaded.policy.name, accepted))


def labels_path(policy: Path, loaded: LoadedPolicy) -> Path:
    """Return the file of a policy's labels, in the same way."""
    return _from_here(labels_in_repository(policy.resolve().as_posix(), loaded.policy.name))


def _from_here(name: str) -> Path:
    path, here = Path(name), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def locate_accepted_runs(loaded: LoadedPolicy, policy: Path, named: str | None) -> AcceptedRuns:
    """Read the runs to compare with; no baseline on a first run, no anchor where none is pinned.

    `named` is the baseline's file; `none` leaves out both. The anchor is read where a rule has a
    budget. Raises BaselineError where a named file does not exist, or one cannot be read.
    """
    name, nothing = loaded.policy.name, named == NO_BASELINE
    path = Path(named) if named else accepted_path(policy, loaded)
    is_there = not nothing and _is_file(path, "baseline")
    if named and not nothing and not is_there:
        raise BaselineError(
            f"there is no baseline {str(path)!r}; accept a run with `fairgate baseline accept RUN "
            "--reason …`, or say `--baseline none` for a first run"
        )
    baseline = with_texts_of(read_baseline(path, name), loaded.plan) if is_there else None
    pinned = accepted_path(policy, loaded, AcceptedRun.ANCHOR) if loaded.policy.has_budget else None
    is_pinned = pinned is not None and not nothing and _is_file(pinned, "anchor")
    anchor = None
    if pinned and is_pinned:
        anchor = with_texts_of(read_baseline(pinned, name, AcceptedRun.ANCHOR), loaded.plan)
    labels, unread = labels_or_notice(lambda: read_labels(labels_path(policy, loaded)))
    return AcceptedRuns(
        baseline=baseline,
        baseline_path=NO_BASELINE if nothing else str(path),
        anchor=anchor,
        anchor_path="" if pinned is None else NO_BASELINE if nothing else str(pinned),
        labels=labels,
        notices=unread,
    )


def labels_or_notice(read: Callable[[], Sequence[Label]]) -> tuple[Sequence[Label], list[str]]:
    """Return labels; where their file is damaged none of them, and a sentence that says so."""
    try:
        return read(), []
    except (BaselineError, DataError, UsageError) as error:
        return (), [f"no label counts: {error}"]


def _is_file(path: Path, noun: str) -> bool:
    """Whether there is a file. Raises BaselineError for anything else, which is no first run."""
    odd = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    if path.is_file() or (odd != path and odd.is_dir()) or not os.path.lexists(odd):
        return path.is_file()
    wanted, belongs = ("file", noun) if odd == path else ("folder", f"folder of the {noun}")
    raise BaselineError(
        f"{odd}: no {wanted} is at the place of the {belongs}; remove it, restore what was there, "
        "or say `--baseline none` for a first run"
    )


def read_baseline(
    path: Path, policy: str | None = None, accepted: AcceptedRun = AcceptedRun.BASELINE
) -> Baseline:
    """Return a baseline file's content. Raises BaselineError."""
    try:
        raw = read_whole(path)
    except DataError as error:
        raise BaselineError(f"{path}: cannot be read ({error})") from error
    return decoded_baseline(raw, str(path), policy, accepted)


def decoded_baseline(
    raw: bytes, path: str, policy: str | None, accepted: AcceptedRun = AcceptedRun.BASELINE
) -> Baseline:
    """Decode the bytes of a baseline (an anchor). Raises BaselineError.

    `policy` is whose it must be; None: anybody's.
    """
    try:
        baseline = load_baseline(raw.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}: is not UTF-8; restore it from version control") from error
    if policy is not None and baseline.policy != policy:
        instead = "name the right file with --baseline"
        if accepted is AcceptedRun.ANCHOR:
            instead = "pin one with `fairgate baseline anchor RUN --reason …`"
        raise BaselineError(
            f"{path}: is the {accepted} of policy {quoted(baseline.policy)}, not of "
            f"{quoted(policy)}; {instead}"
        )
    return replace(baseline, sha256=hashlib.sha256(raw).hexdigest())


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline; the old file stays until the new one is complete."""
    write_text(path, dump_baseline(baseline), option="--output")


def baseline_of(run: GateRun, *, reason: str, date: str) -> Baseline:
    """Return the baseline that this run would be.

    Raises BaselineError where the run has no verdict for lack of evidence: a narrow or broken run
    must not become what later runs are compared with.
    """
    gate_input = run.gate_input
    own = [rule for rule in run.result.rules if not rule.is_reported]
    # That every rule waits for a baseline is one problem, and the one that accepting solves.
    problems = run.result.evidence.problems
    only_first = all(rule.is_first_run for rule in own) and len(problems) == 1
    only_diluted = problems == diluted(run.result.rules)
    if problems and not only_first and not only_diluted:
        why = "; ".join(problems)
        raise BaselineError(f"this run cannot become a baseline, it lacks evidence: {why}")
    # Accepting hides no waiver: reports show the reason of the baseline.
    waived = [f"{rule.metric}: {rule.waiver}" for rule in run.result.rules if rule.waiver]
    reason += f" (with a waived failure, {first_few(waived)})" * bool(waived)
    return Baseline(
        policy=gate_input.policy.name,
        reason=reason,
        date=date,
        suites={
            name: BaselineSuite(
                must_match=gate_input.must_match[name],
                contents=unit_contents(gate_input.plan, name),
                table=_kept(table),
                quartiles=quartiles(table),
            )
            for name, table in run.tables.items()
        },
        measurements=[m for m in run.result.measurements if m.value is not None],
        metric_versions={metric.id: metric.version for metric in METRICS},
        provenance=gate_input.provenance,
    )


def _kept(table: Table) -> Table:
    """Leave out what rests on a sample of the pairs, which another run would draw otherwise."""
    sampled = set(COLUMNS.values())
    return replace(
        table,
        values={name: column for name, column in table.values.items() if name not in sampled},
        not_evaluated={k: v for k, v in table.not_evaluated.items() if k not in sampled},
    )
