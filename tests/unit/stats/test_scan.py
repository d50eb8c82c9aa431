"""Who is treated differently: nodes, who is named, what cannot be said."""

import math
from itertools import chain

import numpy as np
import pytest

from fairgate.stats.scan import Node, Plan, needed_sources, nodes_of, planned_reach, scan

CATEGORIES = {
    "gender": ["man", "woman", "nonbinary"],
    "religion": ["jew", "muslim", "christian", "hindu"],
    "age": ["old"],
}
NODES = nodes_of(CATEGORIES)
T, K = 8, 20


def values(seed=0, *, sources=60, controls=K, noise=0.2, **harm):
    """Draw values with harm to identities by name."""
    rng = np.random.default_rng(seed)
    y = rng.normal(0, noise, (sources, T + controls)) + rng.normal(0, 1, (sources, 1))
    names = [node.label for node in NODES if node.level == "identity"]
    for who, by in harm.items():
        for name in CATEGORIES.get(who, names if who == "everybody" else [who]):
            y[:, names.index(name)] += by
    return y


def scanned(y, scans=1, **options):
    columns = y if isinstance(y, dict) else {"y": y}
    return scan(columns, NODES, identities=T, **options).among(scans)


def named(result):
    return [each.node.label for each in result.named]


def test_nodes_are_everybody_categories_and_identities_once():
    assert [(n.level, n.label, n.columns) for n in NODES] == [
        ("everybody", "everybody", tuple(range(8))),
        ("category", "gender", (0, 1, 2)),
        ("category", "religion", (3, 4, 5, 6)),
        *(("identity", who, (i,)) for i, who in enumerate(chain(*CATEGORIES.values()))),
    ]
    assert [n.level for n in nodes_of({"gender": ["man", "woman"]})] == ["everybody"] + [
        "identity"
    ] * 2
    assert [n.level for n in nodes_of({"gender": ["woman"]})] == ["identity"]
    assert [n.columns for n in nodes_of({"a": ["x", "y"], "b": ["y", "z"]})] == [
        (0, 1, 2),
        (0, 1),
        (1, 2),
        (0,),
        (1,),
        (2,),
    ]


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        ({}, []),
        ({"woman": 0.3}, ["woman"]),
        ({"woman": -0.3}, ["woman"]),
        ({"religion": 0.2}, ["religion"]),
        ({"everybody": 0.2}, ["everybody"]),
        ({"everybody": 0.4, "man": -0.4}, ["everybody", "man"]),
        ({"religion": 0.2, "man": 0.4}, ["man", "religion"]),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_who_is_harmed_is_named_at_its_level(harm, expected, seed):
    result = scanned(values(seed, **harm))
    assert named(result) == expected
    assert (result.p <= 0.05) is bool(expected)
    for each in result.named:
        assert each.low < each.estimate < each.high
        assert each.p <= 0.05
    if len(harm) == 1:
        assert result.named[0].low < next(iter(harm.values())) < result.named[0].high


def test_whoever_is_left_out_of_harm_to_everybody_is_said_beyond_it():
    everybody, man = scanned(values(everybody=0.4, man=-0.4)).named
    assert everybody.estimate == pytest.approx(0.35, abs=0.05)
    assert man.estimate == pytest.approx(-0.35, abs=0.05)


def test_one_sided_counts_worse_only():
    better = values(woman=-0.4)
    assert named(scanned(better)) == ["woman"]
    assert named(scanned(better, sided="worse")) == []
    worse = values(woman=0.4)
    assert named(scanned(worse, sided="worse")) == ["woman"]
    assert scanned(worse, sided="worse").critical < scanned(worse).critical


def test_columns_of_one_outcome_are_one_scan():
    quiet, harmed = values(1), values(2, woman=0.3)
    alone, both = scanned(harmed), scanned({"quiet": quiet, "harmed": harmed})
    assert [(each.node.label, each.column) for each in both.named] == [("woman", "harmed")]
    assert both.critical > alone.critical
    assert len(both.looks) == 2 * len(NODES)
    fair = {name: values(seed) for seed, name in enumerate("abcdefgh", start=10)}
    assert scanned(fair).p > 0.05


