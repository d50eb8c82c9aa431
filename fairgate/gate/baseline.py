"""What a run leaves behind for later runs to be compared with, and when they can be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import KeptKillScore, Overlap, Provenance
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.table import Table
from fairgate.policy.schema import GatePolicy, RegressionPolicy
from fairgate.suites.suite import Suite

SCHEMA_VERSION = 3
_BETWEEN = " | "
UNRECORDED = frozenset({"transformers"})
"""What older baselines recorded: only models ask it whose files leave out how far they attend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSuite:
    """One suite of a baseline: what must match, and what was decided case by case."""

    must_match: Mapping[str, str]
    contents: Mapping[str, str]
    """Unit key to a short hash of everything that was asked."""
    table: Table
    quartiles: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSd:
    """Standard deviation of the per-source change of a rule's value when nothing changed."""

    metric: str
    suite: str
    where: Mapping[str, str]
    sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRun:
    """What is kept of an earlier baseline: where a series of accepted changes has come from."""

    date: str
    commit: str
    """Its first 12 digits; empty where it is unknown."""
    measurements: Sequence[Measurement]
    """Values and intervals of what rules compare and what every trend shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A reviewed reference run."""

    policy: str
    reason: str
    date: str
    suites: Mapping[str, BaselineSuite]
    measurements: Sequence[Measurement]
    metric_versions: Mapping[str, int]
    provenance: Provenance
    sds: Sequence[KnownSd] = ()
    """What a burn-in measured of the unchanged system; empty where there was none."""
    history: Sequence[AcceptedRun] = ()
    """The baselines before this one, the oldest first. No verdict depends on it."""

    def sd_of(self, metric: str, suite: str, where: Mapping[str, str]) -> float:
        """Return the SD of the per-source change of an unchanged system; 0 where it is unknown."""
        asked = (metric, suite, dict(where))
        known = (sd.sd for sd in self.sds if (sd.metric, sd.suite, dict(sd.where)) == asked)
        return next(known, 0.0)


def must_match(suite: Suite, system: Mapping[str, object]) -> dict[str, str]:
    """Return the fields without whose equality two runs of a suite are not comparable (SPEC 9).

    `system` is what the kind of system adds.
    """
    return _as_texts({**suite.must_match(), **system})


def _as_texts(fields: Mapping[str, object]) -> dict[str, str]:
    return {
        name: json.dumps(value, sort_keys=True, ensure_ascii=False)
        for name, value in fields.items()
    }


def unit_contents(plan: TestPlan, suite: str) -> dict[str, str]:
    """Return for each unit of a suite a short hash of everything that was asked."""
    return {unit.key: unit.content for unit in plan.units if unit.suite == suite}


