"""`fairgate baseline accept|diff|verify`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import click

from fairgate.cli.options import EXISTING_FILE, EXISTING_FOLDER, runtime_of, runtime_options
from fairgate.cli.saying import say
from fairgate.domain.errors import BaselineError, ExitCode
from fairgate.domain.wording import harmless


@click.group(short_help="Accept, compare and verify baselines.")
def baseline() -> None:
    """Reviewed reference runs that later runs are compared with; keep them in version control."""


@baseline.command()
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option("--reason", required=True, help="Why this run is the reference; stands in the file.")
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="File to write (default: baselines/<policy name>.json).",
)  # fmt: skip
@click.option("--date", help="Date to store, YYYY-MM-DD (default: today).")
@click.option(
    "--burn-in", "burn_in_file", type=EXISTING_FILE,
    help="A burn-in.json whose standard deviations the baseline keeps.",
)  # fmt: skip
@runtime_options
def accept(run: Path, reason: str, **options: Any) -> int:
    """Make the finished run in the folder RUN the baseline of its policy.

    The answers are judged again, so an edited record cannot become a baseline; a run that decided
    too little is refused.
    """
    from fairgate.composition.diagnosing import read_burn_in
    from fairgate.composition.run_folder import baseline_path, check_run, replay, write_baseline
    from fairgate.engine.accept import baseline_of

    runtime = runtime_of(options)
    if not reason.strip():
        raise click.UsageError("--reason is empty; say why this run is the reference")
    check_run(run)
    replayed, given, loaded, _ = replay(run, options["policy"], runtime, lambda *_: (None, "none"))
    path = options["output"] or baseline_path(Path(loaded.parsed.path), loaded)
    date = options["date"] or dt.datetime.now(tz=dt.UTC).date().isoformat()
    burn_in = options["burn_in_file"]
    sds = read_burn_in(burn_in, loaded.policy.name) if burn_in else ()
    write_baseline(path, baseline_of(given, replayed, reason=reason, date=date, sds=sds))
    accepted = len(replayed.result.judged)
    unit = "pairs" if all(len(row.unit.asks) > 1 for row in replayed.result.judged) else "cases"
    click.echo(f"{path}: accepted {accepted} {unit}; review and commit it")
    return ExitCode.PASS


@baseline.command()
@click.argument("old", type=EXISTING_FILE)
@click.argument("new", type=EXISTING_FILE)
def diff(old: Path, new: Path) -> int:
    """Show what differs between two baseline files: conditions, cases, measurements."""
    from fairgate.composition.run_folder import read_baseline
    from fairgate.engine.baseline_diff import baseline_differences

    for line in baseline_differences(read_baseline(old), read_baseline(new)):
        click.echo(harmless(line))
    return ExitCode.PASS


@baseline.command()
@click.argument("files", type=EXISTING_FILE, nargs=-1, required=True, metavar="FILE...")
def verify(files: tuple[Path, ...]) -> int:
    """Check that each FILE is complete and unedited (integrity hash)."""
    from fairgate.composition.run_folder import read_baseline

    worst = ExitCode.PASS
    for file in files:
        try:
            found = read_baseline(file)
        except BaselineError as error:
            say(f"fairgate: error: {error}")
            worst = error.exit_code
            continue
        pairs = sum(len(suite.contents) for suite in found.suites.values())
        click.echo(f"{file}: intact; policy {harmless(found.policy)}, {pairs} pairs, {found.date}")
    return worst
