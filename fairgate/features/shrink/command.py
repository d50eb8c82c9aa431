"""`fairgate shrink`: the shortest texts that still fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    allow_python,
    echo_json,
    json_option,
    runtime_of,
    runtime_options,
)
from fairgate.terminal.output import say
from fairgate.terminal.progress import progress_for


@click.command(short_help="Make findings of a run as short as they still fail.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option("--suite", help="Suite of the cases, where several have them.")
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@click.option(
    "--findings", type=click.IntRange(1, 1000), default=5, show_default=True,
    help="Most findings, where no CASE is named.",
)  # fmt: skip
@click.option(
    "--questions", type=click.IntRange(1, 100_000), default=1000, show_default=True,
    help="Most questions to the system for one finding.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@json_option
@allow_python
@runtime_options
def shrink(run: Path, cases: tuple[str, ...], **options: Any) -> int:
    """Leave words and attributes out of a finding's source as long as it still fails.

    Each shorter text passes the linter and is asked anew; at the end no single word and no single
    attribute can be left out (1-minimal). CASE is a violated pair of the finished run in the folder
    RUN; without one, findings of `intersectional/hidden` are taken in the order of the plan.
    """
    from fairgate.features.shrink.shrink import (
        ShrinkChoice,
        render_shrunk,
        shrink_run,
        shrunk_record,
    )

    runtime = runtime_of(options)
    chosen = {name: options[name] for name in ("suite", "policy", "findings", "questions")}
    progress = progress_for(quiet=options["quiet"])
    shrinking = shrink_run(run, ShrinkChoice(keys=cases, **chosen), runtime, progress)
    say(shrinking.announcement)
    if options["shape"] == "json":
        redact = shrinking.redact
        echo_json([shrunk_record(found, redact=redact) for found in shrinking.results])
        return ExitCode.PASS
    for found in shrinking.results:
        click.echo(render_shrunk(found, redact=shrinking.redact))
    return ExitCode.PASS
