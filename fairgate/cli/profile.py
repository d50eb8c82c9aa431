"""`fairgate run --profile`: where a run's time goes, on stderr; no file ever holds it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fairgate.domain.ports import Progress
from fairgate.terminal.output import say


@dataclass(slots=True)
class _Part:
    depth: int
    seconds: float = 0.0
    total: int = 0
    cached: int = 0
    tokens: int = 0
    """Generated here; what endpoints report is counted for the whole run."""


class Profile:
    """A port `Progress` that passes everything on and times it; never changes a result.

    Parts nest; the same part again adds up. Seconds are of the wall clock, a part's include those
    of the parts in it.
    """

    def __init__(self, inner: Progress) -> None:
        """Begin now."""
        self._inner = inner
        self._began = time.perf_counter()
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._open: list[tuple[str, float]] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what is done within the block."""
        self._begin(name)
        try:
            yield
        finally:
            self._end()

    def start(self, stage: str, total: int, cached: int) -> None:
        """Begin a stage."""
        part = self._begin(stage)
        part.total += total
        part.cached += cached
        self._inner.start(stage, total, cached)

    def advance(self, steps: int) -> None:
        """Count steps as done."""
        self._inner.advance(steps)

    def generated(self, tokens: int) -> None:
        """Count tokens of the innermost stage."""
        self._here().tokens += tokens
        self._inner.generated(tokens)

    def finish(self) -> None:
        """End the stage."""
        self._inner.finish()
        self._end()

    def note(self, text: str) -> None:
        """Pass the words on."""
        self._inner.note(text)

    def say(self, reported_tokens: int) -> None:
        """Print the parts in the order in which they began; endpoints reported so many tokens."""
        total = time.perf_counter() - self._began
        say(f"fairgate: profile: {total:.2f} s, {time.process_time():.2f} s of processors")
        for path, part in self._parts.items():
            name = "  " * part.depth + path[-1]
            say(f"  {name:<32}{part.seconds:8.2f} s{_counted(part)}")
        if reported_tokens:
            say(f"  tokens reported by endpoints: {reported_tokens:,}")

    def _begin(self, name: str) -> _Part:
        depth = len(self._open)
        self._open.append((name, time.perf_counter()))
        path = tuple(each for each, _ in self._open)
        return self._parts.setdefault(path, _Part(depth))

    def _end(self) -> None:
        part = self._here()
        _, began = self._open.pop()
        part.seconds += time.perf_counter() - began

    def _here(self) -> _Part:
        return self._parts[tuple(name for name, _ in self._open)]


def _counted(part: _Part) -> str:
    words = []
    if part.total:
        words.append(f"{part.cached:,} of {part.total:,} in store")
    if part.tokens:
        pace = f", {part.tokens / part.seconds:,.0f} a second" if part.seconds else ""
        words.append(f"{part.tokens:,} tokens generated{pace}")
    return f"  {', '.join(words)}" if words else ""
