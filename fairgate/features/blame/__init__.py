"""`fairgate blame`: which change explains a red verdict, and which documents."""

from __future__ import annotations

from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal import options as shared
from fairgate.terminal.document import echo_json
from fairgate.terminal.output import progress_for, say


@click.command(short_help="Say which change, and which documents, explain a red verdict.")
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.option("--policy", required=True, help="Path of the policy in BASE and in HEAD.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@shared.json_option
@shared.cache_option
@shared.machine_options
def blame(base: str, head: str, **options: Any) -> int:
    """Revert what differs between BASE and HEAD, and say what explains HEAD's red verdict.

    BASE and HEAD are folders with the policy, or git revisions of the current repository. Model,
    prompt, decoding, embedder, corpus and top_k are reverted one at a time, then two at a time. If
    the corpus explains the verdict, FairGate searches for a smallest set of changed documents whose
    reversal restores it. Answers are stored, so that a second call continues where the first ended.
    Exits 0 whatever the result.
    """
    from fairgate.features.blame.causes import blame as explain
    from fairgate.features.blame.report import blame_record, render_blame
    from fairgate.features.blame.versions import compared

    runtime = shared.runtime_of(options)
    progress = progress_for(quiet=options["quiet"])
    with compared(base, head, options["policy"], runtime, progress) as both:
        if not options["quiet"]:
            say(f"fairgate: blame: {both.announcement}")
        blamed = explain(both.gate_input, both.sides, progress)
    for notice in (*both.notes, *both.sides.notices):
        say(f"fairgate: note: {notice}")
    if options["shape"] == "json":
        echo_json(blame_record(blamed))
    else:
        click.echo(render_blame(blamed))
    return ExitCode.PASS
