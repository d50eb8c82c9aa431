"""What separates two baselines, as lines for a reviewer: whatever differs is in one of them.

First what decides (cases, rows, scores, known deviations), each kind by how much it differs, then
what is reported of it. A table is compared by key, every column and dimension whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np

from fairgate.domain.measurements import Measurement
from fairgate.gate.baseline import Baseline, BaselineSuite
from fairgate.metrics.table import Column, Table, is_verdict

_NAMED = 5


def baseline_differences(old: Baseline, new: Baseline) -> Iterator[str]:
    """Yield what differs; two baselines whose files differ give more than the first line."""
    policy = old.policy if old.policy == new.policy else f"{old.policy} -> {new.policy}"
    yield f"policy {policy}: {old.date} ({old.reason}) -> {new.date} ({new.reason})"
    for name in sorted({*old.suites, *new.suites}):
        if name not in new.suites or name not in old.suites:
            yield f"suite {name}: only in the {'old' if name in old.suites else 'new'} baseline"
            continue
        yield from _suite(name, old.suites[name], new.suites[name])
    yield from _entries("known deviation, ", _sds(old), _sds(new))
    yield from _entries("version of metric ", old.metric_versions, new.metric_versions)
    then, now = old.provenance, new.provenance
    yield from _entries("under test, ", then.under_test, now.under_test)
    yield from _measurements("", old.measurements, new.measurements)
    yield from _entries("environment, ", then.environment, now.environment)
    for name in ("fairgate", "policy_path", "commit"):
        yield from _entries("", {name: getattr(then, name)}, {name: getattr(now, name)})
    before, after = (
        {f"{number} ({run.date}, {run.commit})": run for number, run in enumerate(one.history)}
        for one in (old, new)
    )
    for run in dict.fromkeys((*before, *after)):
        kept = [one[run].measurements if run in one else () for one in (before, after)]
        place = f"accepted run {run}, "
        if run not in before or run not in after:
            yield f"{place}only in the {'old' if run in before else 'new'} baseline"
        yield from _measurements(place, *kept)


def _entries(about: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        before, after = (one.get(name, "nothing") for one in (old, new))
        if before != after:
            yield f"{about}{name}: {before} -> {after}"


def _sds(baseline: Baseline) -> dict[str, object]:
    return _numbered((f"{sd.suite}: {sd.metric}{_at(sd.where)}", sd.sd) for sd in baseline.sds)


def _numbered(entries: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return entries by their names; what has a name that was there gets a number."""
    found: dict[str, object] = {}
    for name, value in entries:
        again = sum(known == name or known.startswith(f"{name} #") for known in found)
        found[f"{name} #{again + 1}" if again else name] = value
    return found


def _at(where: Mapping[str, str]) -> str:
    at = ", ".join(f"{name} {value}" for name, value in sorted(where.items()))
    return f" ({at})" if at else ""


def _measurements(
    about: str, old: Sequence[Measurement], new: Sequence[Measurement]
) -> Iterator[str]:
    """Yield the values that differ, the largest difference first; then what is said of others."""
    slices = [
        {(m.metric, m.suite, tuple(sorted(m.where.items()))): m for m in run} for run in (old, new)
    ]
    found = []
    for at in dict.fromkeys((*slices[0], *slices[1])):
        before, after = (one.get(at) for one in slices)
        if before == after:
            continue
        metric, suite, where = at
        values = [None if one is None else one.value for one in (before, after)]
        then, now = ("nothing" if value is None else f"{value:.4f}" for value in values)
        size = 0.0 if None in values else abs((values[1] or 0.0) - (values[0] or 0.0))
        others = [
            f"{field.name} {getattr(before, field.name)} -> {getattr(after, field.name)}"
            for field in fields(Measurement)
            if before and after and getattr(before, field.name) != getattr(after, field.name)
        ]
        shown = f"{'new' if before is None else then} -> {now}" if then != now else others[0]
        found.append((size, f"{about}{suite}: {metric}{_at(dict(where))}: {shown}"))
    yield from (line for _, line in sorted(found, key=lambda one: -one[0]))
    if not found and list(old) != list(new):
        yield f"{about}measurements stand in another order, or twice"


def _suite(name: str, old: BaselineSuite, new: BaselineSuite) -> Iterator[str]:
    yield from _entries(f"suite {name}, ", old.must_match, new.must_match)
    gone = [key for key in old.contents if new.contents.get(key) != old.contents[key]]
    added = [key for key in new.contents if new.contents[key] != old.contents.get(key)]
    for word, keys in (("removed or reworded", gone), ("new or reworded", added)):
        if keys:
            yield f"suite {name}: {len(keys)} cases {word}: {_some(keys)}"
    then, now = old.table, new.table
    places = {key: row for row, key in enumerate(then.keys)}
    shared = [(places[key], row) for row, key in enumerate(now.keys) if key in places]
    rows = np.asarray(shared, dtype=np.int64).reshape(-1, 2)
    for column in sorted({*then.values, *now.values}):
        yield from _column(f"suite {name}, {column}", column, then, now, rows)
    if [before for before, _ in shared] != sorted(before for before, _ in shared):
        yield f"suite {name}: the cases stand in another order"
    facts = (_facts(table, picked) for table, picked in zip((then, now), rows.T, strict=True))
    before, after = facts
    for fact in sorted({*before, *after}):
        pairs = zip(before.get(fact, ()), after.get(fact, ()), strict=False)
        keys = [now.keys[rows[at, 1]] for at, pair in enumerate(pairs) if pair[0] != pair[1]]
        if fact not in before or fact not in after:
            yield f"suite {name}, {fact}: only in the {'old' if fact in before else 'new'} baseline"
        elif keys:
            yield f"suite {name}, {fact}: {len(keys)} cases have another one: {_some(keys)}"
    for called, was, is_now in (
        ("quartiles", old.quartiles, new.quartiles),
        ("bands", then.bands, now.bands),
        ("not evaluated", dict(then.not_evaluated), dict(now.not_evaluated)),
    ):
        yield from _entries(f"suite {name}, ", {called: was}, {called: is_now})


def _facts(table: Table, rows: np.ndarray) -> dict[str, list[object]]:
    """Return what else is known of rows: dimensions, cluster, and whether they are neutral."""
    clusters = [table.cluster_names[number] for number in table.clusters[rows].tolist()]
    found: dict[str, list[object]] = {
        name: list(table.dimension(name).taken(rows)) for name in table.dimensions
    }
    return {**found, "cluster": clusters, "control": table.control[rows].tolist()}


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
    yield f"{about}: {len(keys)} {what} differ, {_mean(then)} -> {_mean(now)}: {_some(keys)}"


def _mean(column: Column) -> str:
    known = column[~np.isnan(column)]
    return f"mean {known.mean():.4f} of {len(known)}" if len(known) else "nothing decided"


def _some(keys: list[str]) -> str:
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(keys[:_NAMED]) + more
