"""Lines of a recording whose documents are those of a line shortly before, read without them.

Follow-ups of a source mostly get its documents, and these are most of a line.
"""

from __future__ import annotations

import json
import secrets
from collections import deque
from functools import partial
from typing import Any

from fairgate.domain.json_text import JsonError, read_json

_MEMBER = '"documents": ['
_KEY = len(_MEMBER) - 1
_MOST = 4
_read = partial(read_json, strict=False)


class RepeatedDocuments:
    """Reads lines as `read_json` does; equal lists of documents near each other are one object."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: deque[tuple[str, list[Any]]] = deque(maxlen=_MOST)
        # No file can hold it, so where it is found it stands for what was taken out.
        self._mark = secrets.token_hex(16)

    def __call__(self, text: str) -> Any:
        """Return the value of a line. Raises JsonError."""
        start = text.find(_MEMBER)
        if start < 0:
            return _read(text)
        for member, documents in self._known:
            if text.startswith(member, start):
                record = self._without(text, start, start + len(member))
                if record is not None:
                    record["documents"] = documents
                    return record
        record = _read(text)
        if isinstance(record, dict) and isinstance(record.get("documents"), list):
            documents, end = json.JSONDecoder().raw_decode(text, start + _KEY)
            if documents == record["documents"]:
                self._known.appendleft((text[start:end], record["documents"]))
        return record

    def _without(self, text: str, start: int, end: int) -> dict[str, Any] | None:
        """Return the line's object with the mark in the place of its documents.

        None where they are not the object's own, or where the line is broken: reading it whole
        says in which column.
        """
        try:
            record = _read(f'{text[:start]}"documents":"{self._mark}"{text[end:]}')
        except JsonError:
            return None
        own = isinstance(record, dict) and record.get("documents") == self._mark
        return record if own else None