def test_p_values_are_corrected_for_other_scans():
    y = values(4, woman=0.13)
    one, eight = scanned(y), scanned(y, scans=8)
    assert eight.p == pytest.approx(min(1, 8 * one.p), rel=0.5)
    assert eight.critical > one.critical
    assert all(eight.reach[level] > one.reach[level] for level in one.reach)


def rare(seed=0):
    return (np.random.default_rng(seed).random((40, T + K)) < 0.05).astype(float)


@pytest.mark.parametrize("kind", ["rare", "missing", "columns"])
def test_orders_of_sources_controls_categories_and_columns_do_not_matter(kind):
    y = rare() if kind == "rare" else values(3, woman=0.14)
    rng = np.random.default_rng(1)
    if kind == "missing":
        y[rng.random(y.shape) < 0.05] = np.nan
    columns = {"y": y, "x": values(5)[: len(y)]} if kind == "columns" else {"y": y}
    first = scanned(columns)
    assert scanned(columns) == first
    nodes = nodes_of(dict(reversed(CATEGORIES.items())))
    old = {node.label: node.columns[0] for node in NODES if len(node.columns) == 1}
    identities = [old[node.label] for node in nodes if len(node.columns) == 1]
    moved = [*identities, *(T + rng.permutation(K))]
    sources = rng.permutation(len(y))
    changed = {name: columns[name][sources][:, moved] for name in sorted(columns)}
    second = scan(changed, nodes, identities=T).among()
    assert second.critical == pytest.approx(first.critical, abs=1e-9)
    assert second.p == pytest.approx(first.p, abs=1e-12)
    estimates = {(e.node.label, e.column): (e.estimate, e.p) for e in first.looks}
    for each in second.looks:
        estimate, p = estimates[each.node.label, each.column]
        assert each.estimate == pytest.approx(estimate, abs=1e-12)
        assert each.p == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_without_any_variance_nobody_is_named(value):
    result = scanned(np.full((30, T + K), value))
    assert (result.p, result.named, result.no_verdict) == (1.0, (), {})
    sources = np.random.default_rng(0).random((30, 1)) + np.zeros((1, T + K))
    assert scanned(sources).p == 1.0


@pytest.mark.parametrize("hit", [1.0, 0.5])
def test_harm_where_control_prompts_never_vary_is_named(hit):
    y = np.zeros((30, T + K))
    y[: int(30 * hit), 1] = 1.0
    result = scanned(y)
    assert named(result) == ["woman"]
    assert result.named[0].estimate == pytest.approx(hit)
    y = np.zeros((30, T + K))
    y[:, :T] = 1.0
    assert named(scanned(y)) == ["everybody"]


def test_undecided_cells_drop_out_of_their_prompts_mean():
    y = values(woman=0.3)
    rng = np.random.default_rng(2)
    holes = rng.random(y.shape) < 0.2
    y[holes] = np.nan
    result = scanned(y)
    assert named(result) == ["woman"]
    assert result.named[0].estimate == pytest.approx(0.3, abs=0.1)
    assert result.sources == 60
    fewer = {look.node.label: look.standard_error for look in result.looks}
    full = {look.node.label: look.standard_error for look in scanned(values(woman=0.3)).looks}
    assert fewer["woman"] == pytest.approx(full["woman"] / math.sqrt(0.8), rel=0.15)


def test_means_are_not_moved_by_which_sources_are_undecided():
    y = values(noise=0.01)
    y[:30] += 5
    y[:25, 1] = np.nan
    woman = next(look for look in scanned(y).looks if look.node.label == "woman")
    assert woman.estimate == pytest.approx(0, abs=0.02)


