"""The policy file as pydantic models: every field described, nothing unknown allowed.

The JSON Schema that editors use is generated from these classes, and so is the policy reference.
Which kinds of systems and suites there are is not known here: see `policy_model` in assembled.py.
Rates are fractions; names of embedded things, paths and Hugging Face ids are plain strings.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairgate.domain.fields import Fraction, JudgeModel, Name, Seed, Strict, SuiteModel, SystemModel
from fairgate.policy.gates import GatePolicy, QuarantinePolicy

ANCHOR_SUFFIX = ".anchor"
"""Follows a policy's name in the name of its anchor's file, so no policy's name may end so."""


class Policy(Strict):
    """A fairness policy: what is tested, how, and what fails the build."""

    version: Literal[1] = Field(description="Version of the policy format.")
    name: Name = Field(description="Name of the policy; its baseline is `baselines/<name>.json`.")
    description: str = Field(default="", description="For readers.")
    seed: Seed = Field(
        default=42, description="Seed of resampling and of everything drawn at random."
    )
    system: SystemModel = Field(description="What is under test; its keys determine its kind.")
    suites: Annotated[list[SuiteModel], Field(min_length=1)] = Field(description="What is tested.")
    judge: JudgeModel | None = Field(
        default=None,
        description="Who says whether two open answers differ because of an attribute, for the "
        "relations that need it (`meta-fair/mr1-…` to `mr7-…`).",
    )
    gates: Annotated[list[GatePolicy], Field(min_length=1)] = Field(
        description="The rules that pass or fail the build, besides `unreadable/net` at most 0.02, "
        "which suites with a control arm have by default."
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
    redact: Literal["none", "excerpt", "hash"] = Field(
        default="excerpt", description="How texts appear in reports."
    )

    @property
    def has_budget(self) -> bool:
        """Return whether any rule compares with an anchor."""
        return any(gate.regression and gate.regression.budget is not None for gate in self.gates)