def plan_hash(cases: Sequence[Case]) -> str:
    """Return the SHA-256 of everything that cases ask, in their order."""
    digest = hashlib.sha256()
    for case in cases:
        digest.update(f"{case!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def with_texts_of(baseline: Baseline, plan: TestPlan) -> Baseline:
    """Return an equal baseline whose keys and hashes are the plan's where they are the same.

    Those of a million cases take 130 MB, so they are held once.
    """
    suites = {}
    for name, suite in baseline.suites.items():
        units = {unit.key: unit for unit in plan.units if unit.suite == name}
        keys, contents = [], {}
        for key in suite.table.keys:
            unit, content = units.get(key), suite.contents[key]
            own = key if unit is None else unit.key
            keys.append(own)
            contents[own] = content if unit is None or unit.content != content else unit.content
        suites[name] = replace(suite, contents=contents, table=replace(suite.table, keys=keys))
    return replace(baseline, suites=suites)


def overlap(
    plan: TestPlan,
    fields: Mapping[str, Mapping[str, str]],
    baseline: Baseline,
    *,
    min_overlap: float,
    called: str = "baseline",
) -> Overlap:
    """Return which cases can be compared with the baseline, and what prevents any comparison.

    `called` is what messages call it: `baseline` or `anchor`.
    """
    incompatible: list[str] = []
    new: list[str] = []
    removed: list[str] = []
    compared = total = 0
    for name, suite in baseline.suites.items():
        total += len(suite.contents)
        if name not in fields:
            removed += [f"{name}:{key}" for key in suite.contents]
            continue
        incompatible += _field_differences(name, suite.must_match, fields[name], called)
        now = unit_contents(plan, name)
        same = {key for key, content in now.items() if suite.contents.get(key) == content}
        compared += len(same)
        new += [f"{name}:{key}" for key in now if key not in same]
        removed += [f"{name}:{key}" for key in suite.contents if key not in same]
    for name in fields:
        if name not in baseline.suites:
            new += [f"{name}:{key}" for key in unit_contents(plan, name)]
    for metric in METRICS:
        then = baseline.metric_versions.get(metric.id, metric.version)
        if then != metric.version:
            incompatible.append(
                f"metric {metric.id}: {called} has version {then}, this FairGate {metric.version}"
            )
    if compared < min_overlap * total:
        incompatible.append(
            f"cases: {compared} of the {called}'s {total} cases are left to compare, "
            f"fewer than min_overlap {min_overlap:g} asks for"
        )
    return Overlap(compared=compared, new=new, removed=removed, incompatible=incompatible)


def _field_differences(
    suite: str, then: Mapping[str, str], now: Mapping[str, str], called: str
) -> list[str]:
    return [
        f"suite {suite}, {name}: {called} {before}, run {after}"
        for name in sorted({*then, *now})
        if (before := then.get(name, "nothing")) != (after := now.get(name, "nothing"))
    ]


def comparable_rows(table: Table, base: BaselineSuite, contents: Mapping[str, str]) -> Table:
    """Return the baseline's table without the cases whose text has changed.

    Nor with what is said of undecided ones: no baseline file keeps that.
    """
    keep = np.asarray(
        [contents.get(key) == base.contents.get(key) for key in base.table.keys], dtype=bool
    )
    old = base.table if keep.all() else base.table.of_rows(np.flatnonzero(keep))
    return replace(old, advisory=table.advisory, bands=table.bands, reasons={})


class Reference(StrEnum):
    """Which earlier run; its value is what messages call it.

    The margin counts from the baseline, anew after each that is accepted, so a series of small
    changes passes one by one. The budget counts from the anchor, which stays until another one is
    pinned (SPEC 8).
    """

    BASELINE = "baseline"
    ANCHOR = "anchor"

    @property
    def check(self) -> str:
        """Return the name of the check among those that a rule failed."""
        return "regression" if self is Reference.BASELINE else "budget"

    @property
    def limit(self) -> str:
        """Return what the policy calls the largest change that is accepted."""
        return "margin" if self is Reference.BASELINE else "budget"

    @property
    def missing(self) -> str:
        """Return why nothing is compared where there is no such run."""
        if self is Reference.BASELINE:
            return "first run: there is no baseline to compare with yet"
        return (
            "the budget is not evaluated: there is no anchor yet; pin a reviewed run with "
            "`fairgate baseline anchor RUN --reason …`"
        )

    @property
    def remedy(self) -> str:
        """Return what to do where the run lacks what a rule needs."""
        command = "accept" if self is Reference.BASELINE else "anchor"
        return f"{command} a run that has it with `fairgate baseline {command}`"

    def asked(self, gate: GatePolicy) -> RegressionPolicy | None:
        """Return what a gate asks of the change since this run; None where it asks nothing."""
        if gate.regression is None or self is Reference.BASELINE:
            return gate.regression
        return gate.regression.since_anchor()


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What a policy's runs are compared with, and where it is kept."""

    baseline: Baseline | None
    baseline_path: str
    anchor: Baseline | None = None
    anchor_path: str = ""
    """Empty where no rule has a budget."""
    kill_score: KeptKillScore | None = None
    """Of this version of the policy; nothing is compared with it."""
    notices: Sequence[str] = ()


NO_REFERENCES = References(baseline=None, baseline_path="none")


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
