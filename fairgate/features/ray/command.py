"""`--workers`: who asks the models of a run."""

from __future__ import annotations

from typing import Any

import click

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Team
from fairgate.domain.runtime import Runtime, Workers
from fairgate.terminal.options import extended


def with_workers(command: click.Command) -> click.Command:
    """Return a command that asks a policy's models with the options of workers."""
    asked: Any = command.callback

    @click.option(
        "--workers",
        type=click.IntRange(1, 1000),
        metavar="N",
        help="Ask models in N processes, by source; never changes a result.",
    )
    @click.option(
        "--executor",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Where --workers run: on this machine, or as actors of a Ray cluster.",
    )
    @click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="Ray's head as HOST:PORT; `local` starts a cluster of its own for the run.",
    )
    def with_workers_(
        workers: int | None, executor: str, ray_address: str | None, **options: Any
    ) -> int:
        return int(asked(workers=_workers(workers, ray_address, executor), **options))

    return extended(command, with_workers_)


def _workers(count: int | None, address: str | None, executor: str) -> Workers | None:
    is_ray = executor == "ray"
    if address is not None and not is_ray:
        raise UsageError("--ray-address names a Ray cluster; add --executor ray, or leave it out")
    if is_ray and (count is None or address is None):
        lacking = "--workers N" if count is None else "--ray-address HOST:PORT (or `local`)"
        raise UsageError(f"--executor ray needs {lacking}: how many actors, in which cluster")
    if count is None or (count == 1 and not is_ray):
        return None
    return Workers(count=count, ray_address=address, team=_team)


def _team(loaded: Any, runtime: Runtime) -> Team | None:
    from fairgate.features.ray.workers import team_for

    return team_for(loaded, runtime)
