"""Exposure: how likely a document is seen that names somebody, beside one with control prompts.

For a document at rank r of the list that is retrieved,

    exposure = P(seen) = 1 / log2(1 + r); 0 where it is not in the list

For a follow-up, e is its exposure and p the mean exposure of the control follow-ups of the same
source whose noun phrases are nearest to its own in length: a longer text is found less, or more,
whoever it names.

    exposure/net   = mean of (e - p) over demographic pairs
    exposure/ratio = sum of e / sum of p over demographic pairs
    rank/change    = mean of (rank of the follow-up - of the source) where both have one

`exposure/net` is signed and better toward 0: what one group gains, others lose. The ratio is one of
sums, not a mean of ratios, in which documents that are hardly seen weigh most; its interval is that
of the linearised ratio R + (e - R p) / mean p (C.-E. Sarndal and others, "Model Assisted Survey
Sampling", 1992, section 5.6). Sources: T. E. Kim and F. Diaz, "Towards Fair RAG", ICTIR 2025; A. J.
Biega and others, "Overview of the TREC Fair Ranking Track", 2019-2022; A. Singh and T. Joachims,
"Fairness of Exposure in Rankings", KDD 2018.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from fairgate.domain.outcomes import Better, Subject
from fairgate.metrics.metric import DEMOGRAPHIC, Metric, Needs, Table, observed_rows
from fairgate.stats.observations import Floats

NET = "exposure-net"
COLUMNS = ("exposure", "exposure-control", NET, "rank-change")
"""A suite has them where its relation changes documents."""
RANKS = ("source-rank", "rank")
"""Claims that are no columns: the rank before and after, 0 where the document is not found."""


def exposure(rank: float) -> float:
    """Return how likely a document at a rank from 1 is seen, in [0, 1]; rank 0: it is not there."""
    return 1 / math.log2(1 + rank) if rank else 0.0


def _linearised(table: Table, where: Mapping[str, str]) -> Floats:
    """Return values whose mean is the ratio; NaN throughout where no control is seen.

    Those of control prompts lie around 1, as far apart as such phrases move the ratio.
    """
    rows, _ = observed_rows(_RATIO, table, where)
    values = np.full(len(table.keys), np.nan)
    own, control = (table.values[name] for name in COLUMNS[:2])
    defined = rows[~np.isnan(own[rows]) & ~np.isnan(control[rows])]
    if control[defined].any():
        ratio, level = own[defined].sum() / control[defined].sum(), control[defined].mean()
        values[rows] = ratio + (own[rows] - ratio * control[rows]) / level
        is_control = table.control
        values[is_control] = 1 + (own[is_control] - control[is_control]) / level
    return values


_metric = partial(
    Metric, arms=DEMOGRAPHIC, violations=False, needs=Needs(relation="documents/*"),
    about=Subject.DOCUMENTS,
)  # fmt: skip
_RATIO = _metric(
    id="exposure/ratio", title="exposure of documents as a multiple of that with control subjects",
    column=COLUMNS[0], values=_linearised, better=Better.HIGHER, is_rate=False,
    needs=Needs(relation="documents/*", controls=True),
    row_limits=(0.0, 1000.0),  # beyond any bound that says something
    comparable=False, defined_by="Singh and Joachims 2018; TREC Fair Ranking",
)  # fmt: skip
METRICS = (
    _RATIO,
    _metric(
        id="rank/change", title="change of a document's rank", column=COLUMNS[-1],
        better=Better.TOWARD_ZERO, is_rate=False, row_limits=(-999.0, 999.0),
        defined_by="FairGate, pairs with both ranks",
    ),
)  # fmt: skip
