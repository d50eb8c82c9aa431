"""The gate of a change: the base commit's policy and baseline decide, so no change approves itself.

Where the change edits one of them, both results are had: the base's, and what the change proposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from fairgate.adapters.baseline_files import dump_baseline, load_baseline
from fairgate.composition.accesses import new_accesses, refuse_introduced_accesses
from fairgate.composition.building import Composition
from fairgate.composition.changed_data import ChangedData, changed_data
from fairgate.composition.loading import LoadedPolicy, load_policy_text
from fairgate.composition.versions import Checkout, Files
from fairgate.domain.errors import BaselineError, PolicyError, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.engine.baseline import Baseline
from fairgate.engine.baseline_diff import baseline_differences
from fairgate.engine.gate import GateInput, GateRun, run_gate
from fairgate.engine.ports import Progress
from fairgate.policy.loosened import loosened
from fairgate.policy.parse import parse_policy
from fairgate.policy.yaml_text import decode_yaml
from fairgate.systems.catalogue import system_models

DecidedBy = Literal["checkout", "base", "proposed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A policy and its baseline as one version of the repository has them."""

    text: str
    loaded: LoadedPolicy
    baseline_path: str
    baseline: Baseline | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A side and what the gate says by it."""

    side: Side
    given: GateInput
    run: GateRun
    notices: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedChange:
    """What decides, and beside it what the other side would say where they differ."""

    decides: Evaluation
    decided_by: DecidedBy
    other: Evaluation | None = None
    edited: Sequence[str] = ()
    loosened: Sequence[str] = ()
    differences: Sequence[str] = ()
    data: ChangedData = field(default_factory=ChangedData)
    """The files that the base's policy names, where the change edits them."""
    is_refused: bool = False
    """What the change proposes was not run: it would ask endpoints that the base does not."""
    remarks: Sequence[str] = ()


class Judge:
    """Judges one policy file in the versions that matter."""

    def __init__(self, policy: str, runtime: Runtime, progress: Progress) -> None:
        """Take the policy's path from the root, which is the current folder."""
        self._policy = policy
        self._runtime = runtime
        self._progress = progress
        self._checkout = Checkout(runtime.root)

    def checkout(self) -> JudgedChange:
        """Judge by the files that are checked out (a push, a schedule)."""
        side = self._side(self._checkout)
        if side is None:
            raise UsageError(f"there is no policy {quoted(self._policy)}; name an existing file")
        return JudgedChange(decides=self._evaluate(side), decided_by="checkout")

    def change(
        self, base: Files, commit: str, *, allow: bool, no_introduction: str = ""
    ) -> JudgedChange:
        """Judge by the base commit's files, or with `allow` by those that the change proposes.

        `no_introduction` is why the change may not be the one that introduces the policy, if so.
        Raises PolicyError or BaselineError also where only the proposed files are broken: once
        merged, they would break every build.
        """
        proposed = self._side(self._checkout)
        raw = base.read(self._policy)
        if raw is None:
            if no_introduction:
                raise UsageError(
                    f"the base commit has no policy {quoted(self._policy)}, so the change's own "
                    f"rules would decide, and {no_introduction}"
                )
            return self._introduction(proposed, allow=allow)
        if proposed is None and allow:
            raise UsageError(
                f"this change removes the policy {quoted(self._policy)}; nothing to gate"
            )
        refused = [] if proposed is None else self._refused(proposed, raw)
        if proposed is not None and allow and not refused:
            return self._proposed(base, proposed)
        before = self._base_side(base, raw)
        data = self._changed_data(before, base)
        if proposed is not None and _is_same(before, proposed):
            # The same rules: the change's own text has the line numbers that reviewers see.
            return JudgedChange(
                decides=self._evaluate(proposed),
                decided_by="base",
                data=data,
                remarks=[_by_base(commit), *data.remarks],
            )
        decides = self._evaluate(before)
        other = self._evaluate(proposed) if proposed is not None and not refused else None
        return JudgedChange(
            decides=decides,
            decided_by="base",
            other=other,
            edited=_edited(self._policy, before, proposed),
            loosened=_loosened(before, proposed),
            differences=_differences(before, proposed),
            data=data,
            is_refused=bool(refused),
            remarks=[_by_base(commit), *refused, *data.remarks],
        )

    def _refused(self, proposed: Side, raw: bytes) -> list[str]:
        """Return why the proposed policy is not run, whoever decides; empty where it may be."""
        try:
            text = decode_yaml(raw, self._policy)
            base = parse_policy(text, self._policy, system_models()).policy
        except PolicyError:  # then nothing is known to be asked already
            base = None
        return [
            f"This change's own policy was not run: it {sentence}. Merge that part first."
            for sentence in new_accesses(proposed.loaded.policy, base)
        ]

    def _changed_data(self, before: Side, base: Files) -> ChangedData:
        return changed_data(before.loaded.policy, self._runtime.root, base)

    def _introduction(self, proposed: Side | None, *, allow: bool) -> JudgedChange:
        if proposed is None:
            raise UsageError(
                f"there is no policy {quoted(self._policy)}, neither here nor in the base commit; "
                "name an existing file"
            )
        refuse_introduced_accesses(proposed.loaded.policy)
        remarks = ["The base commit has no such policy: this change introduces the gate."]
        if allow or proposed.baseline is None:
            return JudgedChange(
                decides=self._evaluate(proposed), decided_by="proposed", remarks=remarks
            )
        first = Side(
            text=proposed.text,
            loaded=proposed.loaded,
            baseline_path=proposed.baseline_path,
            baseline=None,
        )
        return JudgedChange(
            decides=self._evaluate(first),
            decided_by="base",
            other=self._evaluate(proposed),
            edited=[proposed.baseline_path],
            remarks=remarks,
        )

    def _proposed(self, base: Files, proposed: Side) -> JudgedChange:
        """Let the change's own files decide; the base's are shown as far as they can be had."""
        try:
            raw = base.read(self._policy)
            before = self._base_side(base, raw) if raw is not None else None
        except (PolicyError, BaselineError, UsageError) as error:
            remark = f"The base commit's files cannot be used any more: {harmless(str(error))}"
            return JudgedChange(
                decides=self._evaluate(proposed), decided_by="proposed", remarks=[remark]
            )
        if before is None:
            return JudgedChange(decides=self._evaluate(proposed), decided_by="proposed")
        data = self._changed_data(before, base)
        if _is_same(before, proposed):
            return JudgedChange(
                decides=self._evaluate(proposed),
                decided_by="proposed",
                data=data,
                remarks=data.remarks,
            )
        return JudgedChange(
            other=self._evaluate(before),
            decides=self._evaluate(proposed),
            decided_by="proposed",
            edited=_edited(self._policy, before, proposed),
            loosened=_loosened(before, proposed),
            differences=_differences(before, proposed),
            data=data,
            remarks=[
                "`baseline-change: allow` lets this change's own policy and baseline decide.",
                *data.remarks,
            ],
        )

    def _base_side(self, base: Files, raw: bytes) -> Side:
        try:
            return self._loaded(raw, base)
        except PolicyError as error:
            raise UsageError(
                "the base commit's policy decides, and it cannot be used with this change's "
                f"files:\n{error}\nKeep what it names, or let the workflow of the base branch say "
                "`baseline-change: allow`"
            ) from error

    def _side(self, files: Files) -> Side | None:
        raw = files.read(self._policy)
        return None if raw is None else self._loaded(raw, files)

    def _loaded(self, raw: bytes, files: Files) -> Side:
        text = decode_yaml(raw, harmless(self._policy))
        loaded = load_policy_text(text, self._policy, self._runtime)
        path = _baseline_path(self._policy, loaded.policy.name)
        found = files.read(path)
        return Side(
            text=text,
            loaded=loaded,
            baseline_path=path,
            baseline=None if found is None else _baseline(found, path, loaded.policy.name),
        )

    def _evaluate(self, side: Side) -> Evaluation:
        composition = Composition(side.loaded, self._runtime, self._progress)
        with composition.serving():
            given = composition.gate_input(side.baseline, side.baseline_path)
            run = run_gate(given, composition.system, self._progress)
        return Evaluation(side=side, given=given, run=run, notices=composition.notices)


