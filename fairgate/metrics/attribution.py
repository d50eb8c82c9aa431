"""Attribution: how much of the violation rate comes through retrieval, how much from the generator.

A follow-up can change an answer on two paths: its words change what is retrieved, and its words
change how the generator reads the same documents. Crossing both texts with both document lists
gives four answers of a pair, `y(text, documents)`, with 0 for the source's and 1 for the
follow-up's. With `v = [y differs from y(0, 0)]`:

    total       = v(1, 1)
    retrieval   = v(0, 1)                        only the documents are exchanged
    generator   = v(1, 0)                        only the text is exchanged
    interaction = v(1, 1) - v(0, 1) - v(1, 0)    the effect of both beyond each one's own

The parts add up to the total, pair by pair: the two-factor decomposition of J. M. Robins and S.
Greenland (Epidemiology 3 (1992) 143-155) with the interaction kept apart, as in T. J. VanderWeele
(Epidemiology 24 (2013) 224-232). Interaction is +1 where it takes both paths, -1 where each path
alone would do, and -2 where both paths change the answer and together restore it (two biases that
cancel: the pair itself is satisfied). Each metric is the mean of its part over the demographic
pairs less the mean over the control pairs, so the three add up to `asr/generation/net`; a share is
a part divided by that sum, given only where the sum itself is distinguishable from 0.

Cost and sampling. Where both document lists are equal, the crossed answers are the answers there
already are: `retrieval` is 0, `generator` is the total, nothing is asked. Of the other pairs all
violated ones and, by default, equally many satisfied ones are crossed, drawn at random by the
policy's seed; a pair stands for `pairs of its stratum / crossed pairs of its stratum` pairs
(D. G. Horvitz and D. J. Thompson, JASA 47 (1952) 663-685). A value is therefore a weighted part,
and 0 for a pair that was not drawn.

Noise. Pairs are chosen by their verdict, so an answer that was wrong by chance is chosen more
often than by chance, and its error would appear as interaction. Hence both uncrossed answers of
a drawn pair are asked again with another sampling seed, and only fresh answers enter. With answers
that change independently with probability e, every part of a pair without any effect is then 2e(1 -
e) for retrieval and generator and minus that for interaction, in both arms: the control arm's
parts are subtracted and take it away, except for the difference between the arms in the share of
equal document lists. True effects shrink by the same factor in all parts, so shares keep.
Deterministic systems repeat themselves at no cost.
"""

from __future__ import annotations

from typing import Any

from fairgate.domain.outcomes import Better
from fairgate.metrics.metric import NET, Metric

COLUMNS = {
    "retrieval": "attribution-retrieval",
    "generator": "attribution-generator",
    "interaction": "attribution-interaction",
}
"""Part to the table's column; not kept in baselines, whose samples would be others."""


def _part(name: str, how: str, **more: Any) -> Metric:
    """Return the metric of a part; `more` are further fields of it."""
    return Metric(
        id=f"attribution/{name}", title=f"changed answers beyond control prompts, {how}",
        column=COLUMNS[name], arms=NET, violations=False, comparable=False,
        dimensions=("category",), defined_by="FairGate, attribution", **more,
    )  # fmt: skip


RETRIEVAL = _part("retrieval", "through retrieval")
GENERATOR = _part("generator", "directly in the generator")
INTERACTION = _part(
    "interaction", "by retrieval and generator together", row_limits=(-2.0, 1.0),
    better=Better.TOWARD_ZERO,
)  # fmt: skip
