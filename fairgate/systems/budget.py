"""The policy's `budget`: how much a run may ask, metered, and questions that end with it.

A question that was handed out is answered, counted and stored; no further one is handed out once a
limit is reached. So a run that stops has lost nothing, and the next one continues from the store.
Answers from the store cost nothing. Attribution's questions count as others, and a request for
vectors counts as a question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, model_validator

from fairgate.domain.cases import Case
from fairgate.domain.errors import BudgetError, UsageError
from fairgate.domain.executions import Usage
from fairgate.domain.schema import Strict

T = TypeVar("T")
R = TypeVar("R")
Ask = Callable[[Sequence[T]], Generator[tuple[int, R], None, None]]
"""Asks all of a sequence; yields positions in it, each with what came back."""
_AS_WHAT_DECIDES = " together with what decides, as many again as that asks,"
UNLIMITED = " (without limits)"
AtLeastOne = Annotated[int, Field(ge=1, le=10**12)]
Amount = Annotated[float, Field(gt=0, le=1e12)]


class BudgetPart(Strict):
    """Limits of what one run may ask; a run that needs more stops with exit code 5."""

    requests: AtLeastOne | None = Field(
        default=None,
        description="Most questions, turns and embedding requests that are not stored.",
    )
    tokens: AtLeastOne | None = Field(
        default=None, description="Most tokens of questions and answers, as replies report them."
    )
    seconds: Amount | None = Field(default=None, description="Time limit for asking, in seconds.")

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.requests is None and self.tokens is None and self.seconds is None:
            raise ValueError("limits nothing; set `requests`, `tokens` or `seconds`")
        return self


BudgetField = Annotated[
    BudgetPart | None,
    Field(description="Limits of what one run may ask."),
]


class Meter:
    """Counts what a run spends, over all that it asks."""

    def __init__(
        self,
        budget: BudgetPart | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        field: str = "system.budget",
    ) -> None:
        """Take the limits; `clock` gives seconds from any beginning, `field` is the policy's."""
        self._budget = budget or BudgetPart.model_construct()
        self.field = field
        self.now = clock
        self._began: float | None = None
        self.requests = 0
        self.tokens = 0
        self._most_requests: int | None = None
        self._most_tokens: int | None = None

    def allow(self, requests: int, tokens: int | None) -> None:
        """Allow more requests and tokens, whatever the budget leaves; None: any tokens."""
        self._most_requests = self.requests + requests
        self._most_tokens = None if tokens is None else self.tokens + tokens

    def spent(self, turns: int = 1) -> str:
        """Return which limit is reached, for a sentence; empty while the turns may be asked."""
        budget = self._budget
        if self._most_requests is not None and self.requests + turns > self._most_requests:
            return f"{self._most_requests:,} requests{_AS_WHAT_DECIDES}"
        if self._most_tokens is not None and self.tokens >= self._most_tokens:
            return f"{self._most_tokens:,} tokens{_AS_WHAT_DECIDES}"
        if budget.requests is not None and self.requests + turns > budget.requests:
            return f"{budget.requests:,} requests"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"{budget.tokens:,} tokens"
        if budget.seconds is not None and self._seconds >= budget.seconds:
            return f"{budget.seconds:g} seconds"
        return ""

    @property
    def counted(self) -> str:
        """Return this run's count: `120 questions, 34,200 tokens`."""
        parts = ["1 question" if self.requests == 1 else f"{self.requests:,} questions"]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        if self._budget.seconds is not None:
            parts.append(f"{self._seconds:.0f} seconds")
        return ", ".join(parts)

    def asked(
        self, items: Sequence[T], ask: Ask[T, R], is_kept: Callable[[], bool]
    ) -> Generator[tuple[int, R], None, None]:
        """Yield what `ask` yields for the items, which are handed out while the budget lasts.

        Raises BudgetError after those handed out, unless all were; `is_kept`: whether answers are
        stored for the next run.
        """
        allowed = _WhileItLasts(items, self)
        with closing(ask(allowed)) as coming:
            yield from coming
        if left := len(items) - allowed.handed_out:
            raise self._ended(
                allowed.spent,
                left,
                "the answers are stored: run again to go on from there"
                if is_kept()
                else "the answers are not stored, because the version of what answers is not "
                "known, or not believed: name its `revision`, so that the next run goes on",
            )

    def begin(self, left: int) -> None:
        """Count one request for vectors, which are stored; `left` texts still have none.

        Raises BudgetError where the budget is spent.
        """
        if spent := self.spent():
            raise self._ended(spent, left, "the vectors are stored: run again to go on from there")
        self.hand_out()

    def _ended(self, spent: str, left: int, next_step: str) -> BudgetError:
        return BudgetError(
            f"the budget of {spent} is spent. Asked in this run: {self.counted}",
            left=left,
            next_step=f"{next_step}, or raise `{self.field}`",
        )

    def add(self, usage: Usage) -> None:
        """Count an answer's tokens. Raises UsageError where their limit cannot be kept."""
        if self._budget.tokens is not None and usage.tokens is None:
            raise UsageError(
                "the budget limits `tokens`, but an answer reports no `total_tokens` under "
                "`usage`, so that it cannot be kept; limit `requests` or `seconds` instead"
            )
        self.tokens += usage.tokens or 0

    def hand_out(self, turns: int = 1) -> None:
        """Count a question that is going to be asked, and each turn before it."""
        self._began = self.now() if self._began is None else self._began
        self.requests += turns

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else self.now() - self._began


class _WhileItLasts(list[T]):
    """What is to be asked; iterating ends early where the budget does."""

    def __init__(self, inner: Sequence[T], meter: Meter) -> None:
        super().__init__(inner)
        self._meter = meter
        self.handed_out = 0
        self.spent = ""
        """Which limit ended it."""

    def __iter__(self) -> Iterator[T]:
        for item in super().__iter__():
            turns = 1 + len(getattr(item, "before", ()))
            if spent := self._meter.spent(turns):
                self.spent = spent
                return
            self._meter.hand_out(turns)
            self.handed_out += 1
            yield item


def allow_as_much_again(meters: dict[str, Any], cases_asked: Sequence[Case]) -> None:
    """Limit what is asked from now on to what was asked so far, by requests and by tokens.

    `meters` are those that the runs share (`Runtime.meters`); `cases_asked` are the cases of the
    run before, those from the store too. Tokens are limited where that run asked for all of them.
    """
    for field, of_judge in (("system.budget", False), ("judge.budget", True)):
        before: Meter | None = meters.get(field) or meters.get(f"{field}{UNLIMITED}")
        cases = [case for case in cases_asked if (case.judge is not None) is of_judge]
        planned = sum(1 + len(case.before) for case in cases)
        requests = before.requests if before else 0
        tokens = before.tokens if before and before.tokens and requests >= planned else None
        meter = meters.setdefault(field, Meter(field=field))
        meter.allow(max(requests, planned), tokens)
