import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from fakes.statistics import bootstrap
from scipy import stats

from fairgate.stats.bootstrap import BootstrapSettings, bca_levels, bootstrap_many, resamples
from fairgate.stats.interval import Interval, NoInterval
from fairgate.stats.observations import ClusterTotals, cluster_totals, estimate

SETTINGS = BootstrapSettings()


def totals_of(sums, counts) -> ClusterTotals:
    sums = np.asarray(sums, dtype=np.float64)[:, None]
    counts = np.broadcast_to(np.asarray(counts, dtype=np.float64), (len(sums),))[:, None]
    some, not_all = int((sums > 0).sum()), int((sums < counts).sum())
    return ClusterTotals(
        sums=sums, counts=counts, weights=np.ones(1), informative=min(some, not_all)
    )


def drawn(seed: int, clusters: int = 30) -> ClusterTotals:
    rng = np.random.default_rng(seed)
    return totals_of(rng.binomial(21, rng.beta(0.4, 0.8, clusters)), 21)


def test_same_seed_same_interval_and_another_seed_another_one():
    assert bootstrap(drawn(1), SETTINGS, seed=3) == bootstrap(drawn(1), SETTINGS, seed=3)
    assert bootstrap(drawn(1), SETTINGS, seed=3) != bootstrap(drawn(1), SETTINGS, seed=4)


def test_a_slice_gets_the_same_interval_alone_in_any_batch_and_order_of_its_clusters():
    slices = [drawn(seed, clusters) for seed in range(6) for clusters in (25, 40)]
    alone = [bootstrap(item, SETTINGS, seed=5) for item in slices]
    assert bootstrap_many(slices, SETTINGS, seed=5) == alone
    assert bootstrap_many(slices[::-1], SETTINGS, seed=5) == alone[::-1]
    turned = [replace(one, sums=one.sums[::-1], counts=one.counts[::-1]) for one in slices]
    assert bootstrap_many(turned, SETTINGS, seed=5) == alone


def test_bca_agrees_with_scipy():
    item = drawn(11)
    found = bootstrap(item, BootstrapSettings(n_resamples=20_000, expanded=False), seed=1)
    reference = stats.bootstrap(
        (item.sums[:, 0] / 21,), np.mean, n_resamples=20_000, method="BCa", rng=1
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(reference, abs=0.006)


def test_expanded_levels_are_wider():
    narrow = bootstrap(drawn(4, 20), BootstrapSettings(expanded=False), seed=1)
    wide = bootstrap(drawn(4, 20), SETTINGS, seed=1)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_two_arms_are_resampled_together(build):
    rng = np.random.default_rng(0)
    both = (rng.random((40, 1)) < 0.5).astype(float)
    obs = build(np.hstack([both, both]), arms=[0, 1], weights=(1.0, -1.0))
    # Equal arms in every source: their difference never varies.
    found = bootstrap(cluster_totals(obs), SETTINGS, seed=1)
    assert found == NoInterval(reason="no variation between sources")


def test_a_rare_arm_that_some_resamples_lack_still_gives_an_interval(build):
    rng = np.random.default_rng(1)
    rows = [[float(rng.random() < 0.5), math.nan] for _ in range(30)]
    rows[0][1], rows[1][1], rows[2][1] = 1.0, 0.0, 1.0
    obs = build(rows, arms=[0, 1], weights=(1.0, -1.0))
    found = bootstrap(cluster_totals(obs), SETTINGS, seed=1)
    assert found.low <= estimate(obs) <= found.high


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        ([0] * 50, "too few clusters"), ([21] * 50, "too few clusters"),
        ([21] * 9 + [0] * 41, "too few clusters"), ([0] * 9 + [21] * 41, "too few clusters"),
        ([5], "too few clusters"), ([10] * 30, "no variation between sources"),
    ],
)  # fmt: skip
def test_where_there_is_no_interval_the_reason_is_said(sums, reason):
    assert bootstrap(totals_of(sums, 21), SETTINGS, seed=1) == NoInterval(reason=reason)


def test_where_nothing_is_decided_that_is_said(build):
    totals = cluster_totals(build([[math.nan]]))
    assert bootstrap(totals, SETTINGS, seed=1) == NoInterval(reason="nothing decided")


def test_ten_clusters_with_a_violation_are_enough():
    assert isinstance(bootstrap(totals_of([21] * 10 + [0] * 40, 21), SETTINGS, seed=1), Interval)


def test_levels_past_the_pole_run_to_the_end():
    assert bca_levels(bias=0, acceleration=0.6, z=2.0)[1] == 1.0
    assert bca_levels(bias=0, acceleration=-0.6, z=2.0)[0] == 0.0


def test_many_clusters_need_no_more_room_than_few():
    """A gate of a million pairs has tens of thousands of clusters; resamples come in blocks."""

    def peak(clusters: int) -> int:
        tracemalloc.start()
        try:
            for _ in resamples(clusters, 200, np.random.default_rng(1)):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(40_000) < 1.5 * peak(10_000) < 60 << 20


def test_blocks_of_resamples_are_one_stream(monkeypatch):
    whole = np.concatenate(list(resamples(700, 300, np.random.default_rng(2))))
    monkeypatch.setattr("fairgate.stats.bootstrap._CELLS_AT_A_TIME", 5_000)
    blocks = list(resamples(700, 300, np.random.default_rng(2)))
    assert np.array_equal(np.concatenate(blocks), whole)
