"""A judge: the language models that say together whether a pair of responses is biased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from fairgate.engine.ports import SystemUnderTest
from fairgate.schema.fields import Name, Strict
from fairgate.systems.generators import GeneratorField
from fairgate.systems.open_local import OpenLocal, model_name
from fairgate.systems.resources import Resources


class JudgeFile(Strict):
    """A judge as its file describes it."""

    id: Name = Field(description="Name of the judge in records.")
    generators: Annotated[list[GeneratorField], Field(min_length=1, max_length=9)] = Field(
        description="Generators as policies have them; several vote, an odd number is best."
    )

    @property
    def names(self) -> list[str]:
        """Return what the models are called."""
        return [model_name(one) for one in self.generators]


def open_judges(judge: JudgeFile, resources: Resources) -> Sequence[SystemUnderTest]:
    """Return the models, each with the store of its answers; nothing is asked yet."""
    return [OpenLocal(None, one, resources) for one in judge.generators]
