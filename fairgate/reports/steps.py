"""The commands that a reader of a report can go on with."""

from __future__ import annotations

import shlex

from fairgate.domain.outcomes import Outcome
from fairgate.reports.material import Material


def run_command(material: Material) -> str:
    """Return the command that makes this run again."""
    path = shlex.quote(material.result.provenance.policy_path)
    return material.options.run_command or f"fairgate run {path}"


def accept_command(material: Material) -> str:
    """Return the command that makes this run the baseline; empty where nobody should.

    A run without a verdict shows nothing to hold later runs to, and a first run that breaks a limit
    would make what is broken the reference.
    """
    result = material.result
    is_first = result.overlap is None
    fits = result.outcome is Outcome.PASS or (result.outcome is Outcome.FAIL and not is_first)
    if not material.options.run_path or not fits:
        return ""
    return f'fairgate baseline accept {shlex.quote(material.options.run_path)} --reason "…"'
