"""Templates of generated cases, from the package or from a user's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairgate.domain.attributes import Dimension
from fairgate.domain.errors import PolicyError
from fairgate.features.generation.templates import Template, TemplateFile, template_faults
from fairgate.policy.named_files import named_document
from fairgate.policy.parse import validated

KIND = "templates"


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
