"""A policy, its baseline and its anchor in one version of a repository; what separates two."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless
from fairgate.gate.baseline import Baseline
from fairgate.gate.baseline_diff import baseline_differences
from fairgate.gate.baseline_files import dump_baseline
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.references import References
from fairgate.github.loosened import loosened


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A policy, its baseline and its anchor as one version of the repository has them."""

    text: str
    loaded: LoadedPolicy
    references: References
    runtime: Runtime
    """Where its files are read."""


def is_same(before: Side, after: Side) -> bool:
    """Return whether policy, baseline and anchor are the same."""
    same_policy = before.loaded.policy == after.loaded.policy
    return same_policy and not edited_references(before, after)


def _differ(then: Baseline | None, now: Baseline | None) -> bool:
    if then is None or now is None:
        return then is not now
    return dump_baseline(then) != dump_baseline(now)


def edited_references(before: Side, after: Side) -> list[str]:
    """Return the files of baseline and anchor that the change edits."""
    then, now = before.references, after.references
    own = [now.baseline_path] if _differ(then.baseline, now.baseline) else []
    # Without a budget on the other side there is nothing to compare: the policy says so itself.
    both = then.anchor_path and now.anchor_path
    return [*own, now.anchor_path] if both and _differ(then.anchor, now.anchor) else own


def edited(policy: str, before: Side, after: Side | None) -> list[str]:
    """Return the files that the change edits; the policy alone where it removes that."""
    if after is None:
        return [policy]
    own = [policy] if before.loaded.policy != after.loaded.policy else []
    return [*own, *edited_references(before, after)]


def weakened(before: Side, after: Side | None) -> list[str]:
    """Return a sentence for everything that the change holds less strictly, the worst first."""
    if after is None:
        return ["the policy is removed, with all of its rules"]
    plans = before.loaded.plan, after.loaded.plan
    found = []
    then, now = before.references, after.references
    if then.baseline is not None and now.baseline is None:
        found.append("the baseline is removed: nothing is compared any more")
    if then.anchor is not None and now.anchor_path and _differ(then.anchor, now.anchor):
        if now.anchor is None:
            found.append("the anchor is removed: no budget is compared any more")
        else:
            found.append(
                f"another anchor is pinned, of {harmless(now.anchor.date)} instead of "
                f"{harmless(then.anchor.date)}: every budget starts anew "
                f"({harmless(now.anchor.reason)})"
            )
    return [*found, *loosened(before.loaded.policy, after.loaded.policy, plans)]


def differences(before: Side, after: Side | None) -> list[str]:
    """Return what separates the two baselines, then the two anchors, as lines for a reviewer."""
    if after is None:
        return []
    then, now = before.references, after.references
    pairs = ((then.baseline, now.baseline, ""), (then.anchor, now.anchor, "anchor: "))
    return [
        f"{called}{line}"
        for old, new, called in pairs
        if old is not None and new is not None and _differ(old, new)
        for line in baseline_differences(old, new)
    ]
