"""`fairgate export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.cli.options import cache_option, runtime_of
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
    show_default=True,
    help="int8, int4: weights in blocks, computed in float32.",
)  # fmt: skip
@click.option("--revision", help="Commit, tag or branch of a Hugging Face model.")
@click.option(
    "--keep-anyway", is_flag=True,
    help="Keep an export that differs from the original by more than its precision may.",
)  # fmt: skip
@cache_option
def export(model: str, output: Path | None, **options: Any) -> int:
    """Turn MODEL (a Hugging Face id or a folder) into ONNX and compare it with the original.

    An export is kept only if it begins the same labels and finds real prompts as likely as the
    original, within the limits of its precision (docs/how-to/own-model.md). Takes about four times
    the memory of the weights in fp32.

    Needs torch and optimum, in an environment of their own:
    python -m venv .venv-export && .venv-export/bin/pip install 'fairgate[export]'
    """
    from fairgate.adapters.model_export import ExportChoice
    from fairgate.composition.corpora import export_named_model

    runtime = runtime_of(options)
    choice = ExportChoice(
        task=options["task"],
        precision=options["precision"],
        revision=options["revision"],
        keep_anyway=options["keep_anyway"],
    )
    export_named_model(model, output, runtime, choice, click.echo)
    return ExitCode.PASS
