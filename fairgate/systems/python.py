"""An application that is a Python function: `system: {python: "my_app.rag:ask"}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, Tag

from fairgate.domain.errors import UsageError
from fairgate.domain.schema import Access, ByShape, Capabilities, Names, Role, Strict, SystemModel
from fairgate.domain.wording import quoted
from fairgate.io.replies import ReplyPaths
from fairgate.systems.application import OpenApplication, application_notices
from fairgate.systems.budget import BudgetField, meter_for
from fairgate.systems.budget_meter import Meter
from fairgate.systems.embedders import EmbedderField
from fairgate.systems.exchange import OwnResponsePaths
from fairgate.systems.labelling import LabelsPolicy
from fairgate.systems.resources import Resources
from fairgate.systems.system_kind import SystemKind

if TYPE_CHECKING:
    from fairgate.systems.over_calls import CallApplication

Target = Annotated[str, Field(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$")]


class PythonAsked(Strict):
    """What is imported and called."""

    call: Target = Field(description="`module:function`.")
    revision: str | None = Field(
        default=None,
        description="What you change when the function changes. Its replies are reused as long "
        "as it stays; without it every question is asked again in every run.",
    )

    @property
    def accesses(self) -> list[Access]:
        """Return the code that is imported."""
        return [Access("imports", self.call)]


class PythonPart(PythonAsked):
    """An application that is a function, and how its result is read."""

    response: OwnResponsePaths = Field(
        default_factory=OwnResponsePaths, description="The places of answer and documents."
    )
    takes_documents: bool = Field(
        default=False, description="Whether it can answer with given `documents`."
    )


class PythonPolicy(SystemModel):
    """An application that is a Python function; needs `--allow-python`."""

    keys: ClassVar[tuple[str, ...]] = ("python",)

    python: Annotated[
        Annotated[Target, Tag("<scalar>")] | Annotated[PythonPart, Tag("<mapping>")], ByShape
    ] = Field(description="`module:function`, or a mapping; needs `--allow-python`.")
    embedder: Annotated[EmbedderField | None, Names(Role.EMBEDDER)] = Field(
        default=None, description="Embeds the documents that come back, for RRS; default `minilm`."
    )
    budget: BudgetField = None
    labels: LabelsPolicy | None = Field(
        default=None, description="Labels of its documents, where it gives none itself."
    )

    @property
    def part(self) -> PythonPart:
        """Return the mapping that a name alone stands for."""
        return PythonPart(call=self.python) if isinstance(self.python, str) else self.python


class Python(SystemKind[PythonPolicy]):
    """One call a question."""

    id = "python"
    model = PythonPolicy

    def accesses(self, policy: PythonPolicy) -> Iterable[Access]:
        """Return the code that is imported."""
        return policy.part.accesses

    def capabilities(self, policy: PythonPolicy) -> Capabilities:
        """Return the function's capabilities, as the policy declares them."""
        return Capabilities(
            gives_documents=policy.part.response.documents is not None,
            takes_documents=policy.part.takes_documents,
            repeatable=True,
            scores_options=False,
        )

    def must_match(self, policy: PythonPolicy) -> Mapping[str, object]:
        """Return that the application decides itself how it decodes and how much it retrieves."""
        del policy
        return {"decoding": "of the application"}

    def notices(self, policy: PythonPolicy) -> Iterable[str]:
        """Return what the policy leaves open about the application."""
        return application_notices(
            self.capabilities(policy),
            documents="give their place in `system.python.response.documents`",
            handing="set `system.python.takes_documents: true` if it can use them",
            has_revision=policy.part.revision is not None,
        )

    def open(self, policy: PythonPolicy, resources: Resources) -> OpenApplication:
        """Return the application. Raises UsageError where nobody allowed its import."""
        part, meter = policy.part, meter_for(policy, resources)
        return OpenApplication(
            call_application(part, part.response.paths, resources, meter),
            resources,
            meter=meter,
            embedder=self.embedder(policy),
            capabilities=self.capabilities(policy),
            shown=f"python {part.call}",
        )


def call_application(
    part: PythonAsked, paths: ReplyPaths, resources: Resources, meter: Meter
) -> CallApplication:
    """Return what is called, not imported yet. Raises UsageError where nobody allowed it."""
    from fairgate.systems.over_calls import CallApplication, Function

    if not resources.runtime.allow_python:
        raise UsageError(
            f"the policy's system calls {quoted(part.call)}, which runs with all your rights; add "
            "--allow-python if you trust it"
        )
    return CallApplication(
        Function(
            target=part.call,
            folder=resources.runtime.under_test.root,
            paths=paths,
            revision=part.revision,
        ),
        used=meter.add,
    )
