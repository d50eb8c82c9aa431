"""Templates: frames and the attributes that stand in their slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fairgate.domain.attributes import AttributeUse, Dimension, Form
from fairgate.domain.errors import DataError, PolicyError
from fairgate.domain.schema import Name, Strict, Text
from fairgate.domain.wording import quoted, suggestion
from fairgate.policy.named_files import named_document
from fairgate.policy.parse import validated
from fairgate.relations.frames import Unrealisable, parse_frame, realise

Place = tuple[str | int, ...]
LEAST_SLOTS = 3
KIND = "templates"


@dataclass(frozen=True, slots=True)
class Slot:
    """Which attribute a template states, and in which form."""

    dimension: Dimension
    form: Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A frame with its slots, in the order in which the frame is given their attributes."""

    id: str
    frame: str
    slots: tuple[Slot, ...]


class SlotEntry(Strict):
    """One slot of a template."""

    dimension: Name = Field(description="Id of the attribute.")
    form: Annotated[str, Field(pattern="^(adjective|noun|clause|gerund)$")] = Field(
        description="`adjective`, `noun`, `clause` or `gerund`."
    )


class TemplateEntry(Strict):
    """One template."""

    id: Name = Field(description="Its name in results.")
    frame: Text = Field(description="The text with slots in braces.")
    slots: Annotated[list[SlotEntry], Field(min_length=LEAST_SLOTS, max_length=12)] = Field(
        description="The attributes that it states, in order; three or more."
    )


class TemplateFile(Strict):
    """Templates that are used together."""

    id: Name = Field(description="Name of the collection.")
    description: str = Field(default="", description="For readers.")
    source: str = Field(default="", description="Where the templates come from.")
    licence: str = Field(default="", description="Licence of the templates.")
    templates: Annotated[list[TemplateEntry], Field(min_length=1, max_length=500)] = Field(
        description="The templates."
    )

    def resolved(self, dimensions: Mapping[str, Dimension]) -> tuple[Template, ...]:
        """Return the templates with their attributes; `template_faults` must have found nothing."""
        return tuple(
            Template(
                id=entry.id,
                frame=entry.frame,
                slots=tuple(Slot(dimensions[s.dimension], Form(s.form)) for s in entry.slots),
            )
            for entry in self.templates
        )


def template_faults(
    entries: Sequence[TemplateEntry], dimensions: Mapping[str, Dimension]
) -> Iterator[tuple[Place, str]]:
    """Yield the place and sentence of every error across fields."""
    ids = [entry.id for entry in entries]
    for n, entry in enumerate(entries):
        where: Place = ("templates", n)
        if entry.id in ids[:n]:
            yield (*where, "id"), f"{quoted(entry.id)} is listed twice; rename one of them"
        unknown = list(_unknown(entry, where, dimensions))
        yield from unknown
        try:
            parse_frame(entry.frame)
        except DataError as error:
            yield (*where, "frame"), str(error)
            continue
        if not unknown:
            yield from _unsayable(entry, where, dimensions)


def _unknown(
    entry: TemplateEntry, where: Place, dimensions: Mapping[str, Dimension]
) -> Iterator[tuple[Place, str]]:
    names = [slot.dimension for slot in entry.slots]
    for m, name in enumerate(names):
        place: Place = (*where, "slots", m, "dimension")
        if name not in dimensions:
            hint = suggestion(name, dimensions)
            yield place, f"no attribute is called {quoted(name)}; {hint}"
        elif name in names[:m]:
            yield place, f"{quoted(name)} occurs twice in one template; use it once"


def _unsayable(
    entry: TemplateEntry, where: Place, dimensions: Mapping[str, Dimension]
) -> Iterator[tuple[Place, str]]:
    """Yield slots that cannot state a value of their attribute, each with the first such value."""
    for m, slot in enumerate(entry.slots):
        dimension = dimensions[slot.dimension]
        for value in dimension.values:
            use = AttributeUse(dimension=dimension, value=value, form=Form(slot.form))
            found = realise(entry.frame, [use])
            if isinstance(found, Unrealisable):
                yield (*where, "slots", m), f"{found.reason}; choose another form or frame"
                break


def load_templates(
    name: str,
    dimensions: Mapping[str, Dimension],
    *,
    folder: Path | None = None,
    confined: bool = False,
) -> tuple[Template, ...]:
    """Return the templates `name`: embedded ones, else those of a YAML or JSON file.

    A relative path starts at `folder` (default: the current directory), and cannot leave it where
    `confined`. Raises DataError, with the nearest names, where there is no such file, and
    PolicyError with all problems of a file: unknown attributes, unknown slots, values that a slot
    cannot say.
    """
    document = named_document(KIND, name, folder=folder or Path(), confined=confined)
    found, problems = validated(document, TemplateFile)
    if found is not None:
        faults = template_faults(found.templates, dimensions)
        problems += [document.problem(*fault) for fault in faults]
    if found is None or problems:
        raise PolicyError(problems)
    return found.resolved(dimensions)
