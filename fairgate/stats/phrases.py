"""Which phrases of an identity carry its difference: all of them, or some words alone.

Every phrase f has a mean d_f beyond control prompts, with variance v_f = s^2 / n_f + S^2: sampling
over its n_f values, and what any wording does by itself. One effect on the phrases of a set A, and
none on the others, explains G(A) = (sum d_f / v_f)^2 / sum 1 / v_f of twice the log-likelihood. The
difference is that of all phrases unless a smaller set explains more by a likelihood ratio of 20
(R. M. Royall, Statistical Evidence, 1997, section 1.6: fairly strong evidence is 8, strong 32).
"""

from __future__ import annotations

import math

import numpy as np

from fairgate.stats.observations import Floats

_CLEARLY = 2 * math.log(20)
_ZERO = 1e-18


def carrying(values: Floats, *, apart: float, effect: float) -> tuple[int, ...]:
    """Return which phrases carry an effect: all that are asked, or the fewer that explain it.

    `values` [sources, phrases] are beyond each source's control prompts, NaN where a source was
    asked in another phrase; every phrase has some. `apart` is the variance of control prompts
    beyond sampling. Of `effect` the sign counts, and its size where a part of what is seen is
    explained by others already: means are shifted to it.
    """
    counts, means = (~np.isnan(values)).sum(axis=0), np.nanmean(values, axis=0)
    beyond = (means - np.nanmean(values) + effect) * math.copysign(1.0, effect)
    variances = np.maximum(_sampling(values, means) / counts + apart, _ZERO)
    order = np.argsort(-beyond, kind="stable")
    gains = _gains(beyond[order], variances[order])
    best = int(np.argmax(gains))
    is_clear = gains[best] - gains[-1] > _CLEARLY
    return tuple(sorted(order[: best + 1].tolist() if is_clear else range(len(means))))


def _sampling(values: Floats, means: Floats) -> float:
    """Return the variance of values about the mean of their phrase."""
    freedom = int((~np.isnan(values)).sum()) - len(means)
    return float(np.nansum(np.square(values - means))) / max(freedom, 1)


def _gains(beyond: Floats, variances: Floats) -> Floats:
    """Return [phrases] what an effect on the first one, the first two, … explains."""
    precise = np.cumsum(1 / variances)
    explained = np.cumsum(beyond / variances)
    return np.where(explained > 0, np.square(explained), 0.0) / precise