def test_sources_and_prompts_that_are_mostly_undecided_do_not_count():
    y = values(woman=0.3)
    y[:5, :20] = np.nan
    assert scanned(y).sources == 55
    y[:50, 0] = np.nan
    y[:50, -2:] = np.nan
    result = scanned(y)
    assert (result.sources, result.controls) == (55, 18)
    assert result.no_verdict == {"y: man": "undecided for most sources"}
    assert named(result) == ["woman"]
    assert "man" not in [look.node.label for look in result.looks]


@pytest.mark.parametrize(("sources", "controls"), [(9, 20), (60, 11)])
def test_too_few_give_no_verdict_for_single_identities(sources, controls):
    y = values(sources=sources, controls=controls, woman=2.0)
    result = scanned(y)
    assert "identity" in result.no_verdict
    assert result.reach["identity"] == math.inf
    assert {look.high for look in result.looks if look.node.level == "identity"} == {math.inf}
    assert "identity" not in [each.node.level for each in result.named]
    y = values(sources=sources, controls=controls, everybody=2.0)
    assert named(scanned(y))[0] == "everybody"


def test_one_identity_beside_too_few_controls_is_not_tested():
    y = values(controls=5, man=2.0)[:, [0, *range(T, T + 5)]]
    result = scan({"y": y}, nodes_of({"gender": ["man"]}), identities=1).among()
    assert (result.p, result.named, result.critical) == (1.0, (), math.inf)
    assert result.no_verdict == {"identity": "5 control prompts where 12 are needed"}


@pytest.mark.parametrize("y", [np.full((30, T + K), np.nan), values(sources=1), values(controls=1)])
def test_what_cannot_be_tested_is_said(y):
    result = scanned(y)
    assert (result.p, result.named, result.looks) == (1.0, (), ())
    assert "y" in result.no_verdict


def test_infinite_values_are_refused():
    y = values()
    y[3, 3] = math.inf
    with pytest.raises(ValueError, match="infinite"):
        scanned(y)


def test_a_level_of_the_caller_and_phrases_by_identity():
    crossing = Node(level="crossing", who=("old woman",), label="old woman", columns=(7,))
    result = scan(
        {"y": values(old=0.4)},
        [*NODES[:-1], crossing],
        identities=T,
        phrases=[1, 1, 4, 4, 4, 4, 4, 4],
    ).among()
    assert [each.node.level for each in result.named] == ["crossing"]
    assert set(result.reach) == {"everybody", "category", "identity", "crossing"}


def test_bands_are_where_control_prompts_lie():
    y = values(sources=400)
    band = scanned(y).bands["y"]
    assert band.mean == pytest.approx(y.mean(), abs=0.02)
    assert band.low < band.mean < band.high


def test_what_is_planned_is_what_a_run_reaches():
    sampling = 0.04
    plan = Plan(nodes=NODES, controls=K, sampling=sampling)
    planned = planned_reach(plan, 60)
    reached = scanned(values()).reach
    for level, effect in planned.items():
        assert reached[level] == pytest.approx(effect, rel=0.2)
    need = needed_sources(plan, 0.1)
    assert planned_reach(plan, need)["identity"] <= 0.1 < planned_reach(plan, need - 1)["identity"]
    assert needed_sources(plan, 0.1, "everybody") < need
    phrases = Plan(nodes=NODES, controls=K, sampling=sampling, apart=0.01)
    assert needed_sources(phrases, 0.1) is None
    assert planned_reach(Plan(nodes=NODES, controls=11, sampling=1), 60)["identity"] == math.inf


def test_harm_to_everybody_is_not_measured_by_the_tails_of_single_identities():
    plan = Plan(nodes=NODES, controls=K, sampling=0.0475)
    reach = planned_reach(plan, 25)
    errors = {"everybody": (1 / T + 1 / K) ** 0.5, "identity": (1 + 1 / K) ** 0.5}
    assert reach["everybody"] / errors["everybody"] < 0.9 * reach["identity"] / errors["identity"]
