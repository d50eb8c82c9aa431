"""Whether run and baseline were made on different machines or libraries, and what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.outcomes import Provenance
from fairgate.gate.baseline import Baseline

_BETWEEN = " | "
UNRECORDED = frozenset({"transformers"})
"""What older baselines recorded: only models ask it whose files leave out how far they attend."""


def environment_notices(now: Provenance, baseline: Baseline | None) -> list[str]:
    """Return a sentence where the environments differ; none where they are equal or unknown.

    Low-precision models round differently with and without some processor instructions, so an
    answer with a small margin may differ without any change of the system. Such answers are below
    `unstable_margin` and count as unstable, not as violations.
    """
    if baseline is None:
        return []
    then = baseline.provenance.environment
    changed = sorted(changed_environment(then, now.environment, "unknown"))
    if not changed:
        return []
    where = "; ".join(f"{name} {before} → {after}" for name, before, after in changed)
    drift = "answers with a margin below `unstable_margin` are unstable rather than violated"
    return [f"the baseline was made in another environment ({where}): {drift}, others may drift"]


def changed_environment(
    then: Mapping[str, str], now: Mapping[str, str], absent: str
) -> list[tuple[str, str, str]]:
    """Return name, old and new value of all that differs, in the order of then and now."""
    return [
        (name, then.get(name, absent), now.get(name, absent))
        for name in dict.fromkeys((*then, *now))
        if name not in UNRECORDED and then.get(name) != now.get(name)
    ]


def of_machines(tables: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return one environment for several machines: where they differ, every value once.

    A table may be such an environment itself.
    """
    names = dict.fromkeys(name for table in tables for name in table)
    values = {
        name: {value for table in tables for value in table.get(name, "none").split(_BETWEEN)}
        for name in names
    }
    return {name: _BETWEEN.join(sorted(each)) for name, each in values.items()}
