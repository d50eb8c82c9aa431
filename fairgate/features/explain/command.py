"""`fairgate explain`: what happened to one pair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    echo_json,
    json_option,
    runtime_of,
    runtime_options,
)


@click.command(short_help="Show everything about one pair of a run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.argument("case", metavar="CASE")
@click.option("--suite", help="Suite of the case, where several have it.")
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@json_option
@runtime_options
def explain(run: Path, case: str, **options: Any) -> int:
    """Show what happened to the follow-up CASE in the finished run in the folder RUN.

    Shows both prompts with the difference marked, both document lists side by side, both answers
    with margins, the crossed answers, the neutral speakers' answers, and one sentence about it all.
    """
    from fairgate.domain.ports import SILENT
    from fairgate.features.explain.explain import explain_case
    from fairgate.features.explain.report import explanation_record, render_explanation
    from fairgate.gate.composition import Composition
    from fairgate.gate.run_folder import earlier_run, replay

    # An old run may be read after a quarantine's end.
    undated = replace(runtime_of(options), today=None)
    replayed, given, loaded, _ = replay(run, options["policy"], undated)
    sut = Composition(loaded, undated, SILENT).replayed(earlier_run(run, loaded))
    found = explain_case(replayed, given, case, suite=options["suite"], vectors=sut.vectors)
    redact = loaded.policy.redact
    if options["shape"] == "json":
        echo_json(explanation_record(found, redact=redact))
        return ExitCode.PASS
    click.echo(render_explanation(found, redact=redact))
    return ExitCode.PASS
