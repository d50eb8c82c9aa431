"""One-step forms of what the gate does in several, for comparing it with the literature."""

from fairgate.stats.bootstrap import bootstrap_many
from fairgate.stats.observations import pair_by_key
from fairgate.stats.regression import prepare_regression


def bootstrap(totals, settings, *, seed):
    """Return the interval of one slice."""
    return bootstrap_many([totals], settings, seed=seed)[0]


def regression_evidence(now, base, *, settings, level, rng):
    """Return the evidence of one comparison at a level known beforehand."""
    return prepare_regression(pair_by_key(now, base), settings, rng).at_level(level)
