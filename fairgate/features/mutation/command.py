"""`fairgate mutate`: how much bias a policy would have caught in a run."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import quoted
from fairgate.terminal.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    SHARE,
    runtime_of,
    runtime_options,
)
from fairgate.terminal.output import say
from fairgate.terminal.progress import progress_for


@click.command(short_help="Say how much bias a policy would have caught in a run.")
@click.argument("policy", type=EXISTING_FILE)
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option("--baseline", help="Baseline file, or `none`; default: baselines/<policy name>.json.")
@click.option(
    "--at", type=SHARE, default=0.3, show_default=True,
    help="Strength at which the kill score is taken.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(2, 1000), default=10, show_default=True,
    help="Variants of each kind, target and strength.",
)  # fmt: skip
@click.option(
    "--kinds", default="answers,refusals,documents,stereotypes", show_default=True, metavar="LIST",
    help="Kinds of change, comma-separated.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "md", "json"]), default="text",
    show_default=True, help="How the result is printed.",
)  # fmt: skip
@click.option(
    "--save", is_flag=True,
    help="Keep the score beside POLICY, as <policy>.kill-score.json: later reports show it.",
)  # fmt: skip
@click.option(
    "--badge", type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the score for an endpoint badge of shields.io.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@runtime_options
def mutate(policy: Path, run: Path, **options: Any) -> int:
    """Make biased variants of the finished run in the folder RUN and put them to POLICY's gate.

    Says for every kind of bias and every term from which strength on the gate stops the build, by
    which rule, and what no rule sees. Asks no model, and changes nothing in RUN. Exits 0 whatever
    the score: it is about the policy, not about the system.
    """
    from fairgate.features.mutation import report
    from fairgate.features.mutation.kill_score import GRID, Search
    from fairgate.features.mutation.mutants import Mutant
    from fairgate.features.mutation.mutation_test import keep_score, mutation_test

    runtime = runtime_of(options)
    at = options["at"]
    search = Search(
        kinds=_kinds(options["kinds"]),
        grid=tuple(sorted({*GRID, at})),
        stated=at,
        seeds=options["seeds"],
    )
    test = mutation_test(policy, run, runtime, options["baseline"])
    mutants = test.mutants(search)
    test.check()  # embeds the documents, once for all
    started = time.monotonic()
    test.check()
    seconds = time.monotonic() - started
    if not options["quiet"]:
        count = sum(isinstance(item, Mutant) for item in mutants)
        most = search.most_runs(count)
        say(
            f"fairgate: mutate: {count} targets, at most {most} gate runs of about "
            f"{seconds:.2f} s each: at most {max(1, math.ceil(most * seconds / 60))} minutes"
        )
    found = test.score(mutants, search, progress_for(quiet=options["quiet"]))
    render = {
        "text": report.render_kill_score,
        "md": report.kill_score_markdown,
        "json": report.kill_score_json,
    }[options["form"]]
    click.echo(render(found))
    keep_score(found, policy, runtime, save=options["save"], badge=options["badge"])
    return ExitCode.PASS


def _kinds(named: str) -> tuple[Any, ...]:
    from fairgate.features.mutation.mutants import Kind

    names = list(dict.fromkeys(name.strip() for name in named.split(",")))
    unknown = [name for name in names if name not in list(Kind)]
    if unknown:
        known = ", ".join(Kind)
        raise UsageError(f"--kinds: no kind {quoted(unknown[0])}; expected some of {known}")
    return tuple(Kind(name) for name in names)
