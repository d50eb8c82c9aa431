"""The policy file as pydantic models: every field described, nothing unknown allowed.

The JSON Schema that editors use is generated from these classes, and so is the policy reference.
Which kinds of systems and suites there are is not known here: see `policy_model` in assembled.py.
Rates are fractions; names of bundled things, paths and Hugging Face ids are plain strings.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from fairgate.domain.outcomes import CONFIDENCE
from fairgate.domain.schema import (
    Decides,
    Finite,
    Fraction,
    JudgeModel,
    Name,
    Seed,
    Strict,
    SuiteModel,
    SystemModel,
    Text,
)

ANCHOR_SUFFIX = ".anchor"
"""Follows a policy's name in the name of its anchor's file, so no policy's name may end so."""
BASE = "base"
"""The reference that is the system of a pull request's base commit."""
_WHERE = "Slice: category, term, band, setting, …"
_MAX = "Largest accepted value; `parity` has standard limits."
_REGRESSION = "Largest accepted worsening since the baseline; `parity` has standard limits."
_QUESTIONS = ("max", "min", "max_abs", "regression", "budget")
ALL = "all"
"""Every outcome that a suite has: `parity: all`."""


def _is_parity(entry: object) -> str:
    has_it = "parity" in entry if isinstance(entry, dict) else isinstance(entry, ParityPolicy)
    return "<parity>" if has_it else "<metric>"


class Gate(Strict):
    """What entries of `gates` have in common."""

    suite: str | None = Field(
        default=None, description="Suite; default: every suite that it can be asked of."
    )
    where: dict[str, str] = Field(default_factory=dict, description=_WHERE)
    max: Finite | None = Field(default=None, description=_MAX)
    regression: Annotated[float, Field(ge=0, le=3)] | None = Field(
        default=None, description=_REGRESSION
    )
    budget: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Largest worsening since the pinned anchor.",
    )
    advisory: bool = Field(default=False, description="Report, never fail the build.")

    @model_validator(mode="after")
    def _budget_holds_the_margin(self) -> Self:
        if None not in (self.budget, self.regression) and self.budget < self.regression:  # type: ignore[operator]
            raise ValueError(
                f"`budget` {self.budget:g} is below `regression` {self.regression:g}; the change "
                "since the anchor holds that since the baseline, so give at least as much"
            )
        return self


class ParityPolicy(Gate):
    """Asks of an outcome whether anybody is treated differently, and worse than before."""

    parity: Text = Field(
        description="`answers`, `score`, `unreadable`, `documents`, `sentences`, or `all`."
    )
    max: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description=_MAX
    )
    regression: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description=_REGRESSION
    )
    must_see: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Difference for one identity that a run must be able to see.",
    )


