"""What goes between a run and its workers: JSON texts of plain values, never an object or code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from fairgate.domain.errors import WorkerError
from fairgate.domain.executions import GenerationRequest, Stop
from fairgate.domain.json_text import flat, read_json
from fairgate.domain.wording import quoted


class Way(StrEnum):
    """How a model is asked."""

    GENERATE = "generate"
    SCORE = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Which model is asked, and how."""

    model: str
    """Names the model and how it runs, for whoever opens it in a worker."""
    fingerprint: str
    """That of the model here: a worker with another one answers nothing."""
    way: Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One text of a worker: exactly one of its parts is set."""

    machine: Mapping[str, str] | None = None
    position: int | None = None
    value: object = None
    """With `position`: an answer's fields, or scores."""
    failed: str | None = None
    """An error that another worker would have, too, in words."""
    is_usage: bool = False
    crashed: str | None = None
    """An error that nobody expected."""
    is_done: bool = False
    notices: Sequence[str] = ()
    """With `is_done`: what users should know of how the model ran, each once."""


def task_to(asks: Asks, requests: Mapping[int, GenerationRequest]) -> str:
    """Return the text of a task: questions by their position."""
    rows = [
        {**flat(request), "stop": None if request.stop is None else asdict(request.stop)}
        for request in requests.values()
    ]
    return json.dumps({**asdict(asks), "positions": list(requests), "requests": rows})


def task_from(text: str) -> tuple[Asks, dict[int, GenerationRequest]]:
    """Return a task that the run has sent."""
    found = json.loads(text)
    asks = Asks(model=found["model"], fingerprint=found["fingerprint"], way=Way(found["way"]))
    rows = [_request(row) for row in found["requests"]]
    return asks, dict(zip(found["positions"], rows, strict=True))


def _request(row: dict[str, object]) -> GenerationRequest:
    stop = row["stop"]
    if isinstance(stop, dict):
        row["stop"] = Stop(**{**stop, "phrases": tuple(stop["phrases"])})
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return GenerationRequest(**{**row, **lists})  # type: ignore[arg-type]


def reply_to(reply: Reply) -> str:
    """Return the text of a reply."""
    return json.dumps(flat(reply))


def reply_from(text: str) -> Reply:
    """Return what a worker sent. Raises WorkerError where it is no reply."""
    try:
        found = read_json(text, strict=False)
        reply = Reply(**found)
    except (ValueError, TypeError) as error:
        raise _unreadable(text) from error
    if not _is_sound(reply):
        raise _unreadable(text)
    return reply


def _is_sound(reply: Reply) -> bool:
    machine, position = reply.machine, reply.position
    is_table = isinstance(machine, dict) and all(isinstance(one, str) for one in machine.values())
    return (
        (machine is None or is_table)
        and isinstance(reply.notices, list | tuple)
        and all(isinstance(one, str) for one in reply.notices)
        and (position is None or type(position) is int)
        and all(part is None or isinstance(part, str) for part in (reply.failed, reply.crashed))
    )


def _unreadable(text: str) -> WorkerError:
    return WorkerError(
        f"a worker sent {quoted(text)}, which is no reply; expected FairGate of the same version "
        "in every worker"
    )
