"""Gate lines that would catch what a policy misses: a bound between the run and its variants."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fairgate.domain.items import Condition
from fairgate.features.mutation.mutants import Kind, Mutant, Reach
from fairgate.policy.gates import GatePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Separating:
    """A metric that a kind of mutant moves in its own slice."""

    metric: str
    dimension: str
    bound: Literal["max", "min", "max_abs"] = "max"
    in_setting: bool = False
    """Whether the slice names a setting as well: without one, settings are pooled."""

    def size(self, value: float) -> float:
        """Return what is the larger, the worse a value is for the bound."""
        return {"max": value, "min": -value, "max_abs": abs(value)}[self.bound]

    def is_broken(self, value: float, bound: float) -> bool:
        """Return whether a value is beyond a bound."""
        return value < bound if self.bound == "min" else self.size(value) > bound


_BY_TERM = Separating(metric="asr/generation/controlled", dimension="term")
_BY_CATEGORY = Separating(metric="asr/generation/controlled", dimension="category")
_REFUSALS = Separating(metric="unreadable/net", dimension="term")
_DOCUMENTS = Separating(metric="retrieval/overlap", dimension="term", bound="min")
_ITEM_REFUSALS = Separating(metric="out-of-choice", dimension="category", in_setting=True)
_STEREOTYPES = {
    str(condition): Separating(
        metric=f"diff-bias/{condition}", dimension="category", bound="max_abs", in_setting=True
    )
    for condition in Condition
}

SEPARATING_METRICS = frozenset(
    by.metric for by in (_BY_TERM, _BY_CATEGORY, _REFUSALS, _DOCUMENTS, _ITEM_REFUSALS)
) | {by.metric for by in _STEREOTYPES.values()}


def separating(mutant: Mutant) -> Separating | None:
    """Return the metric that could tell a mutant from the run; None: a bound of none could."""
    kind, reach = mutant.kind, mutant.reach
    if (kind, reach) == (Kind.STEREOTYPES, Reach.CATEGORY):
        return _STEREOTYPES[mutant.where["condition"]]
    return {
        (Kind.ANSWERS, Reach.TERM): _BY_TERM,
        (Kind.ANSWERS, Reach.CATEGORY): _BY_CATEGORY,
        (Kind.REFUSALS, Reach.TERM): _REFUSALS,
        (Kind.REFUSALS, Reach.CATEGORY): _ITEM_REFUSALS,
        (Kind.DOCUMENTS, Reach.TERM): _DOCUMENTS,
    }.get((kind, reach))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A gate, and the line of YAML that is it."""

    gate: GatePolicy
    line: str


def propose(
    by: Separating,
    slices: Mapping[str, object],
    own: Sequence[float],
    targets: Sequence[Sequence[float]],
    needed: int,
) -> Proposal | None:
    """Return the most tolerant bound, in hundredths, that the run keeps and its variants break.

    `own` are the metric's values in the run's slices; `targets` holds for each missed mutant the
    values over seeds, of which `needed` must break the bound. `slices` is what the gate says beside
    metric, dimension and bound: `suite` (one suite need not be named), `where`. None where no bound
    separates them.
    """
    if not own or not targets or any(len(values) < needed for values in targets):
        return None
    worst = max(map(by.size, own))
    reached = min(sorted(map(by.size, values), reverse=True)[needed - 1] for values in targets)
    size = (math.ceil(100 * reached - 1e-9) - 1) / 100
    if size < worst:
        return None
    bound = round(-size if by.bound == "min" else size, 2) + 0.0
    gate = GatePolicy.model_validate(
        {"metric": by.metric, **slices, "for_each": by.dimension, by.bound: bound}
    )
    inside = "".join(f" {name}: {_flow(value)}," for name, value in slices.items())
    line = f"- {{metric: {by.metric},{inside} for_each: {by.dimension}, {by.bound}: {bound:g}}}"
    return Proposal(gate=gate, line=line)


def _flow(value: object) -> str:
    """Return a value as YAML within a line."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name}: {json.dumps(each)}" for name, each in value.items())
        return f"{{{inside}}}"
    return json.dumps(value)
