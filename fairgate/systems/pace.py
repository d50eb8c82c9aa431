"""The policy's limits for requests over the network: rate, retries and time."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from fairgate.io.http_messages import Limits

MOST_BYTES = 16 << 20
"""Of one answer."""
Seconds = Annotated[float, Field(gt=0, le=3600)]
Attempts = Annotated[
    int, Field(ge=1, le=10, description="How often a request is sent where the other side is busy.")
]
Concurrency = Annotated[
    int, Field(ge=1, le=256, description="Requests that are under way at once.")
]
PerSecond = Annotated[
    Annotated[float, Field(gt=0)] | None, Field(description="At most so many requests a second.")
]


class Paced(Protocol):
    """A part of a policy that sets a pace."""

    timeout: float
    attempts: int
    concurrency: int
    per_second: float | None


def limits_of(part: Paced) -> Limits:
    """Return the limits of each request; an answer over `MOST_BYTES` is an error."""
    return Limits(
        seconds=part.timeout,
        most_bytes=MOST_BYTES,
        attempts=part.attempts,
        concurrency=part.concurrency,
        per_second=part.per_second,
    )
