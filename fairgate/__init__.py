"""FairGate: a fairness gate for retrieval-augmented small language models."""

from __future__ import annotations

TYPE_CHECKING = False  # as of `typing`: before `__main__` no module is imported that is not here
if TYPE_CHECKING:
    from typing import Any

    from fairgate.reports.scan_api import TableVerdict, scan

__all__ = ["TableVerdict", "__version__", "scan"]
__version__ = "0.1.0"
REPOSITORY = "https://github.com/org/fairgate"
"""Where FairGate is at home; `make release OWNER=…` sets it, here and wherever else it is named."""


def __getattr__(name: str) -> Any:
    """Import `scan` when it is first asked for. Raises AttributeError for any other name."""
    if name not in ("scan", "TableVerdict"):
        raise AttributeError(f"module 'fairgate' has no attribute {name!r}")
    from fairgate.reports import scan_api

    return getattr(scan_api, name)
