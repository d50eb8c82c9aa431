"""`fairgate blame`: which change explains a red verdict, and which documents."""

from __future__ import annotations

from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal.options import (
    EXISTING_FOLDER,
    cache_option,
    echo_json,
    json_option,
    machine_options,
    runtime_of,
)
from fairgate.terminal.output import say
from fairgate.terminal.progress import progress_for


@click.command(short_help="Say which change, and which documents, explain a red verdict.")
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.option("--policy", required=True, help="Path of the policy in BASE and in HEAD.")
@click.option(
    "--budget", type=click.IntRange(0, 10_000_000), default=20_000, show_default=True,
    help="Most questions to the models; stored answers cost none.",
)  # fmt: skip
@click.option(
    "--run", type=EXISTING_FOLDER, help="Folder of HEAD's run, for blame.json beside its reports."
)
@click.option(
    "--confined", is_flag=True,
    help="Refuse paths that lead out of BASE and HEAD, for changes that nobody has reviewed.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@json_option
@cache_option
@machine_options
def blame(base: str, head: str, **options: Any) -> int:
    """Cross BASE and HEAD over what differs between them, and say what explains HEAD's red verdict.

    BASE and HEAD are folders that hold the policy, or git revisions of the current repository.
    Model, prompt, decoding, embedder, corpus and top_k are exchanged; where the corpus explains the
    verdict, a smallest set of changed documents is searched whose reversal restores it. Answers are
    stored, so that a second call goes on where the first ended. Exits 0 whatever is found.
    """
    from fairgate.features.blame.report import blame_record, render_blame
    from fairgate.features.blame.versions import blaming, write_blame
    from fairgate.gate.run_folder import check_run

    runtime = runtime_of(options, confined=options["confined"])
    progress = progress_for(quiet=options["quiet"])
    if options["run"] is not None:
        check_run(options["run"])
    with blaming(base, head, options["policy"], runtime, options["budget"], progress) as crossed:
        if not options["quiet"]:
            say(f"fairgate: blame: {crossed.announcement}")
        found = crossed.result(progress)
    for notice in crossed.notices:
        say(f"fairgate: note: {notice}")
    if options["run"] is not None:
        write_blame(options["run"], found)
    if options["shape"] == "json":
        echo_json(blame_record(found))
    else:
        click.echo(render_blame(found))
    return ExitCode.PASS
