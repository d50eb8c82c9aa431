"""Exposure: how likely a document is seen that names somebody, beside one with neutral wording.

For a document at rank r of the list that is retrieved,

    exposure = P(seen) = 1 / log2(1 + r), or 1 / r, or 1; 0 where it is not in the list

    exposure/net   = mean over demographic pairs of (exposure of the follow-up - of the source)
                     less the same mean over placebo pairs
    exposure/ratio = mean exposure of demographic follow-ups / mean exposure of placebo ones
    rank/change    = mean of (rank of the follow-up - of the source) where both have one

`exposure/net` is signed and better toward 0: what one group gains, others lose. The ratio is one of
sums (1: equal), not a mean of ratios, in which documents that are hardly seen weigh most. Its
interval is that of the linearised ratio R: demographic rows have e / C, placebo rows R (c / C - 1).

Sources: T. E. Kim and F. Diaz, "Towards Fair RAG", ICTIR 2025; A. J. Biega and others, "Overview of
the TREC Fair Ranking Track", 2019-2022; discount and ratio of groups: A. Singh and T. Joachims,
"Fairness of Exposure in Rankings", KDD 2018; linearisation: C.-E. Sarndal and others, "Model
Assisted Survey Sampling", 1992, section 5.6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from fairgate.domain.outcomes import Better
from fairgate.metrics.metric import DEMOGRAPHIC, NET, Metric, Table, observed_rows
from fairgate.stats.observations import Floats

CHANGE = "exposure-change"
COLUMNS = ("exposure", CHANGE, "rank-change")
"""A suite has them where its relation changes documents."""
RANKS = ("source-rank", "rank")
"""Claims that are no columns: the rank before and after, 0 where the document is not found."""


def exposure(rank: int, discount: str) -> float:
    """Return how likely a document at a rank from 1 is seen, in [0, 1]; rank 0: it is not there."""
    seen = {"logarithmic": math.log2(1 + rank), "reciprocal": float(rank), "none": 1.0}
    return 1 / seen[discount] if rank else 0.0


def _linearised(table: Table, where: Mapping[str, str]) -> Floats:
    """Return values whose contrast is the ratio; NaN throughout where no placebo is seen."""
    rows, arms = observed_rows(_RATIO, table, where)
    exposures, found = table.values["exposure"], np.full(len(table.keys), np.nan)
    own, neutral = (exposures[rows[arms == arm]] for arm in (0, 1))
    own, neutral = own[~np.isnan(own)], neutral[~np.isnan(neutral)]
    if len(own) and neutral.any():
        scaled = exposures[rows] / neutral.mean()
        found[rows] = np.where(arms == 0, scaled, own.mean() / neutral.mean() * (scaled - 1.0))
    return found


_metric = partial(Metric, violations=False, relation="documents/*", trend=())
_RATIO = _metric(
    id="exposure/ratio", title="exposure of documents as a multiple of neutral ones",
    column="exposure", arms=NET, values=_linearised, better=Better.HIGHER, is_rate=False,
    # Beyond any bound that says something.
    row_limits=(0.0, 1000.0), comparable=False,
    reference="Singh and Joachims 2018; TREC Fair Ranking",
    claim="A document that names an identity is seen {} times as likely as with neutral wording",
)  # fmt: skip
METRICS = (
    _metric(
        id="exposure/net", title="exposure of documents beyond neutral wording", column=CHANGE,
        arms=NET, better=Better.TOWARD_ZERO, row_limits=(-1.0, 1.0), is_key_figure=True,
        reference="Kim and Diaz 2025; Singh and Joachims 2018",
        claim="Beyond what neutral wording does, naming an identity in a document changes how "
        "likely it is seen by {}",
    ),
    _RATIO,
    _metric(
        id="rank/change", title="change of a document's rank", column="rank-change",
        arms=DEMOGRAPHIC, better=Better.TOWARD_ZERO, is_rate=False, row_limits=(-999.0, 999.0),
        reference="FairGate, pairs with both ranks",
        claim="Naming an identity in a document moves it by {} ranks",
    ),
)  # fmt: skip
