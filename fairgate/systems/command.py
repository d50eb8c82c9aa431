"""An application that is a program: `system: {command: [./ask.sh]}`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, Tag

from fairgate.domain.schema import (
    Access,
    ByShape,
    Capabilities,
    Names,
    Role,
    Strict,
    SystemModel,
    Text,
)
from fairgate.io.replies import ReplyPaths
from fairgate.systems.application import OpenApplication, application_notices
from fairgate.systems.budget import BudgetField, meter_for
from fairgate.systems.budget_meter import Meter
from fairgate.systems.embedders import EmbedderField
from fairgate.systems.exchange import OwnResponsePaths, Variable
from fairgate.systems.labelling import LabelsPolicy
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import SystemKind

if TYPE_CHECKING:
    from fairgate.systems.over_lines import LineApplication

Arguments = Annotated[list[Text], Field(min_length=1)]


class CommandAsked(Strict):
    """How a program is started and asked."""

    run: Arguments = Field(description="Program and arguments; no shell is between.")
    env: list[Variable] = Field(
        default_factory=list,
        description="NAMES of the environment variables that the program is given, besides `PATH`, "
        "`HOME` and the like; all others are kept from it.",
    )
    revision: str | None = Field(
        default=None,
        description="What you change when the program changes. Its replies are reused as long as "
        "it stays; without it every question is asked again in every run.",
    )
    timeout: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=120.0, description="Seconds to wait for a reply; the first includes the start."
    )
    processes: Annotated[int, Field(ge=1, le=64)] = Field(
        default=1, description="How many of the program run side by side."
    )

    @property
    def accesses(self) -> list[Access]:
        """Return the program, with each variable that it is given."""
        variables: list[str | None] = [*self.env] or [None]
        return [Access("starts", shlex.join(self.run), variable) for variable in variables]


class CommandPart(CommandAsked):
    """An application that is a program."""

    response: OwnResponsePaths = Field(
        default_factory=OwnResponsePaths, description="The places of answer and documents."
    )
    takes_documents: bool = Field(
        default=False,
        description="Whether it answers with the `documents` of the question where there are some.",
    )


class CommandPolicy(SystemModel):
    """An application that is a program, with JSON lines on its input and output."""

    keys: ClassVar[tuple[str, ...]] = ("command",)

    command: Annotated[
        Annotated[Arguments, Tag("<list>")] | Annotated[CommandPart, Tag("<mapping>")], ByShape
    ] = Field(description="Program and arguments, or a mapping.")
    embedder: Annotated[EmbedderField | None, Names(Role.EMBEDDER)] = Field(
        default=None, description="Embeds the documents that come back, for RRS; default `minilm`."
    )
    budget: BudgetField = None
    labels: LabelsPolicy | None = Field(
        default=None, description="Labels of its documents, where it gives none itself."
    )

    @property
    def part(self) -> CommandPart:
        """Return the mapping that arguments alone stand for."""
        if isinstance(self.command, list):
            return CommandPart(run=self.command)
        return self.command


class Command(SystemKind[CommandPolicy]):
    """One line a question, one line a reply."""

    id = "command"
    model = CommandPolicy

    def accesses(self, policy: CommandPolicy) -> Iterable[Access]:
        """Return the program, with each variable that it is given."""
        return policy.part.accesses

    def capabilities(self, policy: CommandPolicy) -> Capabilities:
        """Return the program's capabilities, as the policy declares them."""
        return Capabilities(
            gives_documents=policy.part.response.documents is not None,
            takes_documents=policy.part.takes_documents,
            repeatable=True,
            scores_options=False,
        )

    def must_match(self, policy: CommandPolicy) -> Mapping[str, object]:
        """Return that the application decides itself how it decodes and how much it retrieves."""
        del policy
        return {"decoding": "of the application"}

    def side_by_side(self, policy: CommandPolicy) -> int:
        """Return how many of the program run."""
        return policy.part.processes

    def notices(self, policy: CommandPolicy) -> Iterable[str]:
        """Return what the policy leaves open about the application."""
        return application_notices(
            self.capabilities(policy),
            documents="give their place in `system.command.response.documents`",
            handing="set `system.command.takes_documents: true` if it can use them",
            has_revision=policy.part.revision is not None,
        )

    def open(self, policy: CommandPolicy, resources: Resources) -> OpenApplication:
        """Return the application; the program is started when it is first asked."""
        part, meter = policy.part, meter_for(policy, resources)
        return OpenApplication(
            line_application(part, part.response.paths, resources, meter),
            resources,
            meter=meter,
            embedder=self.embedder(policy),
            capabilities=self.capabilities(policy),
            shown=f"command {shlex.join(part.run)}",
        )


def line_application(
    part: CommandAsked, paths: ReplyPaths, resources: Resources, meter: Meter
) -> LineApplication:
    """Return what is asked line by line; the program is not started yet."""
    from fairgate.systems.over_lines import LineApplication, Program

    return LineApplication(
        Program(
            command=tuple(part.run),
            folder=resources.runtime.under_test.root,
            env=tuple(part.env),
            paths=paths,
            timeout=part.timeout,
            processes=part.processes,
            revision=part.revision,
        ),
        used=meter.add,
    )
