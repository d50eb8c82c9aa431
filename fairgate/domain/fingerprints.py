"""What identifies a state, as reports show it."""

from __future__ import annotations

import hashlib


def short(fingerprint: str) -> str:
    """Return 12 hexadecimal digits that change with a fingerprint, or a text not to be shown."""
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
