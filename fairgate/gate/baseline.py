"""What a run leaves behind for later runs, when they can be compared, and how two of it differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum

import numpy as np

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.outcomes import Measurement, Overlap, Provenance
from fairgate.domain.wording import first_few
from fairgate.gate.labels import Label
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Table, is_verdict
from fairgate.policy.schema import GatePolicy
from fairgate.stats.observations import Floats
from fairgate.suites.suite import DEGREES_FIELD, LABEL_ORDER, Suite

SCHEMA_VERSION = 5
_BETWEEN = " | "
_OF_ONE = (LABEL_ORDER, DEGREES_FIELD)
"""Fields that some metrics alone rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSuite:
    """One suite of a baseline: what must match, and what was decided case by case."""

    must_match: Mapping[str, str]
    contents: Mapping[str, str]
    """Unit key to a short hash of everything that was asked."""
    table: Table
    quartiles: tuple[float, float] | None


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
    sha256: str = ""
    """Of the file that it was read from; empty: it is from none."""


def must_match(suite: Suite, system: Mapping[str, object]) -> dict[str, str]:
    """Return the fields without whose equality two runs of a suite are not comparable.

    `system` is what the kind of system adds.
    """
    facts = {**suite.must_match(), **system}
    return {k: json.dumps(v, sort_keys=True, ensure_ascii=False) for k, v in facts.items()}


def unit_contents(plan: TestPlan, suite: str) -> dict[str, str]:
    """Return for each unit of a suite a short hash of everything that was asked."""
    return {unit.key: unit.content for unit in plan.units if unit.suite == suite}


def plan_hash(cases: Sequence[Case]) -> str:
    """Return the SHA-256 of everything that cases ask, in their order.

    A field that has its default is no part of it, so that one more changes no other case's hash.
    """
    digest, defaults = hashlib.sha256(), Case._field_defaults
    for case in cases:
        asked = {
            field: value
            for field, value in zip(Case._fields, case, strict=True)
            if field not in defaults or value != defaults[field]
        }
        digest.update(f"{asked!r}\n".encode("utf-8", "surrogatepass"))
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
    noun: str = "baseline",
) -> Overlap:
    """Return which cases can be compared with the baseline, and what prevents any comparison.

    `noun` is what messages call it: `baseline` or `anchor`.
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
        then, now = suite.must_match, fields[name]
        # What one of the two lacks, a direction or degrees of answers, is not compared at all.
        free = {field for field in _OF_ONE if field not in then or field not in now}
        incompatible += [
            f"suite {name}, {field}: {noun} {before}, run {after}"
            for field in sorted({*then, *now} - free)
            if (before := then.get(field, "nothing")) != (after := now.get(field, "nothing"))
        ]
        own = unit_contents(plan, name)
        same = {key for key, content in own.items() if suite.contents.get(key) == content}
        compared += len(same)
        new += [f"{name}:{key}" for key in own if key not in same]
        removed += [f"{name}:{key}" for key in suite.contents if key not in same]
    for name in fields:
        if name not in baseline.suites:
            new += [f"{name}:{key}" for key in unit_contents(plan, name)]
    columns = {column for suite in baseline.suites.values() for column in suite.table.values}
    for metric in METRICS:
        version = baseline.metric_versions.get(metric.id, metric.version)
        if version != metric.version and metric.column in columns:
            had = f"{noun} has version {version}"
            incompatible.append(f"metric {metric.id}: {had}, this FairGate {metric.version}")
    if compared < min_overlap * total:
        incompatible.append(
            f"cases: {compared} of the {noun}'s {total} cases are left to compare, "
            f"fewer than min_overlap {min_overlap:g} asks for"
        )
    return Overlap(compared=compared, new=new, removed=removed, incompatible=incompatible)


class AcceptedRun(StrEnum):
    """Which earlier run; its value is what messages call it.

    The margin counts from the baseline, anew after each that is accepted, so a series of small
    changes passes one by one. The budget counts from the anchor, which stays until another one is
    pinned.
    """

    BASELINE = "baseline"
    ANCHOR = "anchor"

    def limit(self, gate: GatePolicy) -> float | None:
        """Return a gate's limit on the change since this run; None where it sets none."""
        return gate.regression if self is AcceptedRun.BASELINE else gate.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRuns:
    """What a policy's runs are compared with, and where it is kept."""

    baseline: Baseline | None = None
    baseline_path: str = "none"
    is_added: bool = False
    """Whether the base lacks the baseline that a change adds, which decides from then on."""
    anchor: Baseline | None = None
    anchor_path: str = ""
    """Empty where no rule has a budget."""
    labels: Sequence[Label] = ()
    """What people say of how cases were read; no verdict depends on it."""
    notices: Sequence[str] = ()

    @property
    def runs(self) -> dict[AcceptedRun, Baseline]:
        """Return the runs that there are."""
        by_name = {AcceptedRun.BASELINE: self.baseline, AcceptedRun.ANCHOR: self.anchor}
        return {accepted: run for accepted, run in by_name.items() if run is not None}


