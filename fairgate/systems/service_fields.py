"""The policy of an application's replies: the places of their parts, and the pace of asking."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from fairgate.domain.schema import Strict
from fairgate.io.http_messages import Limits, keeps_secrets
from fairgate.io.replies import JsonPaths, ReplyPaths, json_path

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Header = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")]
MOST_BYTES = 16 << 20
"""Of one answer."""
Seconds = Annotated[
    float,
    Field(
        gt=0,
        le=3600,
        description="Seconds to wait for a complete answer; for `serve`, until it is ready.",
    ),
]
Concurrency = Annotated[int, Field(ge=1, le=256, description="Most requests in flight at once.")]
TAKES = (
    "`documents`: it answers with those that it is given; `changed`: it searches with that "
    "document in its corpus; `turns`: a program holds conversations, with `session` and `messages`."
)
Searching = Annotated[list[Literal["changed"]], Field(description=TAKES)]


def _checked(text: str, *, is_single: bool) -> str:
    """Return the text of a path. Raises ValueError where it is none, or names several parts."""
    if not json_path(text).is_single and is_single:
        raise ValueError(f"`{text}` names several parts, expected a path of one")
    return text


PartPath = Annotated[str, AfterValidator(partial(_checked, is_single=True))]
PartsPath = Annotated[str, AfterValidator(partial(_checked, is_single=False))]


class DocumentPaths(Strict):
    """The places of a document's parts."""

    text: PartPath = Field(default="$.text", description="Path of the text.")
    id: PartPath = Field(default="$.id", description="Path of the identifier.")
    label: PartPath = Field(default="$.label", description="Path of the label (`toxic`, …).")

    def within(self, paths: ReplyPaths) -> ReplyPaths:
        """Return the paths with those of a document's parts, read."""
        parts: dict[str, Any] = {name: json_path(path) for name, path in self.model_dump().items()}
        return replace(paths, **parts)


class ResponsePaths(Strict):
    """The places of answer and documents in a reply: `$.answer`, `$.contexts[*]`."""

    answer: PartPath = Field(default="$.answer", description="Path of the answer's text.")
    as_json: bool = Field(
        default=False, description="The answer is JSON, such as an agent's calls."
    )
    documents: PartsPath | None = Field(
        default=None,
        description="Path of the documents in rank order.",
    )
    document: DocumentPaths = Field(
        default_factory=DocumentPaths, description="The places of each document's parts."
    )

    @property
    def paths(self) -> ReplyPaths:
        """Return the paths, read."""
        documents = None if self.documents is None else json_path(self.documents)
        kind = JsonPaths if self.as_json else ReplyPaths
        return self.document.within(kind(answer=json_path(self.answer), documents=documents))


class OwnResponsePaths(ResponsePaths):
    """The same where FairGate sets the form: documents come under their name, or not at all."""

    documents: PartsPath | None = Field(
        default="$.documents",
        description="Path of the documents in rank order.",
    )

    @property
    def paths(self) -> ReplyPaths:
        """Return the paths, read."""
        return replace(super().paths, may_lack_documents="documents" not in self.model_fields_set)


def require_safe(url: str, key: str | None) -> None:
    """Raise ValueError where the key in a variable would be sent unencrypted."""
    if key is not None and not keeps_secrets(url):
        raise ValueError(
            f"the key would be sent unencrypted to {url}; give it an https:// address, or "
            "leave out `api_key_env`"
        )


def limits_of(*, seconds: float, concurrency: int = 4) -> Limits:
    """Return the limits of each request; an answer over `MOST_BYTES` is an error."""
    return Limits(seconds=seconds, most_bytes=MOST_BYTES, concurrency=concurrency)
