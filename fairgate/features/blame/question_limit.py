"""A limit of questions that several systems share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.domain.ports import Generator, OptionScorer
from fairgate.gate.delta_debugging import OutOfQuestions


@dataclass(slots=True)
class QuestionLimit:
    """How many questions may be asked, and how many were; stored answers cost none."""

    most: int
    asked: int = 0

    def allowed(self, wanted: int) -> int:
        """Count at most `wanted` questions as asked, and return how many may be."""
        found = min(wanted, self.most - self.asked)
        self.asked += found
        return found


class LimitedGenerator:
    """A port `Generator` that raises OutOfQuestions after the last question that may be asked.

    What was answered until then is given first, so that it is stored.
    """

    def __init__(self, inner: Generator, limit: QuestionLimit) -> None:
        """Take the generator and the limit that it shares."""
        self._inner = inner
        self._limit = limit
        if hasattr(inner, "score_options"):
            self.score_options = self._score_options

    @property
    def fingerprint(self) -> str:
        """Identify the generator: a limit changes no answer."""
        return self._inner.fingerprint

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Answer]]:
        """Yield `(position in requests, answer)`."""
        allowed = self._limit.allowed(len(requests))
        if allowed:
            yield from self._inner.generate(requests[:allowed])
        if allowed < len(requests):
            raise OutOfQuestions

    def _score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return the log-probabilities of each request's options, all or none."""
        if self._limit.allowed(len(requests)) < len(requests):
            raise OutOfQuestions
        return cast("OptionScorer", self._inner).score_options(requests)
