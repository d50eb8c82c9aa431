"""A model that several workers have, each its own, asked as if it were one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairgate.domain.errors import WorkerError
from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.domain.wording import quoted
from fairgate.engine.ports import Generator
from fairgate.engine.stored import answer_from, scores_from
from fairgate.engine.worker_messages import Asks, Way
from fairgate.engine.workers import Team


class SpreadGenerator:
    """The ports `Generator` and `OptionScorer` over the workers of a run.

    An answer depends on its request alone, so it is the same whichever worker gives it.
    """

    def __init__(self, inner: Generator, model: str, team: Team) -> None:
        """Take the model as it would be asked here, its name for workers, and the workers.

        `inner` gives the fingerprint alone.
        """
        self._inner = inner
        self._model = model
        self._team = team

    @property
    def fingerprint(self) -> str:
        """Identify the model: who asks it changes no answer."""
        return self._inner.fingerprint

    @property
    def side_by_side(self) -> int:
        """Return how many times as many requests are best scored at once."""
        return self._team.most

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Answer]]:
        """Yield `(position in requests, answer)` as workers send them. Raises WorkerError."""
        for position, value in self._team.ask(self._asks(Way.GENERATE), requests):
            answer = answer_from(value)
            if answer is None:
                raise _unsound(requests[position])
            yield position, answer

    def score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return the log-probability (nats) of each option of each request."""
        found: dict[int, list[float]] = {}
        for position, value in self._team.ask(self._asks(Way.SCORE), requests):
            scores = scores_from(value, len(requests[position].options))
            if scores is None:
                raise _unsound(requests[position])
            found[position] = scores
        return [found[position] for position in range(len(requests))]

    def _asks(self, way: Way) -> Asks:
        return Asks(model=self._model, fingerprint=self.fingerprint, way=way)


def _unsound(request: GenerationRequest) -> WorkerError:
    return WorkerError(
        f"a worker sent no sound answer to a question about source {quoted(request.source)}; "
        "expected a text, or a score of every option: run again without --workers"
    )
