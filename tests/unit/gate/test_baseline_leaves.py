"""Nothing in a baseline can be edited unseen: the file is refused, or a reviewer is told."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.errors import BaselineError
from fairgate.domain.outcomes import Provenance
from fairgate.gate.baseline import AcceptedRun, KnownSd, baseline_differences
from fairgate.gate.baseline_files import _integrity, dump_baseline, load_baseline

PLANT = Plant(biased={"A woman": 0.4}, retrieval={"A man": 0.5}, refusing={"A man": 0.2})


def accepted():
    """A baseline in which every field of the format has something."""
    own = Bench(policy=policy_of(), sources=6, sets=("gender",)).baseline(PLANT)
    kept = [m for m in own.measurements if not m.where or "term" in m.where][::2]
    identity = [m for m in own.measurements if m.metric.startswith("identity/")]
    sd = KnownSd(metric="asr/generation", suite="s", where={"term": "woman"}, sd=0.1)
    return replace(
        own,
        measurements=[*kept[:16], *identity[:2]],
        sds=[sd, replace(sd, where={})],
        history=[AcceptedRun(date="d", commit="c", measurements=[replace(kept[0], decided=0)])],
        provenance=Provenance(
            under_test={"model": "m"}, environment={"cpu": "c"}, fairgate="1", policy_path="p",
            commit="abc",
        ),
    )  # fmt: skip


def leaves(value, path=()) -> Iterator[tuple]:
    """Yield the path of everything that holds nothing further."""
    if not isinstance(value, dict | list) or not value:
        yield path
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in inside:
        yield from leaves(inner, (*path, name))


def others(value):
    """Yield other values in the place of one."""
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 1, value / 2 + 0.01, -value)
        case str() if len(value) > 20 and value.isascii() and " " not in value:
            yield from (f"{'B' if value[0] == 'A' else 'A'}{value[1:]}", value[:-4])
        case str():
            yield from (f"{value}x", "")
        case None:
            yield from (0.5, "x", [0.1, 0.2])
        case _:
            yield from ({"x": 1}, [0.5])


def edits(body):
    """Yield what was edited, and the body with it: a leaf is another, is gone, has another name."""
    for path in leaves(body):
        for value in (*others(at(body, path)), None, "renamed"):
            edited = copy.deepcopy(body)
            inside = at(edited, path[:-1])
            if value == "renamed" and isinstance(path[-1], str):
                inside[f"{path[-1]}x"] = inside.pop(path[-1])
            elif value is None:
                del inside[path[-1]]
            elif value != "renamed":
                inside[path[-1]] = value
            if edited != body:
                yield (*path, value), edited


def at(body, path):
    return reduce(getitem, path, body)


def sealed(body):
    return json.dumps({**body, "integrity": _integrity(body)})


@pytest.mark.whole
def test_every_leaf_that_is_edited_is_refused_or_listed():
    before = accepted()
    body = json.loads(dump_baseline(before))
    del body["integrity"]
    loaded = load_baseline(sealed(body), "b.json")
    unchanged = list(baseline_differences(loaded, loaded))
    refused, unseen = 0, []
    for tried, (path, edited) in enumerate(edits(body), 1):  # noqa: B007 it is how many there were
        try:
            after = load_baseline(sealed(edited), "b.json")
        except BaselineError:
            refused += 1
            continue
        if dump_baseline(after) == dump_baseline(loaded):
            continue  # another way to write the same
        if list(baseline_differences(loaded, after)) == unchanged:
            unseen.append(path)
    assert unseen == []
    assert refused > 0.4 * tried
    assert tried > 1000


@pytest.mark.parametrize("column", ["mean-distance", "rrs", "overlap", "generation"])
def test_raised_scores_are_listed_before_the_measurements(column):
    before = accepted()
    suite = before.suites["s"]
    values = {**suite.table.values, column: suite.table.values[column] + 0.9}
    table = replace(suite.table, values=values)
    after = replace(before, suites={"s": replace(suite, table=table)})
    first = list(baseline_differences(before, after))[1]
    assert first.startswith(f"suite s, {column}: ")
    assert "values differ, mean" in first
    assert not np.isnan(values[column]).all()


@pytest.mark.parametrize("field", ["value", "decided", "inconclusive", "violated"])
def test_a_measurement_that_its_rows_do_not_give_is_refused(field):
    body = json.loads(dump_baseline(accepted()))
    del body["integrity"]
    for place, row in enumerate(body["measurements"]):
        is_sampled = row["metric"].startswith("attribution/")  # its rows are not kept
        if field in row and not is_sampled:
            edited = copy.deepcopy(body)
            edited["measurements"][place][field] += 1
            with pytest.raises(BaselineError, match=rf"measurements\[\d+\].{field} is .* cases"):
                load_baseline(sealed(edited), "b.json")


def test_quartiles_that_the_rows_do_not_give_are_refused():
    before = accepted()
    suite = replace(before.suites["s"], quartiles=(0.0, 3.0))
    with pytest.raises(BaselineError, match="quartiles"):
        load_baseline(dump_baseline(replace(before, suites={"s": suite})), "b.json")
