"""The policy file as pydantic models: every field described, nothing unknown allowed.

The JSON Schema that editors use is generated from these classes, and so is the policy reference.
Which kinds of systems and suites there are is not known here: see `policy_model` in assembled.py.
Rates are fractions; names of embedded things, paths and Hugging Face ids are plain strings.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

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
UNREADABLE, MOST_UNREADABLE = "unreadable/net", 0.02
"""The metric and limit of the rule that a suite with a control arm has by default."""
_QUESTIONS = ("max", "min", "max_abs", "regression")


class RegressionPolicy(Strict):
    """When a change against the baseline fails the build: significant and larger than `margin`."""

    margin: Annotated[float, Field(ge=0, le=3)] = Field(
        default=0.02, description="Largest change that is accepted."
    )
    budget: Annotated[float, Field(ge=0, le=3)] | None = Field(
        default=None,
        description="Largest change since the pinned anchor (`fairgate baseline anchor`) that is "
        "accepted, so that a series of changes within the margin cannot pass one by one.",
    )
    detect: Annotated[float, Field(gt=0, le=3)] = Field(
        default=0.05, description="Change that the suite must be able to detect for a `pass`."
    )
    strict: bool = Field(
        default=False,
        description="Test 'change <= margin' itself (approximate) instead of 'no change'.",
    )
    sd: Annotated[float, Field(gt=0, le=3)] | None = Field(
        default=None,
        description="Standard deviation of the per-source change that is known beforehand; the "
        "detectable change never rests on a smaller one.",
    )

    @model_validator(mode="after")
    def _budget_holds_the_margin(self) -> Self:
        if self.budget is not None and self.budget < self.margin:
            raise ValueError(
                f"`budget` {self.budget:g} is below `margin` {self.margin:g}; the change since the "
                "anchor holds that since the baseline, so give a budget of at least the margin"
            )
        return self

    def since_anchor(self) -> RegressionPolicy | None:
        """Return the limits on the change since the anchor; None without a budget.

        A change is to be seen as far beyond the budget as `detect` is beyond the margin.
        """
        if self.budget is None:
            return None
        detect = self.detect + self.budget - self.margin
        return self.model_copy(update={"margin": self.budget, "detect": detect})


class GatePolicy(Strict):
    """One rule: a metric, where it applies, and what it must keep."""

    metric: Text = Field(description="Id of a metric, see `fairgate metrics list`.")
    suite: str | None = Field(
        default=None, description="Suite; default: every suite that has the metric."
    )
    where: dict[str, str] = Field(
        default_factory=dict, description="Slice: category, term, band, setting, …"
    )
    for_each: str | None = Field(
        default=None,
        description="One rule for each value of this dimension (`category`, `term`, …). A "
        "value that only the baseline has ends the run with exit code 3.",
    )
    max: Finite | None = Field(default=None, description="Upper bound of the value.")
    min: Finite | None = Field(default=None, description="Lower bound of the value.")
    max_abs: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Bound of the absolute value."
    )
    regression: RegressionPolicy | None = Field(
        default=None, description="Compare with the baseline."
    )
    evidence: Literal["estimate", "significant", "interval"] = Field(
        default="estimate",
        description="What bounds judge: the `estimate`; whether it is beyond the bound by more "
        "than chance explains (`significant`: otherwise inconclusive, which warns); or the whole "
        "`interval`, and one that reaches across the bound stops the build.",
    )
    on_inconclusive: Literal["warn", "fail"] | None = Field(
        default=None, description="Overrides the policy's `on_inconclusive`."
    )
    advisory: bool = Field(default=False, description="Report, never fail the build.")
    report: bool = Field(
        default=False,
        description="Print the value without a limit; without a value there is no verdict.",
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
        if self.for_each is not None and self.for_each in self.where:
            raise ValueError(f"`{self.for_each}` is in both `where` and `for_each`")
        return self


class QuarantinePolicy(Strict):
    """A case that is excluded until a date: known to be unstable, under investigation."""

    case: Text = Field(description="Key of a source or follow-up, as reports and `plan` show it.")
    until: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = Field(
        description="Last day in quarantine, YYYY-MM-DD; afterwards the entry is an error."
    )
    reason: Text = Field(description="Why, for the reviewer; shown in every report.")
    suite: str | None = Field(default=None, description="Suite; default: every suite.")


class WaiverPolicy(Strict):
    """A rule whose failure stops no build until a date: known, and somebody answers for it."""

    rule: Text = Field(description="Metric of the waived rule, a default one's too.")
    where: dict[str, str] = Field(
        default_factory=dict, description="Its whole slice, with the value of its `for_each`."
    )
    suite: str | None = Field(default=None, description="Suite, where several have the rule.")
    up_to: Finite = Field(
        description="The value up to which it holds, in the unit of the rule's limit; a worse one "
        "fails the build."
    )
    regression: bool = Field(
        default=False,
        description="Whether it covers what is worse than baseline or anchor, too; else only a "
        "broken limit.",
    )
    reason: Annotated[Text, Field(max_length=300)] = Field(description="Why; in every report.")
    owner: Annotated[Text, Field(max_length=100)] = Field(description="Who answers for it.")
    expires: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = Field(
        description="Last day, YYYY-MM-DD, at most 366 ahead; afterwards the rule decides again."
    )


class Policy(Strict):
    """A fairness policy: what is tested, how, and what fails the build."""

    version: Literal[1] = Field(description="Version of the policy format.")
    name: Name = Field(description="Name of the policy; its baseline is `baselines/<name>.json`.")
    description: str = Field(default="", description="For readers.")
    seed: Seed = Field(
        default=42, description="Seed of resampling and of everything drawn at random."
    )
    system: SystemModel = Field(description="What is under test; its keys determine its kind.")
    reference: Annotated[SystemModel | Literal["base"] | None, Decides()] = Field(
        default=None,
        description="A second system in the form of `system`, such as the model before it was "
        "quantised, or the embedder before its successor; `base`: the system that the base commit "
        "of a pull request has. It is asked every question too, and the metrics `shift/…` say what "
        "moved, and for whom.",
    )
    suites: Annotated[list[SuiteModel], Field(min_length=1)] = Field(description="What is tested.")
    judge: JudgeModel | None = Field(
        default=None,
        description="Who says whether two open answers differ because of an attribute, for the "
        "relations that need it (`meta-fair/mr1-…` to `mr7-…`).",
    )
    gates: Annotated[list[GatePolicy], Field(min_length=1)] = Field(
        description="The rules that pass or fail the build, besides `unreadable/net` at most 0.02 "
        "with `evidence: significant`, which suites with neutral wording have by default."
    )
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        default=0.95, description="Confidence of intervals and tests."
    )
    correction: Literal["holm", "none"] = Field(
        default="holm", description="Correction for testing several rules."
    )
    on_inconclusive: Literal["warn", "fail"] = Field(
        default="warn", description="What an underpowered regression rule does."
    )
    min_decided: Fraction = Field(
        default=0.95,
        description="Share of planned cases that must be decided, and of each rule's cases; of a "
        "slice it is half.",
    )
    constant_answers: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="Whether a suite may have a verdict whose answers are (nearly) all the same, "
        "or do not depend on the sources. Such answers show nothing.",
    )
    max_invalid: Fraction = Field(
        default=0.10, description="Share of follow-ups the linter may reject."
    )
    min_overlap: Fraction = Field(
        default=0.9, description="Share of the baseline's cases that must remain comparable."
    )
    quarantine: list[QuarantinePolicy] = Field(
        default_factory=list, description="Cases that are excluded until a date."
    )
    waivers: list[WaiverPolicy] = Field(
        default_factory=list, description="Rules whose failure stops no build until a date."
    )
    redact: Literal["none", "excerpt", "hash"] = Field(
        default="excerpt", description="How texts appear in reports."
    )

    @model_serializer(mode="wrap")
    def _without_later_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out these keys where they hold nothing, so that hashes of other policies stay."""
        later = ("waivers", "reference")
        return {key: value for key, value in write(self).items() if key not in later or value}

    @property
    def compares_with_base(self) -> bool:
        """Return whether the reference is the base commit's system."""
        return self.reference == BASE

    @property
    def has_budget(self) -> bool:
        """Return whether any rule compares with an anchor."""
        return any(gate.regression and gate.regression.budget is not None for gate in self.gates)
