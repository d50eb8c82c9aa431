"""`fairgate comment`: what a pull request is told of a run, for whoever posts it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.wording import harmless
from fairgate.terminal.options import EXISTING_FILE, EXISTING_FOLDER, place_options, runtime_of


@click.command(short_help="Print the pull request comment of a run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option("--policy", type=EXISTING_FILE, help="Policy to judge by (default: the run's own).")
@click.option("--baseline", help="Baseline file, or `none`; default: baselines/<policy name>.json.")
@place_options
def comment(run: Path, policy: Path | None, **options: Any) -> int:
    """Print the comment of the run in the folder RUN, as Markdown without active content.

    For a run with `--base` it is that run's verdict, with what the change edits. For another run
    the stored answers are judged again, as `rescore` does.
    """
    from fairgate.gate.accepted_runs import locate_accepted_runs
    from fairgate.gate.run_folder import COMMENT, replay
    from fairgate.github.comments import read_comment
    from fairgate.reports.escaping import disarmed_markdown
    from fairgate.reports.markdown import render_comment
    from fairgate.reports.present import view_of

    baseline = options.pop("baseline")
    runtime = runtime_of(options)
    if policy is None and baseline is None and (run / COMMENT).is_file():
        text = read_comment(run).text
    else:
        done = replay(run, policy, runtime, partial(locate_accepted_runs, named=baseline))
        text = render_comment(view_of(done.run, done.loaded, run_path=str(run)))
    # Whoever wrote the folder writes no command into a runner's log, and mentions nobody.
    lines = (harmless(line) for line in text.rstrip().split("\n"))
    click.echo(disarmed_markdown("\n".join(lines)))
    return ExitCode.PASS
