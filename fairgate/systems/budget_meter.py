"""How much a run may ask: what was spent is metered, and questions end with the budget.

A question that was handed out is answered, counted and stored; no further one is handed out once a
limit is reached. So a run that stops has lost nothing, and the next one continues from the store.
Answers from the store cost nothing. Attribution's questions and those of replicas count as others.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar, overload

from fairgate.domain.applications import Question, Reply, Usage
from fairgate.domain.errors import BudgetError, UsageError
from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.domain.ports import Generator as GeneratorPort
from fairgate.domain.ports import RevisedApplication

T = TypeVar("T")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Money for a million tokens."""

    input: float
    output: float

    def of(self, usage: Usage) -> float | None:
        """Return what a question cost; None where its tokens are not reported."""
        if usage.input is None or usage.output is None:
            return None
        return (usage.input * self.input + usage.output * self.output) / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that one run may spend; None is no limit."""

    requests: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    """From the first question on."""
    money: float | None = None
    prices: Prices | None = None
    """None: the money that answers report."""


class Meter:
    """Counts what a run spends, over all that it asks."""

    def __init__(
        self,
        budget: Budget,
        clock: Callable[[], float] = time.monotonic,
        *,
        field: str = "system.budget",
    ) -> None:
        """Take the limits; `clock` gives seconds from any beginning, `field` is the policy's."""
        self._budget = budget
        self.field = field
        self._clock = clock
        self._began: float | None = None
        self.requests = 0
        self.keeps = True
        """Whether answers are stored; not those of replicas, which are asked past the store."""
        self.latencies = array("d")
        """Seconds from handing out each question to its answer, in the order of the answers."""
        self.tokens = 0
        self.money = 0.0

    def now(self) -> float:
        """Return seconds, from any beginning."""
        return self._clock()

    @property
    def spent(self) -> str:
        """Return which limit is reached, for a sentence; empty while a question may be asked."""
        budget = self._budget
        if budget.requests is not None and self.requests >= budget.requests:
            return f"{budget.requests:,} requests"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"{budget.tokens:,} tokens"
        if budget.money is not None and self.money >= budget.money:
            return f"{budget.money:g} of money"
        if budget.seconds is not None and self._seconds >= budget.seconds:
            return f"{budget.seconds:g} seconds"
        return ""

    @property
    def counted(self) -> str:
        """Return what was asked in this run: `120 questions, 34,200 tokens`."""
        parts = ["1 question" if self.requests == 1 else f"{self.requests:,} questions"]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        if self.money:
            parts.append(f"{self.money:.4g} of money")
        if self._budget.seconds is not None:
            parts.append(f"{self._seconds:.0f} seconds")
        return ", ".join(parts)

    def hand_out(self) -> None:
        """Count a question that is going to be asked."""
        if self._began is None:
            self._began = self._clock()
        self.requests += 1

    def add(self, usage: Usage) -> None:
        """Count what an answer cost. Raises UsageError where a limit cannot be kept."""
        budget = self._budget
        money = usage.money if budget.prices is None else budget.prices.of(usage)
        if budget.tokens is not None and usage.tokens is None:
            _cannot("tokens", "`total_tokens`")
        if budget.money is not None and money is None:
            _cannot("money", "`cost`" if budget.prices is None else "its tokens")
        self.tokens += usage.tokens or 0
        self.money += money or 0.0

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else self._clock() - self._began


def _cannot(limit: str, part: str) -> None:
    raise UsageError(
        f"the budget limits `{limit}`, but an answer reports no {part} under `usage`, so that it "
        f"cannot be kept; limit `requests` or `seconds` instead of `{limit}`"
        + (", or give `prices`" if part == "`cost`" else "")
    )


class _WhileItLasts(Sequence[T]):
    """What is to be asked; iterating ends early where the budget does."""

    def __init__(self, inner: Sequence[T], meter: Meter) -> None:
        self._inner = inner
        self._meter = meter
        self.handed_out = 0
        self._began: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._inner)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._inner[index]

    def __iter__(self) -> Iterator[T]:
        for position, each in enumerate(self._inner):
            if self._meter.spent:
                return
            self._meter.hand_out()
            self.handed_out += 1
            self._began[position] = self._meter.now()
            yield each

    def answered(self, position: int) -> None:
        """Keep how long the answer took."""
        self._meter.latencies.append(self._meter.now() - self._began.pop(position))

    def require_all(self, *, is_kept: bool) -> None:
        """Raise BudgetError where not all were asked."""
        total, meter = len(self._inner), self._meter
        if self.handed_out == total:
            return
        next_step = (
            "the answers are stored: run again to go on from there"
            if is_kept and meter.keeps
            else "the answers are not stored, because the version of what answers is not known, or "
            "not believed: name its `revision`, so that the next run goes on"
        )
        raise BudgetError(
            f"the budget of {meter.spent} is spent. Asked in this run: {meter.counted}",
            left=total - self.handed_out,
            next_step=f"{next_step}, or raise `{meter.field}`",
        )


class BudgetedApplication:
    """A port `Application` that is asked while the budget lasts."""

    def __init__(
        self, inner: RevisedApplication, meter: Meter, is_kept: Callable[[], bool]
    ) -> None:
        """Take the application; `is_kept`: whether its replies are stored for the next run."""
        self._inner = inner
        self._meter = meter
        self._is_kept = is_kept

    @property
    def name(self) -> str:
        """Return what is asked and where."""
        return self._inner.name

    @property
    def fingerprint(self) -> str:
        """Identify the application: a budget changes no reply."""
        return self._inner.fingerprint

    @property
    def revision(self) -> str | None:
        """Return what changes when the application does."""
        return self._inner.revision

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply], None, None]:
        """Yield `(position in questions, reply)`; raises BudgetError after those handed out."""
        allowed = _WhileItLasts(questions, self._meter)
        with closing(self._inner.ask(allowed)) as coming:
            for position, reply in coming:
                allowed.answered(position)
                yield position, reply
        allowed.require_all(is_kept=self._is_kept())


class BudgetedGenerator:
    """A port `Generator` that is asked while the budget lasts."""

    def __init__(self, inner: GeneratorPort, meter: Meter, is_kept: Callable[[], bool]) -> None:
        """Take the generator; `is_kept`: whether its answers are stored for the next run."""
        self._inner = inner
        self._meter = meter
        self._is_kept = is_kept

    @property
    def fingerprint(self) -> str:
        """Identify the generator: a budget changes no answer."""
        return self._inner.fingerprint

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Answer]]:
        """Yield `(position in requests, answer)`; raises BudgetError after those handed out."""
        allowed = _WhileItLasts(requests, self._meter)
        for position, answer in self._inner.generate(allowed):
            allowed.answered(position)
            yield position, answer
        allowed.require_all(is_kept=self._is_kept())
