"""`fairgate baseline accept|anchor|diff|verify`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import BaselineError, ExitCode
from fairgate.domain.wording import harmless
from fairgate.terminal import options as shared
from fairgate.terminal.output import say

Callback = Callable[..., Any]


@click.group(short_help="Accept, pin, compare and verify baselines.")
def baseline() -> None:
    """Reviewed reference runs that later runs are compared with; keep them in version control."""


def _of_a_run(default: str) -> Callable[[Callback], Callback]:
    """Return the options of commands that make a run a reference; `default` is their file."""
    file = click.Path(dir_okay=False, path_type=Path)
    of_run = "Policy of the run (default: the file that its record names)."
    return shared.together(
        click.argument("run", type=shared.EXISTING_FOLDER, metavar="RUN"),
        click.option(
            "--reason", required=True, help="Why this run is the reference; kept in the file."
        ),
        click.option("--policy", type=shared.EXISTING_FILE, help=of_run),
        click.option("--output", type=file, help=f"File to write (default: {default})."),
        click.option("--date", type=shared.DATE, help="Date to record (default: today)."),
        shared.runtime_options,
    )


@baseline.command()
@_of_a_run("baselines/<policy name>.json")
def accept(run: Path, reason: str, **options: Any) -> int:
    """Make the finished run in the folder RUN the baseline of its policy.

    The answers are judged again, so an edited record cannot become a baseline; a run with too few
    decided cases is refused.
    """
    return _write(run, reason, options)


@baseline.command()
@_of_a_run("baselines/<policy name>.anchor.json")
def anchor(run: Path, reason: str, **options: Any) -> int:
    """Pin the finished run in the folder RUN as the anchor of its policy.

    Gates with a `budget` compare with it as well as with the baseline, so that a
    series of small accepted changes cannot pass one by one. Pinning another one resets every
    budget, which a pull request's report lists as less strict.
    """
    return _write(run, reason, options, is_anchor=True)


def _write(run: Path, reason: str, options: Mapping[str, Any], *, is_anchor: bool = False) -> int:
    """Make a run the baseline or the anchor of its policy."""
    from fairgate.gate.accepted_runs import accepted_path, baseline_of, write_baseline
    from fairgate.gate.baseline import AcceptedRun
    from fairgate.gate.run_folder import check_run, replay
    from fairgate.reports.sections.verdict import breaks_a_limit

    runtime = shared.runtime_of(dict(options))
    if not reason.strip():
        raise click.UsageError("--reason is empty; state why this run is the reference")
    check_run(run)
    replayed = replay(run, options["policy"], runtime)
    loaded, result = replayed.loaded, replayed.run.result
    accepted = AcceptedRun.ANCHOR if is_anchor else AcceptedRun.BASELINE
    date = (options["date"] or dt.datetime.now(tz=dt.UTC)).date().isoformat()
    baseline = baseline_of(replayed.run, reason=reason, date=date)
    path = options["output"] or accepted_path(Path(loaded.parsed.path), loaded, accepted)
    write_baseline(path, baseline)
    kept = len(result.assessed)
    unit = "pairs" if all(len(row.unit.asks) > 1 for row in result.assessed) else "cases"
    done = "pinned as the anchor," if is_anchor else "accepted"
    click.echo(f"{path}: {done} {kept} {unit}; review and commit it")
    broken = sum(breaks_a_limit(rule) for rule in result.rules)
    if broken:
        rules = f"{broken} rule{'s' if broken > 1 else ''}"
        say(
            f"fairgate: note: this run fails: {rules} with limits that compare with no baseline; "
            "the next run stays red until the cause is fixed or the limit is changed"
        )
    if is_anchor and not loaded.policy.has_budget:
        say("fairgate: note: no gate has a `budget` yet")
    return ExitCode.PASS


@baseline.command()
@click.argument("old", type=shared.EXISTING_FILE)
@click.argument("new", type=shared.EXISTING_FILE)
def diff(old: Path, new: Path) -> int:
    """Show what differs between two files of baselines or anchors: conditions, cases, values."""
    from fairgate.gate.accepted_runs import read_baseline
    from fairgate.gate.baseline import baseline_differences

    for line in baseline_differences(read_baseline(old), read_baseline(new)):
        click.echo(harmless(line))
    return ExitCode.PASS


@baseline.command()
@click.argument("files", type=shared.EXISTING_FILE, nargs=-1, required=True, metavar="FILE...")
def verify(files: tuple[Path, ...]) -> int:
    """Check that each FILE, a baseline or an anchor, is complete and unedited.

    Every value is computed again from the file's cases; those that differ are named. A file made
    with other versions of metrics does not pass: its values cannot be computed again.
    """
    from fairgate.domain.wording import first_few
    from fairgate.gate.accepted_runs import read_baseline
    from fairgate.gate.baseline_files import NOT_CHECKED, unverified
    from fairgate.policy.schema import ANCHOR_SUFFIX

    worst = ExitCode.PASS
    for file in files:
        try:
            accepted = read_baseline(file)
        except BaselineError as error:
            say(f"fairgate: error: {error}")
            worst = error.exit_code
            continue
        if wrong := [*unverified(accepted)]:
            why = (
                f"{first_few(wrong)}; make it again with `fairgate baseline accept RUN --reason …`"
            )
            say(f"fairgate: error: {file}: is not intact: {why}")
            worst = ExitCode.BASELINE
            continue
        pairs = sum(len(suite.contents) for suite in accepted.suites.values())
        kind = "anchor of policy" if file.stem.endswith(ANCHOR_SUFFIX) else "policy"
        click.echo(
            f"{file}: intact; {kind} {harmless(accepted.policy)}, {pairs} pairs, {accepted.date}"
        )
        click.echo(f"{file}: not checked, for no case gives it: {NOT_CHECKED}")
    return worst
