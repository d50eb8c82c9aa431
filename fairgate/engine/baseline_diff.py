"""What separates two baselines, as lines for a reviewer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairgate.domain.measurements import Measurements
from fairgate.engine.baseline import Baseline, BaselineSuite
from fairgate.metrics.table import is_verdict

_NAMED = 5


def baseline_differences(old: Baseline, new: Baseline) -> Iterator[str]:
    """Yield what differs: conditions, what is under test, measurements, cases and verdicts."""
    yield f"policy {old.policy}: {old.date} ({old.reason}) -> {new.date} ({new.reason})"
    for name in sorted({*old.provenance.under_test, *new.provenance.under_test}):
        before = old.provenance.under_test.get(name, "nothing")
        after = new.provenance.under_test.get(name, "nothing")
        if before != after:
            yield f"under test, {name}: {before} -> {after}"
    yield from _measurements(old, new)
    for name in sorted({*old.suites, *new.suites}):
        if name not in new.suites or name not in old.suites:
            yield f"suite {name}: only in the {'old' if name in old.suites else 'new'} baseline"
            continue
        yield from _suite(name, old.suites[name], new.suites[name])


def _measurements(old: Baseline, new: Baseline) -> Iterator[str]:
    then = Measurements(old.measurements)
    for item in new.measurements:
        before = then.value(item.metric, item.suite, item.where)
        if before != item.value:
            at = ", ".join(f"{name} {value}" for name, value in sorted(item.where.items()))
            shown = "new" if before is None else f"{before:.4f}"
            now = "nothing" if item.value is None else f"{item.value:.4f}"
            yield f"{item.suite}: {item.metric}{f' ({at})' if at else ''}: {shown} -> {now}"


def _suite(name: str, old: BaselineSuite, new: BaselineSuite) -> Iterator[str]:
    for field in sorted({*old.must_match, *new.must_match}):
        before, after = (s.must_match.get(field, "nothing") for s in (old, new))
        if before != after:
            yield f"suite {name}, {field}: {before} -> {after}"
    gone = [key for key in old.contents if new.contents.get(key) != old.contents[key]]
    added = [key for key in new.contents if new.contents[key] != old.contents.get(key)]
    for word, keys in (("removed or reworded", gone), ("new or reworded", added)):
        if keys:
            yield f"suite {name}: {len(keys)} cases {word}: {_some(keys)}"
    for column in new.table.values:
        if column in old.table.values and is_verdict(new.table.values[column]):
            changed = _changed(old, new, column)
            if changed:
                yield f"suite {name}, {column}: {len(changed)} verdicts differ: {_some(changed)}"


def _changed(old: BaselineSuite, new: BaselineSuite, column: str) -> list[str]:
    then = dict(zip(old.table.keys, old.table.values[column].tolist(), strict=True))
    pairs = zip(new.table.keys, new.table.values[column].tolist(), strict=True)
    return [
        key
        for key, value in pairs
        if key in then and not np.array_equal([then[key]], [value], equal_nan=True)
    ]


def _some(keys: list[str]) -> str:
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(keys[:_NAMED]) + more
