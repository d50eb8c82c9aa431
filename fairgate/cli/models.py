"""`fairgate export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.cli.options import runtime_of, runtime_options
from fairgate.domain.errors import ExitCode


@click.command(short_help="Turn a Hugging Face model into ONNX.")
@click.argument("model")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write (default: where policies find the model by its id).",
)  # fmt: skip
@click.option(
    "--task", type=click.Choice(["text-generation", "feature-extraction"]),
    default="text-generation", show_default=True, help="Decoder or encoder.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "int8", "int4"]), default="fp32",
    show_default=True, help="Precision of the weights; int8 and int4 are weight-only, in blocks.",
)  # fmt: skip
@runtime_options
def export(model: str, output: Path | None, **options: Any) -> int:
    """Turn MODEL (a Hugging Face id or a folder) into ONNX and compare it with the original.

    An export that differs from the original is not kept.

    Needs torch and optimum, in an environment of their own:
    python -m venv .venv-export && .venv-export/bin/pip install 'fairgate[export]'
    """
    from fairgate.composition.corpora import export_named_model

    runtime = runtime_of(options)
    for line in export_named_model(
        model,
        output,
        runtime,
        task=options["task"],
        precision=options["precision"],
    ):
        click.echo(line)
    return ExitCode.PASS