def _baseline_path(policy: str, name: str) -> str:
    """Return where the baseline belongs, by the path's letters alone.

    A change could turn `policies` into a link, which must not move what the base commit is asked.
    """
    folder = PurePosixPath(policy).parent
    home = folder.parent if folder.name == "policies" else folder
    return (home / "baselines" / f"{name}.json").as_posix()


def _baseline(raw: bytes, path: str, policy: str) -> Baseline:
    try:
        baseline = load_baseline(raw.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}: is not UTF-8; restore it from version control") from error
    if baseline.policy != policy:
        raise BaselineError(
            f"{path}: is the baseline of policy {quoted(baseline.policy)}, not of {quoted(policy)}"
        )
    return baseline


def _is_same(before: Side, after: Side) -> bool:
    same_policy = before.loaded.policy == after.loaded.policy
    return same_policy and not _baselines_differ(before, after)


def _baselines_differ(before: Side, after: Side) -> bool:
    then, now = before.baseline, after.baseline
    if then is None or now is None:
        return then is not now
    return dump_baseline(then) != dump_baseline(now)


def _edited(policy: str, before: Side, after: Side | None) -> list[str]:
    if after is None:
        return [policy]
    edited = [policy] if before.loaded.policy != after.loaded.policy else []
    return [*edited, after.baseline_path] if _baselines_differ(before, after) else edited


def _loosened(before: Side, after: Side | None) -> list[str]:
    if after is None:
        return ["the policy is removed, with all of its rules"]
    found = loosened(before.loaded.policy, after.loaded.policy)
    if before.baseline is not None and after.baseline is None:
        found.append("the baseline is removed: nothing is compared any more")
    return found


def _differences(before: Side, after: Side | None) -> list[str]:
    if after is None or before.baseline is None or after.baseline is None:
        return []
    if not _baselines_differ(before, after):
        return []
    return list(baseline_differences(before.baseline, after.baseline))


def _by_base(commit: str) -> str:
    return f"Policy and baseline of the base commit `{commit[:12]}` decide."
