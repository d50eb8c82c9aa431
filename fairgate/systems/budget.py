"""The policy's `budget`: the most that a run may ask of a system."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from fairgate.domain.schema import Strict, SystemModel
from fairgate.systems.budget_meter import Budget, Meter, Prices
from fairgate.systems.resources import Resources

Count = Annotated[int, Field(ge=1, le=10**12)]
Amount = Annotated[float, Field(gt=0, le=1e12)]
Price = Annotated[float, Field(ge=0, le=1e12)]


class PricesPart(Strict):
    """What tokens cost."""

    input: Price = Field(description="Money for a million tokens of questions.")
    output: Price = Field(description="Money for a million tokens of answers.")


class BudgetPart(Strict):
    """The most that one run may ask; a run that needs more stops with exit code 5."""

    requests: Count | None = Field(
        default=None, description="Questions; what is stored already is not asked, and free."
    )
    tokens: Count | None = Field(
        default=None, description="Tokens of questions and answers, as answers report them."
    )
    seconds: Amount | None = Field(
        default=None, description="Seconds from the first question to the last one that is begun."
    )
    money: Amount | None = Field(
        default=None, description="Money: by `prices`, else the `usage.cost` that answers report."
    )
    prices: PricesPart | None = Field(
        default=None, description="What tokens cost, for `money`, in a currency of your choice."
    )

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        limits = (self.requests, self.tokens, self.seconds, self.money)
        if all(limit is None for limit in limits):
            raise ValueError("limits nothing; set `requests`, `tokens`, `seconds` or `money`")
        if self.prices is not None and self.money is None:
            raise ValueError("has `prices` and no limit of `money`; set `money` too")
        return self


BudgetField = Annotated[
    BudgetPart | None,
    Field(
        description="The most that one run may ask: `requests`, `tokens`, `seconds`, `money`. It "
        "stops with exit code 5 where it needs more; what was answered is stored, so that the next "
        "run goes on from there."
    ),
]


def meter_for(system: SystemModel, resources: Resources) -> Meter:
    """Return what counts a run's questions, without limits where the policy sets none."""
    meter = _meter(getattr(system, "budget", None), resources, "system.budget")
    resources.meters.append(meter)
    return meter


def meter_of_judges(part: BudgetPart | None, resources: Resources) -> Meter:
    """Return what counts the questions to a judge: apart from a system's, at their own prices."""
    return _meter(part, resources, "judge.budget")


def _meter(part: BudgetPart | None, resources: Resources, field: str) -> Meter:
    """Return a meter with a policy's limits, or the one whose limits several runs keep together."""
    shared = {} if resources.runtime.meters is None else resources.runtime.meters
    if field in shared:
        meter: Meter = shared[field]
        return meter
    meter = Meter(Budget() if part is None else _limits(part), field=field)
    if part is not None:
        shared[field] = meter
    return meter


def _limits(part: BudgetPart) -> Budget:
    prices = part.prices
    return Budget(
        requests=part.requests,
        tokens=part.tokens,
        seconds=part.seconds,
        money=part.money,
        prices=None if prices is None else Prices(input=prices.input, output=prices.output),
    )
