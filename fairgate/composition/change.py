"""The gate of a change: the base commit's policy and baseline decide, so no change approves itself.

Where the change edits one of them, both results are made: the base's, and the change's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from fairgate.composition.accepted_runs import decoded_baseline, path_in_repository
from fairgate.composition.accesses import new_accesses, refuse_introduced_accesses
from fairgate.composition.building import Composition
from fairgate.composition.changed_data import ChangedData, changed_data
from fairgate.composition.loading import LoadedPolicy, load_policy_text
from fairgate.composition.pace import paced
from fairgate.composition.sides import (
    Side,
    differences,
    edited,
    edited_references,
    is_same,
    weakened,
)
from fairgate.composition.versions import Checkout, Files
from fairgate.domain.errors import BaselineError, PolicyError, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.engine.baseline import Baseline
from fairgate.engine.gate import GateInput, GateRun, run_gate
from fairgate.engine.ports import Progress
from fairgate.engine.references import Reference, References
from fairgate.policy.parse import parse_policy
from fairgate.policy.yaml_text import decode_yaml
from fairgate.systems.catalogue import policy_parts

DecidedBy = Literal["checkout", "base", "proposed"]
E = TypeVar("E")
"""What becomes of a side: the gate's result by it, or a part of its questions that is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A side and the gate's result by it."""

    side: Side
    given: GateInput
    run: GateRun
    notices: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedChange(Generic[E]):
    """The side that decides, and the other side's result where they differ."""

    decides: E
    decided_by: DecidedBy
    other: E | None = None
    edited: Sequence[str] = ()
    loosened: Sequence[str] = ()
    differences: Sequence[str] = ()
    data: ChangedData = field(default_factory=ChangedData)
    """The files that the base's policy names, where the change edits them."""
    is_refused: bool = False
    """The change's own policy was not run: it would ask endpoints that the base does not."""
    remarks: Sequence[str] = ()


class Judge(Generic[E]):
    """Judges one policy file in the versions that matter."""

    def __init__(self, policy: str, runtime: Runtime, evaluate: Callable[[Side], E]) -> None:
        """Take the policy's path from the root, which is the current folder.

        `evaluate` is called once for each version that matters.
        """
        self._policy = policy
        self._runtime = runtime
        self._evaluate = evaluate
        self._checkout = Checkout(runtime.root)

    def checkout(self) -> JudgedChange[E]:
        """Judge by the files that are checked out (a push, a schedule)."""
        side = self._side(self._checkout)
        if side is None:
            raise UsageError(f"there is no policy {quoted(self._policy)}; name an existing file")
        return JudgedChange(decides=self._evaluate(side), decided_by="checkout")

    def change(
        self, base: Files, commit: str, *, allow: bool, no_introduction: str = ""
    ) -> JudgedChange[E]:
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
        if proposed is not None and is_same(before, proposed):
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
            edited=edited(self._policy, before, proposed),
            loosened=weakened(before, proposed),
            differences=differences(before, proposed),
            data=data,
            is_refused=bool(refused),
            remarks=[_by_base(commit), *refused, *data.remarks],
        )

    def _refused(self, proposed: Side, raw: bytes) -> list[str]:
        """Return why the proposed policy is not run, whoever decides; empty where it may be."""
        try:
            text = decode_yaml(raw, self._policy)
            base = parse_policy(text, self._policy, policy_parts()).policy
        except PolicyError:  # then nothing is known to be asked already
            base = None
        return [
            f"This change's own policy was not run: it {sentence}. Merge that part first."
            for sentence in new_accesses(proposed.loaded.policy, base)
        ]

    def _changed_data(self, before: Side, base: Files) -> ChangedData:
        return changed_data(before.loaded.policy, self._runtime.root, base)

    def _introduction(self, proposed: Side | None, *, allow: bool) -> JudgedChange[E]:
        if proposed is None:
            raise UsageError(
                f"there is no policy {quoted(self._policy)}, neither here nor in the base commit; "
                "name an existing file"
            )
        refuse_introduced_accesses(proposed.loaded.policy)
        remarks = ["The base commit has no such policy: this change introduces the gate."]
        then = proposed.references
        if allow or (then.baseline is None and then.anchor is None):
            return JudgedChange(
                decides=self._evaluate(proposed), decided_by="proposed", remarks=remarks
            )
        first = replace(proposed, references=replace(then, baseline=None, anchor=None))
        return JudgedChange(
            decides=self._evaluate(first),
            decided_by="base",
            other=self._evaluate(proposed),
            edited=edited_references(first, proposed),
            remarks=remarks,
        )

    def _proposed(self, base: Files, proposed: Side) -> JudgedChange[E]:
        """Let the change's own files decide; the base's are shown as far as they are readable."""
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
        if is_same(before, proposed):
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
            edited=edited(self._policy, before, proposed),
            loosened=weakened(before, proposed),
            differences=differences(before, proposed),
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
                f"files:\n{error}\nKeep what it names, or set in the workflow of the base branch "
                "`baseline-change: allow`"
            ) from error

    def _side(self, files: Files) -> Side | None:
        raw = files.read(self._policy)
        return None if raw is None else self._loaded(raw, files)

    def _loaded(self, raw: bytes, files: Files) -> Side:
        text = decode_yaml(raw, harmless(self._policy))
        loaded = load_policy_text(text, self._policy, self._runtime)
        baseline, path = self._kept(loaded, files, Reference.BASELINE)
        references = References(baseline=baseline, baseline_path=path)
        if loaded.policy.has_budget:
            anchor, path = self._kept(loaded, files, Reference.ANCHOR)
            references = replace(references, anchor=anchor, anchor_path=path)
        return Side(text=text, loaded=loaded, references=references)

    def _kept(
        self, loaded: LoadedPolicy, files: Files, reference: Reference
    ) -> tuple[Baseline | None, str]:
        name = loaded.policy.name
        path = path_in_repository(self._policy, name, reference)
        raw = files.read(path)
        return (None if raw is None else decoded_baseline(raw, path, name, reference)), path


def evaluated(side: Side, runtime: Runtime, progress: Progress) -> Evaluation:
    """Ask the system of a side and judge by its policy and references."""
    composition = Composition(side.loaded, runtime, progress)
    with composition.serving():
        given = composition.gate_input(side.references)
        run = paced(run_gate(given, composition.system, progress), composition, given)
    return Evaluation(side=side, given=given, run=run, notices=composition.notices)


def _by_base(commit: str) -> str:
    return f"Policy and baseline of the base commit `{commit[:12]}` decide."
