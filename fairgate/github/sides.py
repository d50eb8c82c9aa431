"""A policy, its baseline and its anchor in one version of a repository; what separates two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Runtime
from fairgate.domain.wording import quoted
from fairgate.gate.baseline import AcceptedRuns, Baseline, baseline_differences
from fairgate.gate.baseline_files import dump_baseline
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.io.named_files import existing
from fairgate.io.regular import content_of

_AT_ONCE, _MOST = 8, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A policy, its baseline and its anchor as one version of the repository has them."""

    loaded: LoadedPolicy
    accepted_runs: AcceptedRuns
    runtime: Runtime
    """Where its files are read."""


def differ(then: Baseline | None, now: Baseline | None) -> bool:
    """Whether the files of two baselines differ; None is no file."""
    if then is None or now is None:
        return then is not now
    return dump_baseline(then) != dump_baseline(now)


def edited_references(before: Side, after: Side) -> list[str]:
    """Return the files of baseline and anchor that the change edits."""
    then, now = before.accepted_runs, after.accepted_runs
    own = [now.baseline_path] if differ(then.baseline, now.baseline) else []
    # Without a budget on the other side there is nothing to compare: the policy says so itself.
    both = then.anchor_path and now.anchor_path
    return [*own, now.anchor_path] if both and differ(then.anchor, now.anchor) else own


def edited(policy: str, before: Side, after: Side | None) -> list[str]:
    """Return the files that the change edits; the policy alone where it removes that."""
    if after is None:
        return [policy]
    own = [policy] if before.loaded.policy != after.loaded.policy else []
    return [*own, *edited_references(before, after)]


def differences(before: Side, after: Side | None) -> list[str]:
    """Return the differences of the two baselines, then of the two anchors, as lines."""
    if after is None:
        return []
    then, now = before.accepted_runs, after.accepted_runs
    pairs = ((then.baseline, now.baseline, ""), (then.anchor, now.anchor, "anchor: "))
    return [
        f"{prefix}{line}"
        for old, new, prefix in pairs
        if old is not None and new is not None and differ(old, new)
        for line in baseline_differences(old, new)
    ]


def own_control_phrases(side: Side, before: Side | None = None) -> list[str]:
    """Return sentences that list the new control phrases of suites that have their own.

    No list of words knows everybody: so whoever reviews the change reads them.
    """
    sentences = []
    for name, suite in side.loaded.suites.items():
        earlier_suite = before.loaded.suites.get(name) if before is not None else None
        earlier_phrases = (
            set(earlier_suite.own_control_phrases) if earlier_suite is not None else set()
        )
        phrases = [phrase for phrase in suite.own_control_phrases if phrase not in earlier_phrases]
        # In pieces: where there is little room, each sentence is cut at its own end.
        for start in range(0, min(len(phrases), _MOST), _AT_ONCE):
            some = ", ".join(quoted(each) for each in phrases[start : start + _AT_ONCE])
            counted = f"{start + 1} to {min(start + _AT_ONCE, len(phrases))} of {len(phrases):,}"
            sentences.append(
                f"Suite {quoted(name)} calls phrases of its own neutral, which must name nobody "
                f"({counted}): {some}."
            )
    return sentences


class Checkout:
    """The files that are checked out; no path leaves the root, links included."""

    def __init__(self, root: Path) -> None:
        """Read below `root`."""
        self._root = root

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes. Raises DataError where the path leads out of the root."""
        if not (self._root / path).exists():
            return None
        file = existing(path, self._root, confined=True)
        try:
            return content_of(file) if file.is_file() else None
        except OSError as error:
            raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from error

    def link_to(self, path: str) -> str:
        """Return the first link on the way to a file, itself included; empty: there is none."""
        way = [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]
        return next((str(part) for part in way if (self._root / part).is_symlink()), "")
