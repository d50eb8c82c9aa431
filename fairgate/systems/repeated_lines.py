"""Lines of a recording that differ from an earlier one in their key alone, read without the rest.

A source's follow-ups mostly get its answer and its documents.
"""

from __future__ import annotations

import re

from fairgate.io.lines import MAX_TEXT_CHARACTERS
from fairgate.systems.recorded_line import RecordedLine

_PLAIN = r'[^"\\\x00-\x1f]'
"""A character that stands in a JSON text as itself."""
_BEGIN = re.compile(rf'{{(?:"suite": "({_PLAIN}*)", )?"key": "({_PLAIN}+)"')
_MOST_CHARACTERS = 4 * 2**20
"""Of all lines that are known, without their keys."""


class RepeatedLines:
    """The lines read so far, found by all they say beside their key.

    A line that begins with its key, or with suite and key, is the same JSON with another plain key
    in its place, so that what was read and checked once holds for it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[tuple[str | None, str], RecordedLine] = {}
        self._characters = 0

    def line(self, text: str) -> RecordedLine | None:
        """Return what a line says; None where it is to be read."""
        begin = _BEGIN.match(text)
        if begin is None or len(text) > MAX_TEXT_CHARACTERS:
            return None
        suite, key = begin.groups()
        same = self._known.get((suite, text[begin.end() :]))
        return None if same is None else RecordedLine(same.suite, key, same.answer)

    def add(self, text: str, line: RecordedLine) -> None:
        """Keep what a line was read as."""
        begin = _BEGIN.match(text)
        if begin is None or len(text) > MAX_TEXT_CHARACTERS:
            return
        if self._characters > _MOST_CHARACTERS:
            self._known.clear()
            self._characters = 0
        self._known[begin[1], text[begin.end() :]] = line
        self._characters += len(text)
