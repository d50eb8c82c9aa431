"""What files for other tools call the system under test."""

from __future__ import annotations

from fairgate.domain.outcomes import GateResult
from fairgate.domain.wording import harmless

_PARTS = ("generator", "application", "system")
_MOST = 200


def system_name(result: GateResult) -> str:
    """Return the generator's name, else that of the first part that is known, else the policy's."""
    known = result.provenance.under_test
    first = next((known[part] for part in _PARTS if part in known), "")
    first = first or next(iter(known.values()), "")
    return harmless(first[:_MOST]) or harmless(f"the system under policy {result.policy}")
