"""`fairgate record`: what finished runs measured, as a page that a person can date and sign.

Everything comes from the runs' records, from git (the commit that was tested, and when each limit
was written) and from the command line. A record says what was measured, never what that means in
law. Equal runs of equal histories give equal bytes. Every text of a run is cut and made harmless as
it is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import harmless
from fairgate.features.record import words
from fairgate.features.record.changes import changes_since, earlier_record
from fairgate.features.record.model import Record, TestedRun, as_json
from fairgate.features.record.page import render_record
from fairgate.features.record.run import short
from fairgate.features.record.tested import tested_run
from fairgate.io.durable import write_text
from fairgate.io.git import keep_output_out_of_git
from fairgate.io.tables import file_sha256
from fairgate.metrics.parity import OUTCOMES
from fairgate.terminal import options as shared


@click.command(short_help="Write what runs measured as a record to sign.")
@click.argument("runs", type=shared.EXISTING_FOLDER, nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), multiple=True, required=True,
    help="File to write, `.html` (a page to print and sign) or `.json`; may be repeated.",
)  # fmt: skip
@click.option("--by", default="", help="Who ran the tests (default: a line to fill in).")
@click.option(
    "--since", type=shared.EXISTING_FILE, help="Earlier record (.json): list what changed."
)
@click.option(
    "--policy", type=shared.EXISTING_FILE, multiple=True,
    help="Policy of each RUN, in their order (default: the files that the runs' records name).",
)  # fmt: skip
def record(runs: tuple[Path, ...], out: tuple[Path, ...], **options: Any) -> int:
    """Write one record of the finished runs in the folders RUN.

    It contains the system's fingerprints, who was tested and who was not, every limit with the
    commit that set it, what was measured and what could not be seen, waivers, and lines to sign.
    """
    if wrong := [path for path in out if path.suffix not in (".html", ".json")]:
        raise UsageError(f"--out {wrong[0]}: expected a name that ends in .html or .json")
    policies: tuple[Path, ...] = options["policy"]
    if policies and len(policies) != len(runs):
        raise UsageError(f"--policy is given {len(policies)} times for {len(runs)} runs")
    given = policies or (None,) * len(runs)
    tested = [tested_run(run, policy) for run, policy in zip(runs, given, strict=True)]
    since = options["since"]
    earlier = earlier_record(since) if since else None
    whole = Record(
        date=max(run.day for run, _ in tested),
        tested_by=short(options["by"]),
        runs=[run for run, _ in tested],
        terms=dict(words.TERMS),
        counted=_outcomes_counted(run for run, _ in tested),
        unseen=words.UNSEEN,
        verified=[*words.VERIFIED],
        since={"date": earlier.date, "sha256": file_sha256(str(since))} if earlier else {},
        changes=[short(text) for text in changes_since(earlier, tested)] if earlier else [],
    )
    for path in out:
        text = as_json(whole) if path.suffix == ".json" else render_record(whole)
        keep_output_out_of_git(path)
        write_text(path, text)
        click.echo(f"{harmless(str(path))}: {len(tested)} run{'s' * (len(tested) > 1)}")
    return ExitCode.PASS


def _outcomes_counted(runs: Iterable[TestedRun]) -> dict[str, str]:
    """Return, in words, the count of each outcome that differs in some run."""
    compared = {each.outcome for run in runs for each in run.identities}
    return {
        event: words.COUNTED.get(column.column, ("", f"the answers {column.event}"))[1]
        for outcome in OUTCOMES
        for column in outcome.columns
        if (event := f"{outcome.noun} {column.event}") in compared
    }
