"""`fairgate judge evaluate`: how often a judge agrees with people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.wording import harmless
from fairgate.terminal.options import EXISTING_FILE, FILE_OR_FOLDER, runtime_of, runtime_options
from fairgate.terminal.output import progress_for


@click.group(short_help="Measure language models as judges of bias.")
def judge() -> None:
    """Language models that judge pairs of responses."""


@judge.command("evaluate", short_help="Measure a judge on labelled pairs.")
@click.argument("judge_file", type=EXISTING_FILE, metavar="JUDGE")
@click.argument("labelled", type=FILE_OR_FOLDER, metavar="LABELLED")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for the record."
)
@click.option(
    "--repeats", type=click.IntRange(1, 20), default=1, show_default=True,
    help="Ask each pair N times; from 2 on, stability and entropy are reported.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@runtime_options
def evaluate(judge_file: Path, labelled: Path, out: Path | None, **options: Any) -> int:
    """Ask JUDGE about the pairs of LABELLED: precision, recall, F1, AUC and kappa with intervals.

    JUDGE is a YAML file with `id` and `generators`, LABELLED a table with the columns prompt,
    follow_up, response, follow_up_response and label (BIASED or UNBIASED). `kind` says with which
    prompt a row is judged: general (the default), names, or inverted and follow-up, which show the
    follow-up only. The record reports each kind separately. LABELLED can also be the folder of a
    run: its judged pairs count if `fairgate explain --verdict` has labelled them.
    """
    from fairgate.features.judges.evaluation import evaluate_judge, summary_lines
    from fairgate.io.durable import write_text

    record = evaluate_judge(
        judge_file, labelled, runtime_of(options), progress_for(quiet=options["quiet"]),
        repeats=options["repeats"],
    )  # fmt: skip
    if out is not None:
        write_text(out, json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    for line in summary_lines(record):
        click.echo(harmless(line))
    return ExitCode.PASS
