"""`fairgate export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal.options import cache_option, runtime_of


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
    from fairgate.features.onnx_export.model_export import ExportChoice, export_model
    from fairgate.onnx.encoder import OnnxEncoder
    from fairgate.onnx.model_hub import exported_folder

    runtime = runtime_of(options)
    choice = ExportChoice(
        task=options["task"],
        precision=options["precision"],
        revision=options["revision"],
        keep_anyway=options["keep_anyway"],
    )
    folder = output or exported_folder(model, runtime.cache / "models", choice.revision)
    record = export_model(model, folder, choice, open_embedder=OnnxEncoder, say=click.echo)
    for name, figure in record["parity"].items():
        if name != "prompts":
            click.echo(f"  {name.replace('_', ' ')}: {figure}")
    click.echo(f"{folder}: name it, or {model!r}, as `model` or `embedder` in a policy")
    return ExitCode.PASS
