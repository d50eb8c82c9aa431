"""Corpora by the names that users give them, for the command that prepares them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.executions import CorpusSpec
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.systems.corpora import find_table, token_counter


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
    from fairgate.retrieval.preparation import PreparationOptions, manifest_path, prepare_corpus

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
