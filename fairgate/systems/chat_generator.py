"""A generator behind an OpenAI-compatible endpoint: `generator: {endpoint: …}`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairgate.adapters.http_client.messages import Limits, keeps_secrets
from fairgate.engine.ports import Generator
from fairgate.schema.fields import Strict, Text
from fairgate.schema.outside import Access
from fairgate.systems.generation import GeneratorModel
from fairgate.systems.replies import Address, Variable


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
        "as long as it stays; without it everything is asked anew in every run.",
    )
    timeout: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=120.0, description="Seconds to wait for one complete answer."
    )
    attempts: Annotated[int, Field(ge=1, le=10)] = Field(
        default=4, description="How often a prompt is sent where the endpoint is busy."
    )
    concurrency: Annotated[int, Field(ge=1, le=256)] = Field(
        default=4, description="Prompts that are under way at once."
    )
    per_second: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="At most so many prompts a second."
    )

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


def open_chat_generator(chosen: EndpointGeneratorPolicy) -> Generator:
    """Return the generator; nothing is asked yet."""
    from fairgate.adapters.chat_endpoint import ChatAddress, ChatEndpoint

    part = chosen.endpoint
    address = ChatAddress(
        base_url=part.base_url,
        model=part.model,
        api_key_env=part.api_key_env,
        system=chosen.system,
        revision=part.revision,
    )
    limits = Limits(
        seconds=part.timeout,
        most_bytes=16 << 20,
        attempts=part.attempts,
        concurrency=part.concurrency,
        per_second=part.per_second,
    )
    return ChatEndpoint(address, chosen.chosen_decoding, limits)
