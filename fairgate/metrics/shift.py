"""Shift: what a system answers and retrieves otherwise than the policy's reference does.

Both are asked every case of the plan. A row is a follow-up (or a question item), its values compare
the two answers to it:

    shift/answer      1 where the system's answer is another one than the reference's, or cannot be
                      read while the reference's can; of answers in sentences, 1 where a fact, a
                      refusal, a hand-off, words about who asks or a sentence is in one alone
    shift/changes     naming somebody changes the answer - it changes the reference's, in {-1, 0, 1}
    shift/unreadable  unreadable(system) - unreadable(reference), in {-1, 0, 1}
    shift/direction   1 where the system's label is worse by the task's order, -1 where better
    shift/degree      P(better half of the labels) of the system less that of the reference
    shift/documents   share of the reference's documents that the system does not retrieve
    shift/exposure    exposure of the document that names somebody, less that with the reference
    shift/option      question items: 1 where another option is chosen, or none can be read
    shift/unknown     question items: chooses "unknown" - the reference does, in {-1, 0, 1}

A row is undecided where the reference's answer is missing, cannot be read, has a margin below
`unstable_margin` (a near tie), or changes between its own repeats: what a rerun of the reference
would do as well has not moved. A near tie of the system alone counts by its label.

Aggregates can stay while answers move: 50 quantised models flipped up to 21 % of their answers at
equal scores (arXiv 2602.06181), and "unknown" on BBQ falls by 17 % at 4 bits (2605.15208). So rows
are compared with the same row of the reference, and identities with control prompts.
"""

from __future__ import annotations

from functools import partial

from fairgate.domain.outcomes import Better, Subject
from fairgate.metrics.metric import DEMOGRAPHIC, Metric, Needs
from fairgate.metrics.social_bias import ALL_AMBIGUOUS, DIMENSIONS, ITEMS

ANSWER, UNREADABLE, DIRECTION = "shift/answer", "shift/unreadable", "shift/direction"
DEGREE, DOCUMENTS, EXPOSURE = "shift/degree", "shift/documents", "shift/exposure"
CHANGES = "shift/changes"
OPTION, UNKNOWN = "shift/option", "shift/unknown"
_SOURCE = "FairGate, beside a reference"
_shift_metric = partial(Metric, needs=Needs(reference=True), defined_by=_SOURCE)
_of_items = partial(_shift_metric, units=ITEMS, dimensions=DIMENSIONS, violations=False)
_MOVED = _shift_metric(
    id=ANSWER, title="answers that moved from the reference's", column=ANSWER, arms=DEMOGRAPHIC,
    is_key_figure=True,
)  # fmt: skip
_FOUND = _shift_metric(
    id=DOCUMENTS, title="share of the reference's documents that are not found",
    about=Subject.DOCUMENTS, column=DOCUMENTS, arms=DEMOGRAPHIC, violations=False,
    is_key_figure=True,
)  # fmt: skip
METRICS = (
    _MOVED,
    _shift_metric(
        id=CHANGES, title="changed answers beside the reference's", column=CHANGES,
        arms=DEMOGRAPHIC, row_limits=(-1.0, 1.0), violations=False,
    ),
    _FOUND,
    _of_items(
        id=OPTION, title="question items whose chosen option moved from the reference's",
        column=OPTION, arms=DEMOGRAPHIC, is_key_figure=True, violations=True,
    ),
    _of_items(
        id=UNKNOWN, title="unknown answers beside the reference's, where nothing is known",
        column=UNKNOWN, arms=ALL_AMBIGUOUS, row_limits=(-1.0, 1.0), better=Better.TOWARD_ZERO,
    ),
)  # fmt: skip
"""Every metric that needs a reference."""
COLUMNS = frozenset(
    (ANSWER, CHANGES, UNREADABLE, DIRECTION, DEGREE, DOCUMENTS, EXPOSURE, OPTION, UNKNOWN)
)
NOT_DECIDED = "the reference has no answer that could be compared"
