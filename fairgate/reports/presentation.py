"""From a finished run to texts: its report files, and the lines on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from fairgate.domain.feature import FEATURES
from fairgate.gate.gate import GateInput, GateRun
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.policy.schema import Policy
from fairgate.reports.formats import Finished, Format
from fairgate.reports.present import present
from fairgate.reports.view import ReportOptions, View


def view_of(
    run: GateRun,
    given: GateInput,
    out: Path,
    formats: Sequence[Format],
    *,
    report_only: bool,
    limit: int | None = None,
) -> View:
    """Return what reports show to whoever has the run's folder."""
    options = ReportOptions(
        redact=given.policy.redact,
        confidence=given.policy.confidence,
        report_only=report_only,
        limit=limit,
        run_path=str(out),
        has_explain=True,
        of_features=of_features(given.policy),
        files={one.shown_as: str(out / one.file) for one in formats if one.shown_as},
    )
    return present(run, options, given.baseline, given.anchor)


def of_features(policy: Policy) -> dict[str, object]:
    """Return what a policy says by the keys that features bring."""
    return {key: getattr(policy, key) for feature in FEATURES for key in feature.policy_keys}


def gate_lines(loaded: LoadedPolicy) -> dict[int, int]:
    """Return the 1-based line of each gate in the policy."""
    return {
        position: loaded.parsed.located(("gates", position))[0]
        for position in range(len(loaded.policy.gates))
    }


def report_texts(
    view: View, run: GateRun, given: GateInput, loaded: LoadedPolicy, formats: Sequence[Format]
) -> Mapping[str, Callable[[], str | Iterator[str]]]:
    """Return what each file of a run will hold, by the file's name."""
    done = Finished(
        result=run.result,
        must_match=given.must_match,
        policy_text=loaded.parsed.text,
        gate_lines=gate_lines(loaded),
        confidence=given.policy.confidence,
    )
    return {one.file: partial(one.render, view, done) for one in formats}
