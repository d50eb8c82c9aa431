"""`fairgate lint`."""

from __future__ import annotations

from pathlib import Path

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal.options import EXISTING_FILE


@click.command(short_help="Judge pairs of texts.")
@click.argument("pairs", type=EXISTING_FILE, metavar="PAIRS")
def lint(pairs: Path) -> int:
    """Judge whether each follow-up of PAIRS (JSONL) is its source with the edit of its relation.

    A line is {"relation", "source", "follow_up", "valid"?}; `relation` is `remove-one`,
    `remove-all`, `negate-one`, `negate-all`, `substitute-one`, `substitute-all`, `counterfactual`,
    `permute`, or the id of a GenFair relation. Exit code 1 where a pair is rejected; with `valid`
    on every line precision and recall of the linter are shown, and the exit code is 0.
    """
    from fairgate.features.lint.pair_linter import lint_pairs

    found = lint_pairs(pairs)
    for line in found.lines:
        click.echo(line)
    return ExitCode.GATE_FAILED if found.rejected and not found.labelled else ExitCode.PASS
