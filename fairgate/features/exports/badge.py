"""The verdict for a badge, in the form that shields.io's endpoint badges read."""

from __future__ import annotations

import json

from fairgate.domain.outcomes import Outcome
from fairgate.domain.wording import harmless
from fairgate.reports.view import View

_COLOURS = {
    Outcome.PASS: "brightgreen",
    Outcome.FAIL: "red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.NOT_EVALUATED: "lightgrey",
}


def render_badge(view: View) -> str:
    """Return `badge.json`: policy and verdict, nothing of texts or answers."""
    badge = {
        "schemaVersion": 1,
        "label": harmless(view.policy),
        "message": view.word.lower(),
        "color": _COLOURS[view.mark],
    }
    return json.dumps(badge) + "\n"
