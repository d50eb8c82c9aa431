"""`fairgate corpus prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal.options import SHARE, place_options, runtime_of
from fairgate.terminal.output import progress_for


@click.group(short_help="Prepare a corpus for the retriever.")
def corpus() -> None:
    """Work on the documents that a retriever searches."""


@corpus.command()
@click.argument("source", metavar="CORPUS")
@click.option(
    "--output", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="JSONL file to write; a manifest is written beside it.",
)  # fmt: skip
@click.option("--text", help="Column of the text (default: found by name).")
@click.option("--label", help="Column of the label (default: found by name).")
@click.option("--id", "id_", help="Column of the id (default: row number).")
@click.option(
    "--tokenizer", default="gpt2", show_default=True,
    help="Counts tokens for the length fence: `bundled`, a path, or a Hugging Face id.",
)  # fmt: skip
@click.option(
    "--sample", type=SHARE, default=1.0, show_default=True,
    help="Fraction of the cleaned texts to keep.",
)  # fmt: skip
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of the sample.")
@place_options
def prepare(source: str, output: Path, **options: Any) -> int:
    """Clean CORPUS (CSV, TSV, JSONL, JSON, Parquet or a bundled name) as Oliveira et al. 2025.

    Drops texts whose token count lies outside [Q1 - 1.5 IQR, Q3 + 1.5 IQR] or that are shorter than
    10 characters, strips @mentions and URLs, lowercases and folds white space.
    """
    from fairgate.domain.executions import CorpusSpec
    from fairgate.retrieval.preparation import PreparationOptions, manifest_path, prepare_corpus
    from fairgate.systems.corpora import find_table, token_counter

    runtime = runtime_of(options)
    path = find_table("corpora", source, runtime)
    manifest = prepare_corpus(
        CorpusSpec(path=str(path), id=options["id_"], text=options["text"], label=options["label"]),
        output,
        tokens=token_counter(options["tokenizer"], runtime),
        options=PreparationOptions(sample=options["sample"], seed=options["seed"]),
        progress=progress_for(quiet=False),
    )
    counts = manifest["counts"]
    click.echo(f"{output}: {counts['out']} of {counts['in']} documents kept")
    click.echo(f"  tokens counted by: {manifest['tokenizer']['name']}")
    for reason, count in counts["dropped"].items():
        click.echo(f"  {count} dropped: {reason}")
    if manifest["same_text"]:
        click.echo("  note: all documents have the same text, so retrieval has no choice")
    click.echo(f"{manifest_path(output)}: manifest")
    return ExitCode.PASS
