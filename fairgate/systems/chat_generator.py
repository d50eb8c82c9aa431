"""A generator behind an OpenAI-compatible endpoint: `generator: {endpoint: …}`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import Field, model_validator

from fairgate.domain.ports import Generator
from fairgate.domain.schema import Access, Strict, Text
from fairgate.io.http_messages import keeps_secrets
from fairgate.systems.budget_meter import Meter
from fairgate.systems.exchange import (
    Address,
    Attempts,
    Concurrency,
    PerSecond,
    Seconds,
    Variable,
    limits_of,
)
from fairgate.systems.generation import GeneratorModel


class EndpointPart(Strict):
    """Where a model is asked, and at which pace."""

    base_url: Address = Field(
        description="Address with its version, such as `http://127.0.0.1:8000/v1`; "
        "`/chat/completions` is appended. Without credentials."
    )
    model: Text = Field(description="Name of the model as the endpoint knows it.")
    api_key_env: Variable | None = Field(
        default=None, description="NAME of the environment variable that holds the key."
    )
    revision: str | None = Field(
        default=None,
        description="What you change when the model behind the name changes. Answers are reused "
        "as long as it stays; without it every question is asked again in every run.",
    )
    timeout: Seconds = Field(default=120.0, description="Seconds to wait for one complete answer.")
    attempts: Attempts = 4
    concurrency: Concurrency = 4
    per_second: PerSecond = None

    @model_validator(mode="after")
    def _sends_the_key_safely(self) -> Self:
        if self.api_key_env is not None and not keeps_secrets(self.base_url):
            raise ValueError(
                f"the key would be sent unencrypted to {self.base_url}; give it an https:// "
                "address, or leave out `api_key_env`"
            )
        return self


class EndpointGeneratorPolicy(GeneratorModel):
    """A model behind an OpenAI-compatible endpoint."""

    endpoint: EndpointPart = Field(description="Which model is asked, and where.")

    @property
    def accesses(self) -> Iterable[Access]:
        """Return the endpoint, with the variable that is sent there."""
        return (Access("asks", self.endpoint.base_url, self.endpoint.api_key_env),)


def open_chat_generator(chosen: EndpointGeneratorPolicy, meter: Meter) -> Generator:
    """Return the generator; nothing is asked yet."""
    from fairgate.systems.chat_endpoint import ChatAddress, ChatEndpoint

    part = chosen.endpoint
    address = ChatAddress(
        base_url=part.base_url,
        model=part.model,
        api_key_env=part.api_key_env,
        system=chosen.system,
        revision=part.revision,
    )
    return ChatEndpoint(address, chosen.chosen_decoding, limits_of(part), used=meter.add)
