"""How question items say "unknown", in every language that has a data file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.policy.named_files import embedded_names, named_document

_KIND = "unknown_wordings"


@cache
def unknown_wordings() -> tuple[str, ...]:
    """Return every known wording of "unknown", the languages in alphabetical order."""
    found: list[str] = []
    for name in embedded_names(_KIND):
        data = named_document(_KIND, name, folder=Path(), confined=False).data
        wordings = data.get("wordings") if isinstance(data, dict) else None
        if not isinstance(wordings, list) or not all(isinstance(one, str) for one in wordings):
            raise DataError(f"{_KIND}/{name}.yaml: expected `wordings`, a list of texts")
        found += wordings
    return tuple(dict.fromkeys(found))
