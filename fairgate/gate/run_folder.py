"""The files that a run writes, and how `rescore` and `baseline accept` find them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgate.domain.errors import DataError, StoreError, UsageError
from fairgate.domain.outcomes import SlowerPace
from fairgate.domain.ports import SILENT
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless
from fairgate.gate.composition import Composition
from fairgate.gate.execution_lines import PART_MANIFEST, execution_lines, is_shard
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy
from fairgate.gate.pace import read_pace
from fairgate.gate.references import NO_REFERENCES, References
from fairgate.io.json_file import read_json_object
from fairgate.io.kept_out_of_git import keep_output_out_of_git
from fairgate.io.parts import check_parts, write_parts
from fairgate.systems.recorded_answers import read_recorded

if TYPE_CHECKING:
    from fairgate.systems.recorded import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def record(self) -> Path:
        """Return where run.json is."""
        return self.path / "run.json"

    @property
    def executions(self) -> Path:
        """Return where the answers are, in the format of a recorded system."""
        return self.path / "executions.jsonl"

    @property
    def stop_rules(self) -> Path:
        """Return the path of the rules and labels by which answers were cut."""
        return self.path / "stop-rule.json"


def output_folder(named: Path | None, runtime: Runtime, loaded: LoadedPolicy) -> RunFolder:
    """Return the folder of the run: the one named, else one of the policy's in the cache.

    Raises UsageError where it holds a part of a run: a folder holds the one or the other.
    """
    folder = RunFolder(path=named or runtime.cache / "runs" / loaded.policy.name)
    if is_shard(folder.path):
        raise UsageError(
            f"{folder.path}: holds a part of a run ({PART_MANIFEST}); name another folder with "
            "--out"
        )
    return folder


def refuse_shard(run: Path) -> None:
    """Raise UsageError where a folder holds a part of a run, of which nothing follows alone."""
    if is_shard(run):
        raise UsageError(
            f"{run}: is one part of a run, not a run: it has no verdict, and nothing can be "
            "accepted or shown from it. Bring all parts together with `fairgate merge`, and name "
            "the folder that it writes"
        )


def write_run(
    folder: RunFolder,
    loaded: LoadedPolicy,
    run: GateRun,
    reports: Mapping[str, Callable[[], str | Iterator[str]]],
    known_files: Sequence[str],
) -> None:
    """Write everything about a run, all of it or nothing; `reports` gives texts by file name.

    A report that an earlier run left and this one does not write is removed: it would show another
    run's verdict. `known_files` names every report that there is.
    """
    rules = json.dumps(_stop_rules(loaded), indent=1, sort_keys=True)
    keep_output_out_of_git(folder.path)
    write_parts(
        folder.path,
        {
            **{name: _rendered(name, text) for name, text in reports.items()},
            folder.executions.name: (
                f"{line}\n" for line in execution_lines(run.executions.values())
            ),
            folder.stop_rules.name: (f"{rules}\n",),
        },
    )
    for known in known_files:
        if known not in reports:
            (folder.path / known).unlink(missing_ok=True)


def _rendered(name: str, text: Callable[[], str | Iterator[str]]) -> Iterator[str]:
    """Make the text when it is written: a report can be long, and there are several.

    Raises StoreError where a template or another part of FairGate's installation is not there.
    """
    try:
        made = text()
    except OSError as error:
        raise StoreError(
            f"{name} cannot be made: a file of this installation of FairGate cannot be read "
            f"({harmless(str(error)[:300])}); install FairGate again"
        ) from error
    yield from (made,) if isinstance(made, str) else made


def check_run(run: Path) -> None:
    """Raise DataError where the files of a run's folder are of different runs, or were edited."""
    refuse_shard(run)
    folder = RunFolder(path=run)
    try:
        check_parts(run, [folder.record.name, folder.executions.name, folder.stop_rules.name])
    except DataError as error:
        raise _no_run(run, error) from error


def _no_run(run: Path, error: DataError) -> DataError:
    return DataError(
        f"{run}: is no folder of a run ({error}); name the one that `fairgate run --out` wrote"
    )


def _stop_rules(loaded: LoadedPolicy) -> dict[str, Any]:
    return {name: dict(suite.reading_rule()) for name, suite in loaded.suites.items()}


def earlier_run(run: Path, loaded: LoadedPolicy) -> Recording:
    """Return the answers of an earlier run for judging again.

    Raises UsageError where they were cut for other labels: what was not generated cannot be read.
    """
    refuse_shard(run)
    folder = RunFolder(path=run)
    try:
        then = read_json_object(folder.stop_rules)
    except DataError as error:
        raise _no_run(run, error) from error
    now = _stop_rules(loaded)
    for suite, rule in now.items():
        if then.get(suite) != rule:
            raise UsageError(
                f"{run}: the answers of suite {suite!r} were cut by {str(then.get(suite))[:300]}, "
                f"this policy reads them by {rule}: what was never generated cannot be read; run "
                "the policy"
            )
    return read_recorded(str(folder.executions))


def replay(
    run: Path,
    policy: Path | None,
    runtime: Runtime,
    references_for: Callable[[LoadedPolicy, Path], References] = lambda *_: NO_REFERENCES,
) -> tuple[GateRun, GateInput, LoadedPolicy, list[str]]:
    """Judge an earlier run's answers again, by its own policy or another one.

    Returns the run, what it started from, the policy, and the adapters' notices.
    """
    path = policy or run_policy_path(run)
    if not path.is_file():
        raise UsageError(f"the run's policy {str(path)!r} is not there; name it with --policy")
    loaded = load_policy(path, runtime)
    recording = earlier_run(run, loaded)
    composition = Composition(loaded, runtime, SILENT)
    given = composition.gate_input(references_for(loaded, path), _under_test(run))
    replayed = run_gate(given, composition.replayed(recording), SILENT)
    kept = replace(replayed, result=replace(replayed.result, pace=_pace(run)))
    return kept, given, loaded, composition.notices


def _under_test(run: Path) -> dict[str, str]:
    """Return the system that gave the run's answers, by its record; it may have changed since."""
    with contextlib.suppress(DataError):
        provenance = read_json_object(RunFolder(path=run).record).get("provenance")
        found = provenance.get("under_test") if isinstance(provenance, dict) else None
        if isinstance(found, dict):
            return {str(name)[:200]: str(value)[:1000] for name, value in found.items()}
    return {}


def _pace(run: Path) -> SlowerPace | None:
    """Return how slowly the run's answers came, by its record; None where it holds none."""
    with contextlib.suppress(DataError):
        found = read_json_object(RunFolder(path=run).record).get("pace")
        if isinstance(found, dict):
            return read_pace(found)
    return None


def run_policy_path(run: Path) -> Path:
    """Return the policy that an earlier run used, as its record names it."""
    refuse_shard(run)
    path = RunFolder(path=run).record
    try:
        provenance = read_json_object(path).get("provenance")
    except DataError as error:
        raise _no_run(run, error) from error
    named = provenance.get("policy_path") if isinstance(provenance, dict) else None
    if not isinstance(named, str) or not named or "\0" in named:
        raise DataError(f"{path}: names no policy; name it with --policy")
    return Path(named)
