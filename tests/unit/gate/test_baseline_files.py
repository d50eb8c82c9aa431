"""Baselines: plain, whole, read back exactly; other formats and damage are refused.

Nothing in one can be edited unseen: the file is refused, or a reviewer is told.
"""

import copy
import json
import math
import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, reduce
from operator import getitem

import numpy as np
import pytest
from fakes.planted import Bench, Plant, policy_of
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import BaselineError
from fairgate.domain.outcomes import Measurement, Provenance
from fairgate.gate.baseline import Baseline, BaselineSuite, baseline_differences
from fairgate.gate.baseline_files import _integrity, dump_baseline, load_baseline
from fairgate.gate.measure import quartiles
from fairgate.gate.suite_cells import suite_from
from fairgate.metrics.metric import Table

PROVENANCE = Provenance(under_test={}, environment={}, fairgate="0", policy_path="p")


def table_of(rows, columns, dimensions=None, **more):
    """Return a table of `key: cluster`, with columns and dimensions as given."""
    clusters = list(dict.fromkeys(rows.values()))
    return Table(
        suite="s",
        keys=list(rows),
        clusters=np.asarray([clusters.index(name) for name in rows.values()], dtype=np.int64),
        cluster_names=clusters,
        control=np.zeros(len(rows), dtype=bool),
        dimensions=dimensions or {},
        values={name: np.asarray(column, dtype=np.float64) for name, column in columns.items()},
        **more,
    )


def baseline_of(table, contents):
    suite = BaselineSuite(must_match={}, contents=contents, table=table, quartiles=quartiles(table))
    return Baseline(
        policy="p", reason="r", date="d", suites={"s": suite},
        measurements=[Measurement(metric="asr/generation", suite="s", value=0.5)],
        metric_versions={}, provenance=PROVENANCE,
    )  # fmt: skip


def cases(baseline):
    """Return everything that is known of each case, by suite and key; NaN as None."""
    found = {}
    for name, suite in baseline.suites.items():
        table = suite.table
        for row, key in enumerate(table.keys):
            columns = {c: float(column[row]) for c, column in table.values.items()}
            found[name, key] = (
                suite.contents[key],
                table.cluster_names[table.clusters[row]],
                bool(table.control[row]),
                {name: levels[row] for name, levels in table.dimensions.items()},
                {c: None if math.isnan(value) else value for c, value in columns.items()},
            )
    return found


def planted(sources=40, variants=30):
    """Return a baseline with every kind of column, each source asked about most variants."""
    rng = random.Random(4)
    rows = {
        f"s{s}#race/t{v}": f"s{s}" for s in range(sources) for v in range(variants) if (s + v) % 11
    }
    drawn = {
        "controlled": lambda: rng.choice([0.0, 0.0, 1.0, math.nan]),
        "bias": lambda: rng.choice([0.0, 1.0, -1.0]),
        "overlap": lambda: rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]),
        "retrieval": lambda: 0.0,
        "rrs": lambda: round(2 * rng.random(), 6),
    }
    columns = {name: [value() for _ in rows] for name, value in drawn.items()}
    terms = {"term": [key.rpartition("/")[2] for key in rows]}
    contents = {key: f"{rng.getrandbits(40):010x}" for key in rows}
    return baseline_of(table_of(rows, columns, terms), contents)


PLANTED = planted()
TEXT = dump_baseline(PLANTED)


def body_of(text):
    body = json.loads(text)
    del body["integrity"]
    return body


def sealed(body):
    return json.dumps({**body, "integrity": _integrity(body)})


def altered(change, text=TEXT):
    """Return a baseline's text after `change`, with the hash of somebody who means it."""
    body = body_of(text)
    change(body["suites"]["s"])
    return sealed(body)


def test_a_baseline_with_every_column_takes_less_than_35_bytes_a_case():
    size = sum(len(line) + 1 for line in TEXT.splitlines() if line.startswith('    "s'))
    assert size / len(PLANTED.suites["s"].table.keys) < 35
    lines = [line for line in TEXT.splitlines() if line.startswith('    "s7"')]
    assert len(lines) == 1, "one source is one line of a diff"
    assert '  {"decided": 0, "inconclusive": 0, "metric": "asr/generation", ' in TEXT


def test_it_comes_back_exactly_and_gives_the_same_bytes_again():
    back = load_baseline(TEXT, "b.json")
    assert cases(back) == cases(PLANTED)
    assert back.measurements == PLANTED.measurements
    assert dump_baseline(back) == TEXT


names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6)
numbers = st.one_of(
    st.just(math.nan),
    st.floats(-3, 3),
    st.integers(0, 3_000_000).map(lambda n: n / 1e6),
    st.sampled_from([0.0, 1.0, -1.0, 1 / 3]),
)


@pytest.mark.whole
@given(st.data())
def test_whatever_the_cases_they_come_back(data):
    draw = data.draw
    keys = draw(st.lists(st.tuples(names, names), min_size=0, max_size=90, unique=True))
    rows = {f"{a}#{b}": draw(st.sampled_from([a, "c1", "c2"])) for a, b in keys}
    columns = {
        name: draw(st.lists(numbers, min_size=len(rows), max_size=len(rows)))
        for name in draw(st.lists(st.sampled_from(["rrs", "x", "y#"]), unique=True))
    }
    levels = {"term": [draw(names) for _ in rows], "setting": [key[-1] for key in rows]}
    content = st.from_regex("([0-9a-f]{10})?", fullmatch=True)
    contents = {key: draw(content) for key in rows}
    made = baseline_of(table_of(rows, columns, levels), contents)
    text = dump_baseline(made)
    back = replace(made, suites={"s": suite_from("s", json.loads(text)["suites"]["s"])})
    assert cases(back) == cases(made)
    assert dump_baseline(back) == text


