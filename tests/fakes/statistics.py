"""One-step forms of what the gate does in several, for comparing it with the literature."""

import math
from statistics import NormalDist

from fairgate.stats.bootstrap import bootstrap_many
from fairgate.stats.interval import t_quantile
from fairgate.stats.observations import pair_by_key
from fairgate.stats.regression import fewest_sources, prepare_regression

_NORMAL = NormalDist()


def bootstrap(totals, settings, *, seed):
    """Return the interval of one slice."""
    return bootstrap_many([totals], settings, seed=seed)[0]


def power_of(effect, sd, n_sources, design):
    """Return the approximate probability that the rule fails when the true change is `effect`."""
    if n_sources < fewest_sources(design.level):
        return 0.0
    error = sd / math.sqrt(n_sources)
    reach = max(t_quantile(1 - design.level, n_sources - 1) * error, design.margin)
    if not error:
        return 1.0 if effect > reach else 0.0
    return _NORMAL.cdf((effect - reach) / error)


def regression_evidence(now, base, *, settings, level, rng):
    """Return the evidence of one comparison at a level known beforehand."""
    return prepare_regression(pair_by_key(now, base), settings, rng).at_level(level)
