"""Corpora and models by the names that users give them, for the commands that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairgate.adapters.model_hub import exported_folder
from fairgate.domain.corpora import CorpusSpec
from fairgate.domain.runtime import Runtime
from fairgate.engine.ports import Progress
from fairgate.systems.corpora import token_counter
from fairgate.systems.tables import find_table

if TYPE_CHECKING:
    from fairgate.adapters.model_export import ExportChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusChoice:
    """The options of `corpus prepare`."""

    source: str
    id: str | None
    text: str | None
    label: str | None
    tokenizer: str
    sample: float
    seed: int


def prepare_named_corpus(
    choice: CorpusChoice, output: Path, runtime: Runtime, progress: Progress
) -> Iterator[str]:
    """Prepare a corpus, and yield the result as lines."""
    from fairgate.adapters.files.cleaning import PreparationOptions
    from fairgate.adapters.files.preparation import manifest_path, prepare_corpus

    path = find_table("corpora", choice.source, runtime)
    manifest = prepare_corpus(
        CorpusSpec(path=str(path), id=choice.id, text=choice.text, label=choice.label),
        output,
        tokens=token_counter(choice.tokenizer, runtime),
        options=PreparationOptions(sample=choice.sample, seed=choice.seed),
        progress=progress,
    )
    counts = manifest["counts"]
    yield f"{output}: {counts['out']} of {counts['in']} documents kept"
    yield f"  tokens counted by: {manifest['tokenizer']['name']}"
    for reason, count in counts["dropped"].items():
        yield f"  {count} dropped: {reason}"
    if manifest["same_text"]:
        yield "  note: all documents have the same text, so retrieval has no choice"
    yield f"{manifest_path(output)}: manifest"


def export_named_model(
    model: str,
    output: Path | None,
    runtime: Runtime,
    choice: ExportChoice,
    say: Callable[[str], None],
) -> None:
    """Export a model to ONNX, and report the result line by line."""
    from fairgate.adapters.model_export import export_model
    from fairgate.adapters.onnx_encoder import OnnxEncoder

    folder = output or exported_folder(model, runtime.cache / "models", choice.revision)
    record = export_model(model, folder, choice, open_embedder=OnnxEncoder, say=say)
    for name, figure in record["parity"].items():
        if name != "prompts":
            say(f"  {name.replace('_', ' ')}: {figure}")
    say(f"{folder}: name it, or {model!r}, as `model` or `embedder` in a policy")
