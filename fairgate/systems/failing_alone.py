"""Follow-ups at which a system fails while it answers their sources.

To fail again and again for one identity is how a system treats it, and no fault of the machine:
such a follow-up counts as an unreadable answer, and one without documents. Where a system fails
at the source, too, only once, or at more than a quarter of what it is asked, it is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Generic, TypeVar

from fairgate.domain.cases import Case, is_follow_up
from fairgate.domain.errors import BudgetError, FailedQuestionError, FairGateError
from fairgate.domain.executions import Execution, Served

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_FEW = 8


class FailingAlone(Generic[K]):
    """What a part of a system was asked for sources and follow-ups, and where it failed."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.failed: dict[K, FailedQuestionError] = {}
        """Questions without an answer, with what was said the first time; they are not stored."""
        self._of_source: dict[tuple[object, ...], K] = {}
        """The question that puts a source as it stands, by what it shares with its follow-ups."""
        self._sources: dict[K, K] = {}

    def learn(self, cases: Sequence[Case], questions: Sequence[K]) -> None:
        """Take the question of each case; sources may be asked in an earlier wave."""
        for case, question in zip(cases, questions, strict=True):
            shared = (case.suite, case.cluster, case.instruction, len(case.before))
            if not is_follow_up(case.key):
                self._of_source.setdefault(shared, question)
            elif shared in self._of_source:
                self._sources[question] = self._of_source[shared]

    def past(
        self,
        missing: Sequence[K],
        asked: Callable[[list[K]], Generator[Mapping[K, V], None, None]],
    ) -> Generator[Mapping[K, V], None, None]:
        """Yield what is answered, batch by batch, and go on behind follow-ups that fail alone.

        `asked` raises FailedQuestionError with the question at which it failed; the source and the
        question are asked once more each before a failure counts as that.
        """
        left, most = dict.fromkeys(missing), max(_FEW, len(missing) // 4)
        while left:
            try:
                with closing(asked([*left])) as coming:
                    for answered in coming:
                        for question in answered:
                            left.pop(question, None)
                        yield answered
            except FailedQuestionError as error:
                question = error.question
                if question not in left or question not in self._sources:
                    raise
                if not self._fails_alone(question, asked):
                    raise
                del left[question]
                self.failed[question] = error
                if len(self.failed) > most:
                    raise type(error)(
                        f"{error}; it failed at {len(self.failed):,} of {len(missing):,} "
                        "questions, which is no answer of a system that works",
                        None,
                    ) from None
            else:
                return

    def _fails_alone(
        self, question: K, asked: Callable[[list[K]], Generator[Mapping[K, V], None, None]]
    ) -> bool:
        """Ask both again; whether the source is answered and the question fails as before."""
        for variant, is_answered in ((self._sources[question], True), (question, False)):
            try:
                count = sum(len(answered) for answered in asked([variant]))
            except BudgetError:
                raise
            except FairGateError:
                count = 0
            if (count == 1) != is_answered:
                return False
        return True

    def instead(self, questions: Iterable[K], answered: Container[K]) -> dict[K, Execution]:
        """Return what stands for the answers to questions at which it failed alone."""
        return {
            question: Execution(response="", served=Served(failure=error.reason, error=str(error)))
            for question in questions
            if (error := self.failed.get(question)) is not None and question not in answered
        }
