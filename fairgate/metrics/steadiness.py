"""Steadiness: whether a pair gets one verdict over repeats, and how mixed its verdicts are.

*Stability* is the share of pairs whose verdict is the same in all repeats. *Entropy* is the mean
over pairs of `H = -sum p log2 p` of their verdicts, in bits: 0 where all are the same, 1 where half
of them are violated. The r-th answer to the source is compared with the r-th answer to the
follow-up. A pair with an unreadable answer in any repeat has neither. Source: P4 section 5.
"""

from __future__ import annotations

from fairgate.domain.measurements import Better
from fairgate.metrics.metric import DEMOGRAPHIC, Metric

COLUMNS = ("stability", "entropy")
"""A suite has them where its policy asks more than once (`repeats`)."""

STABILITY = Metric(
    id="stability", title="pairs with the same verdict in all repeats", column="stability",
    arms=DEMOGRAPHIC, reference="P4 section 5; SPEC 6", better=Better.HIGHER, violations=False,
    claim="All repeats give one verdict for {} of pairs", counted="pairs",
)  # fmt: skip
ENTROPY = Metric(
    id="entropy", title="entropy of a pair's verdicts over repeats, bits", column="entropy",
    arms=DEMOGRAPHIC, reference="P4 section 5; SPEC 6", is_rate=False, violations=False,
)  # fmt: skip
METRICS = (STABILITY, ENTROPY)
