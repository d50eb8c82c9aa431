"""An application behind an address: `system: {http: …}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from fairgate.domain.schema import Access, Capabilities, Names, Role, Strict, SystemModel
from fairgate.io.http_messages import keeps_secrets
from fairgate.io.replies import ReplyPaths
from fairgate.systems.application import OpenApplication, application_notices
from fairgate.systems.budget import BudgetField, meter_for
from fairgate.systems.budget_meter import Meter
from fairgate.systems.embedders import EmbedderField
from fairgate.systems.exchange import (
    Address,
    Attempts,
    Concurrency,
    Header,
    PerSecond,
    ResponsePaths,
    Seconds,
    Variable,
    limits_of,
)
from fairgate.systems.labelling import LabelsPolicy
from fairgate.systems.request_template import RequestTemplate, request_template
from fairgate.systems.resources import Resources
from fairgate.systems.serving import ServePart
from fairgate.systems.system_kind import SystemKind

if TYPE_CHECKING:
    from fairgate.systems.over_http import HttpApplication


class HttpAsked(Strict):
    """How something is asked over HTTP."""

    url: Address = Field(description="Where each question is sent. Without credentials.")
    method: Literal["POST", "PUT", "GET"] = Field(
        default="POST", description="`GET` sends `request` as parameters of the address."
    )
    request: dict[str, Any] = Field(
        default={"question": "{{query}}"},
        description="JSON to send; `{{query}}` (the text alone), `{{text}}`, `{{instruction}}`, "
        "`{{prompt}}` (all in one), `{{options}}` and `{{documents}}` are filled in.",
    )
    headers: dict[Header, str] = Field(
        default_factory=dict, description="Headers to send; secrets do not belong here."
    )
    headers_env: dict[Header, Variable] = Field(
        default_factory=dict,
        description="Header to the NAME of the environment variable with its whole value; only "
        "over https or to this machine.",
    )
    revision: str | None = Field(
        default=None,
        description="What you change when it changes. Its replies are reused as long as "
        "it stays; without it every question is asked again in every run.",
    )
    revision_url: Address | None = Field(
        default=None, description="Address that answers with the revision."
    )
    timeout: Seconds = Field(default=60.0, description="Seconds to wait for one complete answer.")
    attempts: Attempts = 4
    concurrency: Concurrency = 4
    per_second: PerSecond = None

    @field_validator("request")
    @classmethod
    def _request(cls, request: dict[str, Any]) -> dict[str, Any]:
        request_template(request)
        return request

    @model_validator(mode="after")
    def _sends_secrets_safely(self) -> Self:
        open_line = [url for url in (self.url, self.revision_url) if url and not keeps_secrets(url)]
        if self.headers_env and open_line:
            raise ValueError(
                f"`headers_env` would be sent unencrypted to {open_line[0]}; give it an https:// "
                "address"
            )
        return self

    @property
    def accesses(self) -> list[Access]:
        """Return both addresses, with each variable that is sent there."""
        variables: list[str | None] = [*self.headers_env.values()] or [None]
        urls = [url for url in (self.url, self.revision_url) if url is not None]
        headers = (sorted(self.headers.items()), sorted(self.headers_env.items()))
        way = json.dumps([self.method, self.request, *headers], sort_keys=True)
        return [Access("asks", url, variable, way) for url in urls for variable in variables]

    @property
    def template(self) -> RequestTemplate:
        """Return what is sent."""
        return request_template(self.request)


class HttpPart(HttpAsked):
    """How an application is asked over HTTP."""

    response: ResponsePaths = Field(
        default_factory=ResponsePaths, description="The places of answer and documents."
    )


class HttpPolicy(SystemModel):
    """An application that is asked over HTTP."""

    keys: ClassVar[tuple[str, ...]] = ("http",)

    http: HttpPart = Field(description="An application behind an address.")
    serve: ServePart | None = Field(
        default=None, description="Starts the application for the run, and ends it after it."
    )
    embedder: Annotated[EmbedderField | None, Names(Role.EMBEDDER)] = Field(
        default=None, description="Embeds the documents that come back, for RRS; default `minilm`."
    )
    budget: BudgetField = None
    labels: LabelsPolicy | None = Field(
        default=None, description="Labels of its documents, where it gives none itself."
    )


class Http(SystemKind[HttpPolicy]):
    """One request a question."""

    id = "http"
    model = HttpPolicy

    def accesses(self, policy: HttpPolicy) -> Iterable[Access]:
        """Return both addresses, with each variable that is sent there, and what is started."""
        return [*policy.http.accesses, *(policy.serve.accesses if policy.serve else ())]

    def capabilities(self, policy: HttpPolicy) -> Capabilities:
        """Return what request and response have a place for."""
        return Capabilities(
            gives_documents=policy.http.response.documents is not None,
            takes_documents=policy.http.template.takes_documents,
            repeatable=True,
            scores_options=False,
        )

    def must_match(self, policy: HttpPolicy) -> Mapping[str, object]:
        """Return that the application decides itself how it decodes and how much it retrieves."""
        del policy
        return {"decoding": "of the application"}

    def side_by_side(self, policy: HttpPolicy) -> int:
        """Return as many as the policy says."""
        return policy.http.concurrency

    def notices(self, policy: HttpPolicy) -> Iterable[str]:
        """Return what request and response have no place for."""
        return application_notices(
            self.capabilities(policy),
            documents="give their place in `system.http.response.documents`",
            handing="give `system.http.request` a place for `{{documents}}` if it can use them",
            has_revision=bool(policy.http.revision or policy.http.revision_url),
        )

    def open(self, policy: HttpPolicy, resources: Resources) -> OpenApplication:
        """Return the application; it is asked for the first time in the run."""
        part, meter = policy.http, meter_for(policy, resources)
        return OpenApplication(
            http_application(part, part.response.paths, meter),
            resources,
            meter=meter,
            embedder=self.embedder(policy),
            capabilities=self.capabilities(policy),
            shown=f"http {part.url}",
        )


def http_application(part: HttpAsked, paths: ReplyPaths, meter: Meter) -> HttpApplication:
    """Return what is asked over HTTP; nothing is asked yet."""
    from fairgate.systems.over_http import HttpAddress, HttpApplication

    address = HttpAddress(
        url=part.url,
        method=part.method,
        template=part.template,
        paths=paths,
        headers=part.headers,
        headers_env=part.headers_env,
        revision=part.revision,
        revision_url=part.revision_url,
    )
    return HttpApplication(address, limits_of(part), used=meter.add)