NO_ACCEPTED_RUNS = AcceptedRuns()


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
    where = "; ".join(f"{name} was {then}, is {now}" for name, then, now in changed)
    unstable = "those with a margin below `unstable_margin` count as unstable"
    made = f"the baseline was made in another environment ({where})"
    return [f"{made}, which may change answers: {unstable}"]


def changed_environment(
    then: Mapping[str, str], now: Mapping[str, str], absent: str
) -> list[tuple[str, str, str]]:
    """Return name, old and new value of all that differs, in the order of then and now."""
    return [
        (name, then.get(name, absent), now.get(name, absent))
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
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
    return {name: _BETWEEN.join(sorted(entries)) for name, entries in values.items()}


def baseline_differences(old: Baseline, new: Baseline) -> Iterator[str]:
    """Yield what separates two baselines, as lines for a reviewer.

    First what decides (cases, rows, scores, known deviations), each kind by how much it differs,
    then what is reported of it. A table is compared by key, every column and dimension whole. Two
    baselines whose files differ give more than the first line.
    """
    policy = old.policy if old.policy == new.policy else f"{old.policy} -> {new.policy}"
    yield f"policy {policy}: {old.date} ({old.reason}) -> {new.date} ({new.reason})"
    for name in sorted({*old.suites, *new.suites}):
        if name not in new.suites or name not in old.suites:
            yield f"suite {name}: only in the {'old' if name in old.suites else 'new'} baseline"
            continue
        yield from _suite(name, old.suites[name], new.suites[name])
    yield from _entries("version of metric ", old.metric_versions, new.metric_versions)
    then, now = old.provenance, new.provenance
    yield from _entries("under test, ", then.under_test, now.under_test)
    yield from _measurements("", old.measurements, new.measurements)
    yield from _entries("environment, ", then.environment, now.environment)
    for name in ("fairgate", "policy_path", "policy_sha256", "commit"):
        yield from _entries("", {name: getattr(then, name)}, {name: getattr(now, name)})


def _entries(about: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        before, after = (side.get(name, "nothing") for side in (old, new))
        if before != after:
            yield f"{about}{name}: {before} -> {after}"


def _at(where: Mapping[str, str]) -> str:
    levels = ", ".join(f"{name} {value}" for name, value in sorted(where.items()))
    return f" ({levels})" if levels else ""


def _measurements(
    about: str, old: Sequence[Measurement], new: Sequence[Measurement]
) -> Iterator[str]:
    """Yield the values that differ, the largest difference first; then what is said of others."""
    slices = [
        {(m.metric, m.suite, tuple(sorted(m.where.items()))): m for m in run} for run in (old, new)
    ]
    lines = []
    for each in dict.fromkeys((*slices[0], *slices[1])):
        before, after = (side.get(each) for side in slices)
        if before == after:
            continue
        metric, suite, where = each
        values = [None if side is None else side.value for side in (before, after)]
        then, now = ("nothing" if value is None else f"{value:.4f}" for value in values)
        size = 0.0 if None in values else abs((values[1] or 0.0) - (values[0] or 0.0))
        others = [
            f"{field.name} {getattr(before, field.name)} -> {getattr(after, field.name)}"
            for field in fields(Measurement)
            if before and after and getattr(before, field.name) != getattr(after, field.name)
        ]
        change = f"{'new' if before is None else then} -> {now}" if then != now else others[0]
        lines.append((size, f"{about}{suite}: {metric}{_at(dict(where))}: {change}"))
    yield from (line for _, line in sorted(lines, key=lambda side: -side[0]))
    if not lines and list(old) != list(new):
        yield f"{about}measurements stand in another order, or twice"


def _suite(name: str, old: BaselineSuite, new: BaselineSuite) -> Iterator[str]:
    yield from _entries(f"suite {name}, ", old.must_match, new.must_match)
    gone = [key for key in old.contents if new.contents.get(key) != old.contents[key]]
    added = [key for key in new.contents if new.contents[key] != old.contents.get(key)]
    for word, keys in (("removed or reworded", gone), ("new or reworded", added)):
        if keys:
            yield f"suite {name}: {len(keys)} cases {word}: {first_few(keys)}"
    then, now = old.table, new.table
    places = {key: row for row, key in enumerate(then.keys)}
    shared = [(places[key], row) for row, key in enumerate(now.keys) if key in places]
    rows = np.asarray(shared, dtype=np.int64).reshape(-1, 2)
    for column in sorted({*then.values, *now.values}):
        yield from _column(f"suite {name}, {column}", column, then, now, rows)
    if [before for before, _ in shared] != sorted(before for before, _ in shared):
        yield f"suite {name}: the cases stand in another order"
    before, after = _facts(then, rows[:, 0]), _facts(now, rows[:, 1])
    for fact in sorted({*before, *after}):
        pairs = zip(before.get(fact, ()), after.get(fact, ()), strict=False)
        keys = [
            now.keys[rows[position, 1]] for position, pair in enumerate(pairs) if pair[0] != pair[1]
        ]
        if fact not in before or fact not in after:
            yield f"suite {name}, {fact}: only in the {'old' if fact in before else 'new'} baseline"
        elif keys:
            yield f"suite {name}, {fact}: {len(keys)} cases have another one: {first_few(keys)}"
    for subject, was, is_now in (
        ("quartiles", old.quartiles, new.quartiles),
        ("bands", then.bands, now.bands),
        ("not evaluated", dict(then.not_evaluated), dict(now.not_evaluated)),
    ):
        yield from _entries(f"suite {name}, ", {subject: was}, {subject: is_now})


def _facts(table: Table, rows: np.ndarray) -> dict[str, list[object]]:
    """Return the other facts of rows: dimensions, cluster, and whether they are controls."""
    clusters = [table.cluster_names[number] for number in table.clusters[rows].tolist()]
    facts: dict[str, list[object]] = {
        name: list(table.dimension(name).taken(rows)) for name in table.dimensions
    }
    return {**facts, "cluster": clusters, "control": table.control[rows].tolist()}


def _column(about: str, column: str, old: Table, new: Table, rows: np.ndarray) -> Iterator[str]:
    if column not in old.values or column not in new.values:
        yield f"{about}: only in the {'old' if column in old.values else 'new'} baseline"
        return
    then, now = old.values[column][rows[:, 0]], new.values[column][rows[:, 1]]
    differs = np.flatnonzero(~((then == now) | (np.isnan(then) & np.isnan(now))))
    if not len(differs):
        return
    keys = [new.keys[row] for row in rows[differs, 1].tolist()]
    what = "verdicts" if is_verdict(then) and is_verdict(now) else "values"
    yield f"{about}: {len(keys)} {what} differ, {_mean(then)} -> {_mean(now)}: {first_few(keys)}"


def _mean(column: Floats) -> str:
    decided = column[~np.isnan(column)]
    return f"mean {decided.mean():.4f} of {len(decided)}" if len(decided) else "nothing decided"