class GatePolicy(Gate):
    """One rule: a metric, where it applies, and what it must keep."""

    metric: Text = Field(description="Id of a metric, see `fairgate metrics list`.")
    min: Finite | None = Field(default=None, description="Lower bound of the value.")
    max_abs: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Bound of the absolute value."
    )
    evidence: Literal["estimate", "significant"] = Field(
        default="estimate",
        description="What bounds judge: the `estimate`, or whether chance explains it "
        "(`significant`).",
    )
    report: bool = Field(
        default=False,
        description="Print the value without a limit.",
    )

    @property
    def limits(self) -> dict[str, float]:
        """Bounds of the value that the rule has, by name."""
        limits = {"max": self.max, "min": self.min, "max_abs": self.max_abs}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        limits = [name for name in _QUESTIONS if getattr(self, name) is not None]
        if self.report and (limits or self.advisory):
            more = " and ".join(f"`{name}`" for name in limits or ["advisory"])
            raise ValueError(f"`report: true` sets no limit for the value; remove it, or {more}")
        if not self.report and not limits:
            raise ValueError(
                "has no limit: give `max`, `min`, `max_abs` or `regression`, or set `report: true` "
                "to print the value without judging it"
            )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` {self.min:g} is above `max` {self.max:g}")
        return self


AnyGate = Annotated[
    Annotated[ParityPolicy, Tag("<parity>")] | Annotated[GatePolicy, Tag("<metric>")],
    Discriminator(_is_parity),
]
"""An entry of `gates`: parity of an outcome, or bounds of a metric."""


class WaiverPolicy(Strict):
    """A failure that stops no build until a date: known, and somebody answers for it."""

    rule: Text = Field(
        description="Metric or `parity/OUTCOME`; append `/baseline` for a worsening since it."
    )
    who: Text | None = Field(
        default=None,
        description="For parity rules: `everybody`, a category or an identity.",
    )
    where: dict[str, str] = Field(default_factory=dict, description=_WHERE)
    suite: str | None = Field(default=None, description="Suite, where several have the rule.")
    up_to: Finite = Field(description="Largest value that is waived.")
    reason: Annotated[Text, Field(max_length=300)] = Field(
        description="Why; shown in every report."
    )
    owner: Annotated[Text, Field(max_length=100)] = Field(description="Who answers for it.")
    expires: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = Field(
        description="Last day, YYYY-MM-DD, at most 366 ahead."
    )


class Policy(Strict):
    """A fairness policy: what is tested, how, and what fails the build."""

    confidence: ClassVar[float] = CONFIDENCE
    """Of intervals and tests."""

    version: Literal[1] = Field(description="Version of the policy format.")
    name: Name = Field(description="Name of the policy; its baseline is `baselines/<name>.json`.")
    seed: Seed = Field(
        default=42, description="Seed of resampling and of everything drawn at random."
    )
    system: SystemModel = Field(description="What is under test; its keys determine its kind.")
    reference: Annotated[SystemModel | Literal["base"] | None, Decides()] = Field(
        default=None,
        description="A second system, or `base` (the base commit's); `shift/…` says what moved.",
    )
    suites: Annotated[list[SuiteModel], Field(min_length=1)] = Field(description="What is tested.")
    judge: JudgeModel | None = Field(
        default=None,
        description="Who compares open answers (`meta-fair/mr1-…` to `mr7-…`).",
    )
    gates: list[AnyGate] = Field(
        default_factory=list,
        description="What passes or fails the build; default: `parity: all`, or limits "
        "of question items.",
    )
    regression_level: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.01,
        description="How rare chance must be for a worsening since the baseline.",
    )
    min_decided: Fraction = Field(
        default=0.95,
        description="Share of cases that must be decided, overall and per rule; half of it for "
        "a slice.",
    )
    constant_answers: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="Whether a suite's answers may be nearly all the same.",
    )
    max_invalid: Fraction = Field(
        default=0.10, description="Share of follow-ups the linter may reject."
    )
    min_overlap: Fraction = Field(
        default=0.9, description="Share of the baseline's cases that must remain comparable."
    )
    waivers: list[WaiverPolicy] = Field(
        default_factory=list, description="Rules whose failure stops no build until a date."
    )
    redact: Literal["none", "excerpt", "hash"] = Field(
        default="excerpt", description="How texts appear in reports."
    )

    @property
    def compares_with_base(self) -> bool:
        """Return whether the reference is the base commit's system."""
        return self.reference == BASE

    @property
    def level(self) -> float:
        """The level of tests that compare with no baseline: 0.05 where confidence is 0.95."""
        return round(1 - self.confidence, 12)

    @property
    def has_budget(self) -> bool:
        """Return whether any rule compares with an anchor."""
        return any(gate.budget is not None for gate in self.gates)

    @property
    def parities(self) -> list[tuple[int, ParityPolicy]]:
        """The entries about parity of an outcome, with their places."""
        return [(n, gate) for n, gate in enumerate(self.gates) if isinstance(gate, ParityPolicy)]

    @property
    def bounds(self) -> list[tuple[int, GatePolicy]]:
        """The entries about metrics, with their places."""
        return [(n, gate) for n, gate in enumerate(self.gates) if isinstance(gate, GatePolicy)]
