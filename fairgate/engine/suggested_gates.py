"""Gate lines that would catch what a policy misses: a bound between the run and its variants."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairgate.engine.mutants import Kind, Reach
from fairgate.policy.gates import GatePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Separating:
    """A metric that a kind of mutant moves in its own slice."""

    metric: str
    dimension: str
    is_upper: bool = True
    """Whether the bound is a `max`."""


SEPARATING: Mapping[tuple[Kind, Reach], Separating] = {
    (Kind.ANSWERS, Reach.TERM): Separating(metric="asr/generation/controlled", dimension="term"),
    (Kind.ANSWERS, Reach.CATEGORY): Separating(
        metric="asr/generation/controlled", dimension="category"
    ),
    (Kind.REFUSALS, Reach.TERM): Separating(metric="unreadable/net", dimension="term"),
    (Kind.DOCUMENTS, Reach.TERM): Separating(
        metric="retrieval/overlap", dimension="term", is_upper=False
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A gate, and the line of YAML that is it."""

    gate: GatePolicy
    line: str


def propose(
    by: Separating,
    suite: str | None,
    own: Sequence[float],
    targets: Sequence[Sequence[float]],
    needed: int,
) -> Proposal | None:
    """Return the most tolerant bound, in hundredths, that the run keeps and its variants break.

    `own` are the metric's values in the run's slices; `targets` holds for each missed mutant the
    values over seeds, of which `needed` must break the bound. `suite` is None in a policy with one
    suite, which need not be named. None where no bound separates them.
    """
    sign = 1 if by.is_upper else -1
    if not own or not targets or any(len(values) < needed for values in targets):
        return None
    worst = max(sign * value for value in own)
    reached = min(
        sorted((sign * v for v in values), reverse=True)[needed - 1] for values in targets
    )
    bound = (math.ceil(100 * reached - 1e-9) - 1) / 100
    if bound < worst:
        return None
    name, value = "max" if by.is_upper else "min", round(sign * bound, 2) + 0.0
    named = {} if suite is None else {"suite": suite}
    gate = GatePolicy.model_validate(
        {"metric": by.metric, **named, "for_each": by.dimension, name: value}
    )
    inside = "".join(f" suite: {json.dumps(suite)}," for suite in named.values())
    line = f"- {{metric: {by.metric},{inside} for_each: {by.dimension}, {name}: {value:g}}}"
    return Proposal(gate=gate, line=line)
