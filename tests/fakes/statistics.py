"""One-step forms of what the gate does in several, for comparing it with the literature."""

from fairgate.stats.observations import pair_by_key
from fairgate.stats.regression import prepare_regression


def regression_evidence(now, base, *, worse, level, rng):
    """Return the evidence of one comparison at a level known beforehand."""
    return prepare_regression(pair_by_key(now, base), worse, rng).at_level(level)
