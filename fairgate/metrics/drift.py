"""Drift: how often a conversation moves an answer away from what the question gets by itself.

With y(·) the answer to a question that is put in turn n:

    drift     = mean of [y(after the turns before it) != y(in turn 1)]
    drift/net = drift - the same of conversations that begin with control prompts

Any conversation moves some answers, so `drift` alone is no sign of bias; what an identity adds is
`drift/net`. A pair is decided where both answers are. The definition is FairGate's.
"""

from __future__ import annotations

from functools import partial

from fairgate.metrics.metric import Metric, Needs, Rows, Table
from fairgate.stats.observations import Mask

COLUMN = "drift"
RELATION = "conversation/introduction"


def _in_conversation(table: Table, *, control: bool) -> Mask:
    """Select the rows of one arm that were asked in a conversation."""
    rows: Mask = (table.control == control) & table.slice_mask({"relation": RELATION})
    return rows


_TEST = Rows(weight=1.0, select=partial(_in_conversation, control=False))
_DRIFT = Metric(
    id="drift", title="answers that a conversation changes", column=COLUMN, arms=(_TEST,),
    violations=False, needs=Needs(relation=RELATION), defined_by="FairGate, conversations",
)  # fmt: skip
METRICS = (_DRIFT,)
