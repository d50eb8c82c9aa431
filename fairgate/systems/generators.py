"""Which language model answers, wherever a policy or a judge names one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Tag

from fairgate.systems.chat_generator import EndpointGeneratorPolicy
from fairgate.systems.onnx_generator import GeneratorPolicy


def _place(value: object) -> str:
    """Return the kind of generator: the key `endpoint` determines it."""
    named = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return "<endpoint>" if "endpoint" in named else "<here>"


GeneratorField = Annotated[
    Annotated[GeneratorPolicy, Tag("<here>")]
    | Annotated[EndpointGeneratorPolicy, Tag("<endpoint>")],
    Discriminator(_place),
]
"""A model that runs here, or one behind an endpoint."""
