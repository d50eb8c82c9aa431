"""What the policy says of a server that is started for a run and ended after it: `serve:`."""

from __future__ import annotations

import contextlib
import shlex
from contextlib import AbstractContextManager
from typing import Annotated

from pydantic import Field

from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Access, Strict, SystemModel, Text
from fairgate.systems.exchange import Address, Seconds, Variable


class ServePart(Strict):
    """A server that runs for as long as it is asked."""

    command: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Program and arguments; no shell is between."
    )
    ready_url: Address = Field(
        description="Address that answers with a status of 200 to 299 once it can be asked."
    )
    timeout: Seconds = Field(default=60.0, description="Seconds until it must be ready.")
    env: list[Variable] = Field(
        default_factory=list,
        description="NAMES of the environment variables that it is given, besides `PATH`, `HOME` "
        "and the like; all others are kept from it.",
    )

    @property
    def accesses(self) -> list[Access]:
        """Return the program with each variable that it is given, and what is asked."""
        variables: list[str | None] = [*self.env] or [None]
        starts = [Access("starts", shlex.join(self.command), variable) for variable in variables]
        return [*starts, Access("asks", self.ready_url)]


def served_for(system: SystemModel, runtime: Runtime) -> AbstractContextManager[None]:
    """Return a block in which the policy's server runs, if it names one."""
    part: ServePart | None = getattr(system, "serve", None)
    if part is None:
        return contextlib.nullcontext()
    from fairgate.systems.server_process import Server, served

    return served(
        Server(
            command=tuple(part.command),
            folder=runtime.under_test.root,
            ready_url=part.ready_url,
            timeout=part.timeout,
            env=tuple(part.env),
        )
    )
