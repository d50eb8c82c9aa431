"""Corpora and models by the names that users give them, for the commands that make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairgate.adapters.embedded_names import find
from fairgate.adapters.model_hub import exported_folder
from fairgate.composition.building import token_counter
from fairgate.composition.loading import Runtime
from fairgate.domain.corpora import CorpusSpec
from fairgate.engine.ports import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusChoice:
    """What `corpus prepare` is asked to do."""

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
    """Prepare a corpus, and yield what became of it as lines."""
    from fairgate.adapters.files.cleaning import PreparationOptions
    from fairgate.adapters.files.preparation import manifest_path, prepare_corpus

    path = find("corpora", choice.source, runtime.root, confined=runtime.confined)
    manifest = prepare_corpus(
        CorpusSpec(path=str(path), id=choice.id, text=choice.text, label=choice.label),
        output,
        tokens=token_counter(choice.tokenizer, runtime),
        options=PreparationOptions(sample=choice.sample, seed=choice.seed),
        progress=progress,
    )
    counts = manifest["counts"]
    yield f"{output}: {counts['out']} of {counts['in']} documents kept"
    for reason, count in counts["dropped"].items():
        yield f"  {count} dropped: {reason}"
    yield f"{manifest_path(output)}: manifest"


def export_named_model(
    model: str, output: Path | None, runtime: Runtime, *, task: str, precision: str, check: bool
) -> Iterator[str]:
    """Export a model to ONNX, and yield what became of it as lines."""
    from fairgate.adapters.model_export import export_model

    folder = output or exported_folder(model, runtime.cache / "models")
    yield from export_model(model, folder, task=task, precision=precision, check=check)
    yield f"{folder}: name it, or {model!r}, as `model` or `embedder` in a policy"
