"""`fairgate burn-in`: what is noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.gate.loaded_policy import load_policy
from fairgate.terminal.options import (
    EXISTING_FILE,
    FOLDER,
    allow_python,
    runtime_of,
    runtime_options,
)
from fairgate.terminal.progress import progress_for


@click.command("burn-in", short_help="Measure the noise of the unchanged system and of its gate.")
@click.argument("policy", type=EXISTING_FILE)
@click.option(
    "--repeats", type=click.IntRange(2, 50), default=4, show_default=True,
    help="How many replicas to run; each asks every question again.",
)  # fmt: skip
@click.option("--out", type=FOLDER, help="Folder for burn-in.json (default: in the cache).")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@allow_python
@runtime_options
def burn_in(policy: Path, **options: Any) -> int:
    """Run the unchanged system of POLICY several times and compare the replicas with each other.

    Replicas differ by what means nothing: other neutral phrases, another order of the documents in
    the prompt, other sampling seeds. Reports how often the gate would have failed, how steady the
    labels are, and the standard deviations that `power` and `baseline accept --burn-in` use.
    """
    from fairgate.features.burn_in.burn_in import burn_in_policy, render_burn_in, write_burn_in

    runtime = runtime_of(options)
    progress = progress_for(quiet=options["quiet"])
    loaded = load_policy(policy, runtime)
    found = burn_in_policy(loaded, runtime, progress, options["repeats"])
    folder = options["out"] or runtime.cache / "burn-in" / loaded.policy.name
    path = write_burn_in(folder, found)
    click.echo(render_burn_in(found))
    click.echo(f"\n{path}: for `fairgate power --burn-in` and `fairgate baseline accept --burn-in`")
    return ExitCode.PASS
