"""The gate of a change: the base commit's policy and baseline decide, so no change approves itself.

Where the change edits one of them, both results are made: the base's, and the change's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Generic, Literal, TypeVar

from fairgate.domain.errors import BaselineError, BudgetError, PolicyError, UsageError
from fairgate.domain.ports import BaseSystem, Progress, Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.gate.accepted_runs import (
    decoded_baseline,
    labels_in_repository,
    labels_or_notice,
    path_in_repository,
)
from fairgate.gate.baseline import AcceptedRun, AcceptedRuns, Baseline
from fairgate.gate.composition import Composition, FinishedRun
from fairgate.gate.labels import Label, decoded_labels
from fairgate.gate.loaded_policy import TooManyCasesError, load_policy_text
from fairgate.gate.rules import standard_gates
from fairgate.github.accesses import introduced_accesses, new_accesses
from fairgate.github.allowed_change import INPUT
from fairgate.github.base_commit import BaseCommit, BaseVersion, Difference
from fairgate.github.earlier_policy import earlier_path
from fairgate.github.loosenings import Loosening, loosened, weakened
from fairgate.github.sides import (
    Checkout,
    Side,
    differences,
    edited,
    edited_references,
    own_control_phrases,
)
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import decode_yaml
from fairgate.systems.budget import allow_as_much_again
from fairgate.systems.catalogue import kind_of, policy_parts

DecidedBy = Literal["checkout", "base", "proposed"]
_MOST_PROPOSED, _TIMES_PROPOSED = 100_000, 10
"""Cases that a change may propose, or so many times the base's where that is more."""
E = TypeVar("E")
"""What becomes of a side: the gate's result by it, or a part of its questions that is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedChange(Generic[E]):
    """The side that decides, and the other side's result where they differ."""

    decides: E
    decided_by: DecidedBy
    other: E | None = None
    edited: Sequence[str] = ()
    loosened: Sequence[Loosening] = ()
    differences: Sequence[str] = ()
    data: Sequence[Difference] = ()
    """Files that the base's policy names and the change edits."""
    is_refused: bool = False
    """The change's own policy was not run: it would ask endpoints that the base does not, or more
    than the base's budget."""
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """A change that introduces a policy whose system only a merged policy may reach.

    Nothing is asked and nothing is judged: the next change is the first one with a verdict.
    """

    side: Side
    reaches: Sequence[str]
    """What a run would reach outside: `asks 'http://…' without a key`, `starts 'python app.py'`."""


