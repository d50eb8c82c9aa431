"""What every policy model of a judge has; the models that judge are described in `systems/`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

from pydantic import Field

from fairgate.domain.fields import Fraction, Name, Strict, Text
from fairgate.domain.outside import Names, NamesOutside, Role

LEAST_KAPPA, LEAST_DECIDED, LEAST_PAIRS = 0.4, 0.8, 20


class JudgeFloor(Strict):
    """What a judge's record must reach for its verdicts to count; estimates are compared."""

    precision: Fraction | None = Field(default=None, description="Least precision.")
    recall: Fraction | None = Field(default=None, description="Least recall.")
    f1: Fraction | None = Field(default=None, description="Least F1.")
    auc: Fraction | None = Field(default=None, description="Least area under the ROC curve.")
    kappa: Fraction = Field(
        default=LEAST_KAPPA,
        description="Least agreement with people beyond chance (Cohen's kappa).",
    )
    stability: Fraction | None = Field(
        default=None, description="Least share of pairs with one verdict over repeats."
    )
    decided: Fraction = Field(
        default=LEAST_DECIDED, description="Least share of the labelled pairs with a verdict."
    )
    pairs: int = Field(default=LEAST_PAIRS, ge=2, description="Fewest pairs with a verdict.")


class JudgeModel(NamesOutside):
    """The policy's `judge`: language models that vote, and what they were measured to be worth."""

    id: Name = Field(description="Name of the judge in records and reports.")
    record: Annotated[Text | None, Names(Role.JUDGE_RECORD)] = Field(
        default=None,
        description="JSON file that `fairgate judge evaluate` wrote. Without it, below the floor, "
        "or where it is of another judge, verdicts are reported and fail no build.",
    )
    floor: JudgeFloor = Field(
        default_factory=JudgeFloor, description="What the record must reach for that."
    )

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Return what the models are called."""

    @property
    @abstractmethod
    def definition(self) -> str:
        """Return what identifies models, prompts and decoding as they are written."""
