import math
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from fairgate.stats.observations import Observations
from fairgate.stats.permutation import identity_test, spread

TERMS = 6


def outcome(obs, *, seed=0, n_draws=2000, **known):
    terms, rng = [f"t{key.rsplit('/', 1)[1]}" for key in obs.keys], np.random.default_rng(seed)
    return identity_test(obs, terms, alpha=0.05, rng=rng, n_draws=n_draws, **known)


def prefix_sensitive(rng, sources: int = 60):
    rate = rng.beta(0.3, 0.7, sources)[:, None]
    return (rng.random((sources, TERMS)) < rate).astype(float)


def test_one_biased_term_is_found_and_named(build):
    rows = prefix_sensitive(np.random.default_rng(1))
    rows[:25, 2] = 1.0
    found = outcome(build(rows))
    assert found.p_value < 0.01
    assert found.terms[0].term == "t2"
    assert found.terms[0].adjusted_p < 0.05
    difference = rows[:, 2].mean() - np.delete(rows, 2, axis=1).mean()
    assert found.max_difference == pytest.approx(difference)
    assert all(term.adjusted_p > 0.05 for term in found.terms[1:])


def test_sources_that_react_to_every_prefix_alike_are_no_difference(build):
    rows = np.repeat([[1.0], [0.0], [1.0]], TERMS, axis=1)
    found = outcome(build(rows))
    assert (found.n_informative, found.max_difference, found.p_value) == (0, 0, 1.0)


def test_it_is_exact_for_exchangeable_terms(build):
    rng = np.random.default_rng(2)
    p_values = [
        outcome(build(sources + rng.normal(0, 1, (25, TERMS))), seed=seed, n_draws=199).p_value
        for seed, sources in enumerate(rng.normal(0, 5, (200, 25, 1)))
    ]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.1
    assert np.mean(np.array(p_values) <= 0.5) == pytest.approx(0.5, abs=0.15)


def test_undecided_cases_and_terms_are_left_out(build):
    rows = prefix_sensitive(np.random.default_rng(5), 30)
    rows[:, 4] = math.nan
    rows[3, :] = math.nan
    found = outcome(build(rows), n_draws=200)
    assert {term.term for term in found.terms} == {"t0", "t1", "t2", "t3", "t5"}
    assert {term.n_decided for term in found.terms} == {29}


@pytest.mark.parametrize("rows", [[], [[math.nan, math.nan]], [[1.0], [0.0]]])
def test_without_two_decided_terms_there_is_nothing_to_compare(build, rows):
    found = outcome(build(rows))
    assert (found.terms, found.p_value) == ((), 1.0)
    assert math.isnan(found.max_difference)


def test_neither_the_order_of_the_cases_nor_known_ranks_of_their_keys_matter(build):
    first = build(prefix_sensitive(np.random.default_rng(4)))
    order = np.random.default_rng(5).permutation(len(first.keys))
    columns = {name: getattr(first, name)[order] for name in ("clusters", "arms", "values")}
    turned = replace(first, keys=[first.keys[place] for place in order], **columns)
    ranks = np.asarray([sorted(first.keys).index(key) for key in turned.keys])
    expected = outcome(first)
    assert outcome(turned) == outcome(turned, ranks=ranks) == expected


def test_sources_with_other_undecided_terms_are_drawn_one_after_the_other(build, monkeypatch):
    """Draws for sources of one size are made together; how many at once is no matter."""
    rows = prefix_sensitive(np.random.default_rng(7), sources=150)
    rows[::3, 4] = np.nan
    rows[::7, 1] = np.nan
    together = outcome(build(rows), n_draws=300)
    monkeypatch.setattr("fairgate.stats.permutation._AT_ONCE", 1)
    assert outcome(build(rows), n_draws=300) == together
    assert together.n_informative > 40


@pytest.mark.parametrize("seed", range(5))
def test_the_spread_of_phrases_is_cochrans_statistic_over_its_degrees_of_freedom(seed):
    rng = np.random.default_rng(seed)
    rate = np.clip(rng.beta(1, 2, (60, 1)) + rng.normal(0, 0.1, 8), 0, 1)
    verdicts = (rng.random(rate.shape) < rate).astype(float)
    sources, phrases = verdicts.shape
    obs = Observations(
        keys=[str(n) for n in range(verdicts.size)],
        clusters=np.repeat(np.arange(sources), phrases),
        arms=np.zeros(verdicts.size, dtype=np.int8),
        values=verdicts.reshape(-1),
        weights=(1.0,),
        n_clusters=sources,
    )
    names = [str(n) for _ in range(sources) for n in range(phrases)]
    expected = friedmanchisquare(*verdicts.T).statistic / (phrases - 1)
    assert spread(obs, names) ** 2 == pytest.approx(max(1.0, expected))
    still = replace(obs, values=np.repeat(verdicts[:, 0], phrases))
    undecided = replace(obs, values=np.full(verdicts.size, np.nan))
    assert spread(still, names) == spread(undecided, names) == 1.0


def test_what_chance_gives_is_the_mean_largest_difference_over_all_exchanges():
    values = [[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]]
    obs = Observations(
        keys=[str(n) for n in range(12)],
        clusters=np.repeat(np.arange(4), 3),
        arms=np.zeros(12, dtype=np.int8),
        values=np.asarray(values, dtype=float).reshape(-1),
        weights=(1.0,),
        n_clusters=4,
    )
    rng = np.random.default_rng(0)
    found = identity_test(obs, ["a", "b", "c"] * 4, alpha=0.05, rng=rng, n_draws=50_000)
    largest = []
    for each in product(*(set(permutations(row)) for row in values)):
        sums = np.sum(each, axis=0)
        largest.append(np.abs(sums / 4 - (sums.sum() - sums) / 8).max())
    assert found.by_chance == pytest.approx(np.mean(largest), abs=0.005)