class ChangeGate(Generic[E]):
    """Runs the gate of one policy file in the versions that matter: the base's, the head's."""

    def __init__(
        self, policy: str, runtime: Runtime, evaluate: Callable[[Side], E], scratch: Path
    ) -> None:
        """Take the policy's path from the root, which is the current folder.

        `evaluate` is called once for each version that matters, the one that decides first;
        together they keep the limits of that one's budget. Below `scratch` the base's files go.
        """
        self._policy = policy
        self._runtime = replace(runtime, meters={})
        self._evaluate_side = evaluate
        self._base: BaseVersion | None = None
        self._scratch = scratch
        self._earlier = policy
        """Where the base has it."""
        self._checkout = Checkout(runtime.root)
        self._labels_from: BaseCommit | Checkout = self._checkout
        self._with_base: Callable[[Runtime], Runtime] = lambda runtime: runtime
        """Adds what `reference: base` means, once the base is known."""

    def checkout(self) -> GatedChange[E]:
        """Judge by the files that are checked out (a push, a schedule)."""
        side = self._proposed()
        if side is None:
            raise UsageError(f"there is no policy {quoted(self._policy)}; name an existing file")
        return GatedChange(decides=self._evaluate(side), decided_by="checkout")

    def change(
        self, base: BaseCommit, commit: str, *, allow: bool, no_introduction: str = ""
    ) -> GatedChange[E] | Introduction:
        """Judge by the base commit's files, or with `allow` by those that the change proposes.

        `no_introduction` is why the change may not be the one that introduces the policy, if so.
        Raises PolicyError or BaselineError also where only the proposed files are broken, or behind
        a link: once merged, they would break every build.
        """
        quoted_path = quoted(self._policy)
        self._labels_from = base
        raw, renames = self._policy_of(base)
        self._compare_with(base, raw)
        proposed = self._proposed(base, raw)
        self._refuse_links(proposed)
        if raw is None:
            if no_introduction:
                raise UsageError(
                    f"the base commit has no policy {quoted_path}, so the change's own rules would "
                    f"decide, and {no_introduction}"
                )
            return self._introduction(proposed, allow=allow)
        if proposed is None and allow:
            raise UsageError(f"this change removes the policy {quoted_path}; nothing to gate")
        refused = [] if proposed is None else self._refused(proposed, self._policy_in(raw))
        allowed = proposed if allow and not refused else None
        before, data = self._base_side(base, raw, proposed)
        decided_by: DecidedBy = "proposed" if allowed else "base"
        by_base = f"Policy and baseline of the base commit `{commit[:12]}` decide."
        if proposed is not None and _is_same(before, proposed, data):
            # What reviewers see are the text and the line numbers of the change.
            side = replace(before, loaded=replace(before.loaded, parsed=proposed.loaded.parsed))
            return GatedChange(
                decides=self._evaluate(allowed or side),
                decided_by=decided_by,
                data=data,
                remarks=renames if allowed else [by_base, *renames],
            )
        first = allowed or before
        decides = self._evaluate(first)
        compared = before if allowed else None if refused else proposed
        other, spent = self._judge_other(first, decides, compared)
        controls = own_control_phrases(proposed, before) if proposed is not None else []
        by_change = "`baseline-change: allow` lets this change's own policy and baseline decide."
        return GatedChange(
            decides=decides,
            decided_by=decided_by,
            other=other,
            edited=edited(self._policy, before, proposed),
            loosened=weakened(before, proposed),
            differences=differences(before, proposed),
            data=data,
            is_refused=bool(refused or spent),
            remarks=[
                by_change if allowed else by_base,
                *controls,
                *renames,
                *refused,
                *spent,
            ],
        )

    def _policy_of(self, base: BaseCommit) -> tuple[bytes | None, list[str]]:
        """Return the base's policy, if it has one, and what is to be said of its path."""
        self._earlier = self._policy
        raw = base.read(self._policy)
        if raw is not None or not (renamed := self._renamed(base)):
            return raw, []
        self._earlier = renamed
        return base.read(renamed), [f"This change renames {quoted(renamed)}, whose rules decide."]

    def _refuse_links(self, proposed: Side | None) -> None:
        """Raise BaselineError where a proposed file is one that no base commit could give."""
        paths = [self._policy]
        if proposed is not None:
            paths += [proposed.accepted_runs.baseline_path, proposed.accepted_runs.anchor_path]
        for path in paths:
            if link := self._checkout.link_to(path):
                raise BaselineError(
                    f"{quoted(link)} is a link in this change, so the policy and baseline behind "
                    "it could not decide once it is merged; make it a file or folder of its own"
                )

    def _judge_other(
        self, first: Side, decides: E, other: Side | None
    ) -> tuple[E | None, list[str]]:
        """Return the evaluation of the side that does not decide, or why it has none."""
        if other is None:
            return None, []
        # A part of a run knows of no later waves.
        added = decides.run.added if isinstance(decides, FinishedRun) else ()
        cases = [*first.loaded.plan.cases, *(case for case in added if not case.of_reference)]
        assert self._runtime.meters is not None  # noqa: S101 (made so)
        try:
            allow_as_much_again(self._runtime.meters, cases)
            return self._evaluate(other), []
        except BudgetError as error:
            why = harmless(str(error))
            return None, [f"The side that does not decide was not judged: {why}"]

    def _renamed(self, base: BaseCommit) -> str | None:
        """Return the base's path of the policy that is checked out; None where it has none."""
        raw = self._checkout.read(self._policy)
        policy = None if raw is None else self._policy_in(raw)
        if policy is None:  # what is wrong with it is told where it is loaded
            return None
        return earlier_path(base, self._policy, policy.name)

    def _compare_with(self, base: BaseCommit, raw: bytes | None) -> None:
        """Let `reference: base` mean the system of the base's policy, with the base's files.

        They are brought only where a side's policy compares with them.
        """
        policy = None if raw is None else self._policy_in(raw)

        @cache
        def system_of_base() -> BaseSystem:
            if policy is None:
                return BaseSystem(lacking="the base commit has no such policy, or none to be read")
            kind = kind_of(policy.system)
            if why := kind.lacks_base_version():
                return BaseSystem(lacking=f"of the base commit's system, {why}")
            version = BaseVersion(base, self._runtime, self._scratch)
            version.bring(kind, whole=True)
            own = replace(version.runtime, tested=None)
            return BaseSystem(system=policy.system, runtime=own)

        def with_base(runtime: Runtime) -> Runtime:
            return replace(runtime, base=system_of_base())

        self._with_base = with_base

    def _evaluate(self, side: Side) -> E:
        with contextlib.nullcontext() if self._base is None else self._base.reported():
            return self._evaluate_side(side)

    def _policy_in(self, raw: bytes) -> Policy | None:
        """Return the base's policy without what it names; None where it cannot be read."""
        try:
            text = decode_yaml(raw, self._policy)
            return parse_policy(text, self._policy, policy_parts()).policy
        except PolicyError:
            return None

    def _refused(self, proposed: Side, base: Policy | None) -> list[str]:
        """Return why the proposed policy is not run, whoever decides; empty where it may be.

        Of a base that cannot be read, nothing is known to be asked already.
        """
        return [
            f"This change's own policy was not run: it {sentence}. Merge that part first."
            for sentence in new_accesses(proposed.loaded.policy, base)
        ]

    def _introduction(self, proposed: Side | None, *, allow: bool) -> GatedChange[E] | Introduction:
        if proposed is None:
            raise UsageError(
                f"there is no policy {quoted(self._policy)}, neither here nor in the base commit; "
                "name an existing file"
            )
        if reaches := introduced_accesses(proposed.loaded.policy):
            return Introduction(side=proposed, reaches=reaches)
        remarks = ["The base commit has no such policy: this change introduces the gate."]
        remarks += own_control_phrases(proposed)
        then = proposed.accepted_runs
        if allow or (then.baseline is None and then.anchor is None):
            decides = self._evaluate(proposed)
            return GatedChange(decides=decides, decided_by="proposed", remarks=remarks)
        first = replace(proposed, accepted_runs=replace(then, baseline=None, anchor=None))
        return GatedChange(
            decides=self._evaluate(first),
            decided_by="base",
            other=self._evaluate(proposed),
            edited=edited_references(first, proposed),
            remarks=remarks,
        )

    def _base_side(
        self, base: BaseCommit, raw: bytes, proposed: Side | None
    ) -> tuple[Side, list[Difference]]:
        """Return the base's policy with the base's version of all that decides by it.

        And what of it, or of what is under test, the head has in another version. Raises
        UsageError where the base's policy cannot run, whatever is allowed: without its result a
        change could hide what it loosens behind a file that it moves.
        """
        commit = base.commit[:12]
        text = decode_yaml(raw, harmless(self._policy))
        try:
            policy = parse_policy(text, self._policy, policy_parts()).policy
        except PolicyError as error:
            raise UsageError(
                f"the policy in the base commit {commit} cannot be read, so nothing can be "
                f"compared with it, whatever `{INPUT}` says:\n{error}\nRepair it in a change of "
                "its own that the owner of the base branch merges"
            ) from error
        self._base = version = BaseVersion(base, self._runtime, self._scratch)
        data = version.bring(policy)
        try:
            with version.reported(self._policy):
                return self._loaded(raw, base, version.runtime), data
        except PolicyError as error:
            raise UsageError(
                f"the policy in the base commit {commit} decides, whatever `{INPUT}` says, and it "
                f"cannot run with this change's files:\n{error}\nKeep each file where it is, or a "
                "copy of it, until the base's policy names another. Move it in a change of its own "
                f"that the owner of the base branch merges{_also_looser(policy, proposed)}"
            ) from error

    def _proposed(self, base: BaseCommit | None = None, then: bytes | None = None) -> Side | None:
        """Return the side of the files that are checked out; what has ended is not asked yet.

        What a change proposes is bounded, beside the base's policy, `then`, by some times as many
        cases: nobody has agreed to more. Raises UsageError before any of them is made.
        """
        raw = self._checkout.read(self._policy)
        if raw is None or base is None:
            return None if raw is None else self._loaded(raw, self._checkout, self._runtime)
        try:
            return self._loaded(raw, self._checkout, self._runtime, _MOST_PROPOSED)
        except TooManyCasesError as error:
            if then is None:
                why = "a change may introduce"
                raise TooManyCasesError(error.planned, _MOST_PROPOSED, why) from error
            planned = len(self._base_side(base, then, None)[0].loaded.plan.cases)
            most = max(_MOST_PROPOSED, _TIMES_PROPOSED * planned)
            if error.planned > most:
                why = f"a change may propose beside the base's {planned:,}"
                raise TooManyCasesError(error.planned, most, why) from error
        return self._loaded(raw, self._checkout, self._runtime, most)

    def _loaded(
        self,
        raw: bytes,
        files: BaseCommit | Checkout,
        runtime: Runtime,
        most: int | None = None,
    ) -> Side:
        text = decode_yaml(raw, harmless(self._policy))
        written = self._policy_in(raw)
        if written is not None and written.compares_with_base:
            runtime = self._with_base(runtime)
        loaded = load_policy_text(text, self._policy, runtime, most=most)
        name = loaded.policy.name

        def read_baseline(accepted: AcceptedRun) -> tuple[Baseline | None, str]:
            policy = self._earlier if isinstance(files, BaseCommit) else self._policy
            path = path_in_repository(policy, name, accepted)
            content = files.read(path)
            return (
                None if content is None else decoded_baseline(content, path, name, accepted)
            ), path

        baseline, path = read_baseline(AcceptedRun.BASELINE)
        anchor, anchor_path = (
            read_baseline(AcceptedRun.ANCHOR) if loaded.policy.has_budget else (None, "")
        )
        labels, notices = self._labels(name)
        is_of_base = isinstance(files, BaseCommit)
        added = path_in_repository(self._policy, name, AcceptedRun.BASELINE)
        accepted_runs = AcceptedRuns(
            baseline=baseline, baseline_path=path,
            is_added=is_of_base and baseline is None and self._checkout.read(added) is not None,
            anchor=anchor, anchor_path=anchor_path,
            labels=labels, notices=notices,
        )  # fmt: skip
        return Side(loaded=loaded, accepted_runs=accepted_runs, runtime=runtime)

    def _labels(self, name: str) -> tuple[Sequence[Label], list[str]]:
        """Return the labels that count, those of the base whichever side asks.

        A change neither hides its own examples nor praises its own reading, whatever is allowed.
        """
        path = labels_in_repository(self._earlier, name)

        def read() -> list[Label]:
            content = self._labels_from.read(path)
            return [] if content is None else decoded_labels(content, path)

        return labels_or_notice(read)


def _also_looser(before: Policy, proposed: Side | None) -> str:
    """Return the loosenings of a change against a policy that cannot be loaded."""
    if proposed is None:
        return ""
    plan, suites = proposed.loaded.plan, proposed.loaded.suites  # the only ones that there are
    before = before.model_copy(update={"gates": before.gates or standard_gates(before)})
    looser = loosened(before, proposed.loaded.policy, (plan, plan), (suites, suites))
    listing = "".join(f"\n- {loosening.sentence}" for loosening in looser)
    return f".\nLess strict in this change than in the base's policy:{listing}" if looser else ""


def _is_same(before: Side, after: Side, data: Sequence[Difference]) -> bool:
    """Return whether everything that decides is the same."""
    same_policy = before.loaded.policy == after.loaded.policy
    same_rules = same_policy and not edited_references(before, after)
    return same_rules and all(difference.is_under_test for difference in data)


def evaluated(side: Side, progress: Progress) -> FinishedRun:
    """Ask the system of a side and judge by its policy and accepted_runs."""
    return Composition(side.loaded, side.runtime, progress).run(side.accepted_runs)
