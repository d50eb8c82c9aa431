"""`fairgate hook check` and `fairgate hook smoke`: what pre-commit calls with changed files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, FairGateError
from fairgate.gate.loaded_policy import load_policy, narrowed
from fairgate.terminal import options as shared
from fairgate.terminal.output import say


@click.group(short_help="What pre-commit calls with changed files.")
def hook() -> None:
    """Quick checks before a commit or push; the gate itself runs on the pull request."""


@hook.command()
@click.argument("files", type=shared.EXISTING_FILE, nargs=-1, metavar="FILE...")
@shared.place_options
def check(files: tuple[Path, ...], **options: Any) -> int:
    """Validate FILES: policies (YAML) with all that they name, baselines (JSON). Loads no model."""
    from fairgate.gate.accepted_runs import read_baseline

    runtime = shared.runtime_of(options)
    worst = ExitCode.PASS
    for file in files:
        try:
            if file.suffix == ".json":
                read_baseline(file)
            else:
                load_policy(file, runtime)
        except FairGateError as error:
            say(f"fairgate: error: {error}")
            worst = worst or error.exit_code
    return worst


@hook.command()
@click.argument("policies", type=shared.EXISTING_FILE, nargs=-1, metavar="POLICY...")
@click.option(
    "--sources", type=click.IntRange(1, 1000), default=5, show_default=True,
    help="Sources or items of each suite to ask about.",
)  # fmt: skip
@shared.allow_python
@shared.runtime_options
def smoke(policies: tuple[Path, ...], sources: int, **options: Any) -> int:
    """Run each POLICY on a few sources, to see that models and data work.

    Too few sources decide nothing: whatever the rules' results, the exit code is 0 unless the run
    itself breaks.
    """
    from fairgate.domain.ports import SILENT
    from fairgate.gate.baseline import NO_REFERENCES
    from fairgate.gate.composition import Composition

    runtime = shared.runtime_of(options)
    for policy in policies:
        loaded = narrowed(load_policy(policy, runtime), sources, runtime)
        evidence = Composition(loaded, runtime, SILENT).run(NO_REFERENCES).run.result.evidence
        decided = f"{evidence.decided} of {evidence.planned} decided"
        about = f"{decided} on about {sources} sources or items a suite"
        click.echo(f"{policy}: smoke only, not the gate: {about}")
    return ExitCode.PASS