def test_one_verdict_more_changes_one_line():
    table = PLANTED.suites["s"].table
    column = table.values["retrieval"].copy()
    column[table.keys.index("s7#race/t3")] = 1.0
    other = replace(table, values={**table.values, "retrieval": column})
    changed = baseline_of(other, PLANTED.suites["s"].contents)
    pairs = zip(TEXT.splitlines(), dump_baseline(changed).splitlines(), strict=True)
    differing = [old.split(":")[0].strip() for old, new in pairs if old != new]
    assert differing == ['"s7"', '"integrity"']


@pytest.mark.parametrize("found", ["1", "4", "6", "true", "5.0", '"5"', "null", "[5]"])
def test_other_formats_are_refused_with_how_to_make_the_file_again(found):
    text = TEXT.replace('"schema_version": 5', f'"schema_version": {found}')
    said = "this FairGate reads 5; accept a new run with `fairgate"
    with pytest.raises(BaselineError, match=said):
        load_baseline(text, "b.json")


class TestDamage:
    @pytest.mark.parametrize("seed", range(150))
    def test_a_flipped_bit_is_refused_or_changes_nothing(self, seed):
        rng = random.Random(seed)
        raw = bytearray(TEXT.encode())
        place = rng.randrange(len(raw))
        raw[place] ^= 1 << rng.randrange(8)
        try:
            back = load_baseline(raw.decode(), "b.json")
        except (BaselineError, UnicodeDecodeError):
            return
        assert TEXT[place].isspace(), "only white space may differ"
        assert cases(back) == cases(PLANTED)

    @pytest.mark.parametrize("seed", range(20))
    def test_a_part_of_the_file_is_refused(self, seed):
        with pytest.raises(BaselineError, match=r"b\.json"):
            load_baseline(TEXT[: random.Random(seed).randrange(len(TEXT) - 2)], "b.json")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda s: s["asked"].__setitem__(0, [10**15] * 27), "IndexError"),
            (lambda s: s["asked"][0].append(0), "source 's0' has .* contents for .* cases"),
            (lambda s: s["asked"].__setitem__(0, []), "source 's0' has .* contents for 0 cases"),
            (lambda s: s["asked"].__setitem__(0, None), "TypeError"),
            (lambda s: s["sources"]["s7"].__setitem__(0, 99), "IndexError"),
            (lambda s: s["sources"]["s7"].__setitem__(1, ""), "source 's7' has 1 contents"),
            (lambda s: s["sources"]["s7"].__setitem__(1, None), "AttributeError"),
            (lambda s: s["sources"].__setitem__("s7", 1), "TypeError"),
            (lambda s: s["sources"]["s7"].pop(), "shorter"),
            (lambda s: s["sources"]["s7"].append(0), "longer"),
            (lambda s: s["sources"]["s7"].__setitem__(2, ["s7"]), "1 values for"),
            (lambda s: s["sources"]["s7"].__setitem__(3, [1]), "1 values for"),
            (lambda s: s["sources"]["s7"].__setitem__(3, "x"), "could not convert"),
            (lambda s: s["sources"]["s7"].__setitem__(3, {}), "TypeError"),
            (lambda s: s["sources"]["s7"].__setitem__(5, 9), "overlap holds 9"),
            (lambda s: s["variants"].pop(), "IndexError"),
            (lambda s: s["variants"][3].__setitem__(2, [1]), "unhashable"),
            (lambda s: s["variants"][3].__setitem__(2, 1), "term is 1; expected a text"),
            (lambda s: s["variants"][3].pop(), "IndexError"),
            (lambda s: s["variants"].__setitem__(1, s["variants"][0]), "the same key"),
            (lambda s: s["columns"].append("x"), "shorter"),
            (lambda s: s["source_dimensions"].append("condition"), "shorter"),
        ],
    )  # fmt: skip
    def test_wrong_counts_are_refused_with_their_place(self, change, message):
        with pytest.raises(BaselineError, match=message) as raised:
            load_baseline(altered(change), "b.json")
        assert str(raised.value).startswith("b.json: ")
        assert "fairgate baseline accept" in str(raised.value)

    def test_a_list_of_variants_for_many_sources_takes_no_memory(self):
        def change(suite):
            suite["asked"][0] = [0] * 100_000
            suite["sources"] = {f"s{n}": suite["sources"]["s0"] for n in range(1000)}

        text = altered(change)
        tracemalloc.start()
        with pytest.raises(BaselineError):
            load_baseline(text, "b.json")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * len(text)


PLANT = Plant(biased={"A woman": 0.4}, retrieval={"A man": 0.5}, refusing={"A man": 0.2})


@cache
def accepted():
    """A baseline in which every field of the format has something."""
    own = Bench(policy=policy_of(), sources=6, sets=("gender",)).baseline(PLANT)
    kept = [m for m in own.measurements if not m.where or "term" in m.where][::2]
    return replace(
        own,
        measurements=kept[:16],
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
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
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


@pytest.mark.whole
def test_every_leaf_that_is_edited_is_refused_or_listed():
    body = body_of(dump_baseline(accepted()))
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
    body = body_of(dump_baseline(accepted()))
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
