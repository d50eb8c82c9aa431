"""The corpus of a retriever: its policy, how its table is found, opened and cleaned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

from fairgate.domain.cases import document_fault
from fairgate.domain.errors import DataError, ModelError, RetrievalError
from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.domain.ports import SILENT, Runtime
from fairgate.domain.schema import Columns
from fairgate.domain.wording import quoted
from fairgate.io.named_files import (
    PREPARED_ON_USE,
    bundled_path,
    existing,
    fetch_table,
    find,
    hub_table,
)
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.retrieval.corpus import CorpusFile
    from fairgate.retrieval.preparation import TokenizerFile

_MOST_READ = 100_000
_MOST_TOLD = 5


def long_form(corpus: str | Columns) -> Columns:
    """Return the corpus of a policy in its long form."""
    return Columns(path=corpus) if isinstance(corpus, str) else corpus


def find_table(kind: str, name: str, runtime: Runtime) -> Path:
    """Return the file of a corpus, sources or items. What exists here is never looked up elsewhere.

    Raises DataError.
    """
    if (hub := named_on_hub(name, runtime)) is not None:
        return fetch_table(*hub)
    return find(kind, name, runtime.root, confined=runtime.confined)


def named_on_hub(name: str, runtime: Runtime) -> tuple[str, str] | None:
    """Return dataset and file where `name` is a Hugging Face id and no file of ours."""
    if (hub := hub_table(name)) is None:
        return None
    # `data/texts.csv` has the form of an id too: a folder that exists here makes it a path.
    first = runtime.root / name.split("/", 1)[0]
    looks_like_file = Path(hub[0]).suffix.lower() in {
        ".csv", ".tsv", ".jsonl", ".json", ".parquet",
    }  # fmt: skip
    return None if first.exists() or looks_like_file else hub


def open_corpus(chosen: Columns, resources: Resources) -> CorpusFile:
    """Return the documents; those of bundled raw corpora are prepared. Raises DataError."""
    from fairgate.retrieval.corpus import CorpusFile

    runtime = resources.runtime.under_test
    path = find_table("corpora", chosen.path, runtime)
    spec = CorpusSpec(path=str(path), id=chosen.id, text=chosen.text, label=chosen.label)
    if chosen.path in PREPARED_ON_USE:
        from fairgate.retrieval.preparation import prepared_corpus

        tokens = token_counter("bundled", runtime)
        spec = prepared_corpus(spec, resources.cache, tokens=tokens, progress=resources.progress)
    corpus = CorpusFile(spec)
    resources.collect(corpus.notices)
    return corpus


def token_counter(name: str, runtime: Runtime) -> TokenizerFile:
    """Return a counter for `bundled`, a tokenizer.json, a model folder, or a hub id.

    Where a hub id is not available (offline), the bundled tokenizer counts instead; the manifest
    contains its name.
    """
    from fairgate.onnx.model_folder import is_hub_id
    from fairgate.retrieval.preparation import TokenizerFile, hub_tokenizer

    bundled = find("models", "minilm", runtime.root) / "tokenizer.json"
    if name == "bundled":
        return TokenizerFile(bundled, "bundled")
    if not is_hub_id(name) and ("/" in name or name.endswith(".json")):
        local = existing(name, runtime.root, confined=runtime.confined)
        return TokenizerFile(local / "tokenizer.json" if local.is_dir() else local, name)
    if (runtime.root / name).exists():
        raise DataError(
            f"{quoted(name)} is here and could be a tokenizer of the Hugging Face hub too; write "
            f"{quoted(f'./{name}')} for what is here, or give that another name"
        )
    return hub_tokenizer(name) or TokenizerFile(bundled, f"bundled ({name} was not available)")


def corpus_findings(
    chosen: Columns,
    top_k: int,
    runtime: Runtime,
    marked: Mapping[str, CorpusDocument] = MappingProxyType({}),
) -> Iterator[tuple[str, str, bool]]:
    """Yield what a corpus file holds: the retriever's field, a sentence, whether it is a problem.

    Nothing of others. At most the first 100,000 documents are read, all where sources name some:
    `marked` are these by source, without braces.
    """
    from fairgate.retrieval.exact_index import require_depth, require_documents

    name = chosen.path
    is_ours = bundled_path("corpora", name) is not None
    if is_ours or named_on_hub(name, runtime) is not None:
        return
    try:
        find("corpora", name, runtime.root, confined=runtime.confined)
    except DataError:
        return  # told by `missing`
    count = labelled = 0
    texts = dict.fromkeys((document.id for document in marked.values()), None)
    try:
        with TemporaryDirectory() as scratch:
            resources = Resources(replace(runtime, cache=Path(scratch)), SILENT)
            documents = open_corpus(chosen, resources).documents()
            for document in islice(documents, None if marked else _MOST_READ):
                if document.id in texts:
                    texts[document.id] = document.text
                if count < _MOST_READ:
                    count += 1
                    labelled += document.label is not None
    except (DataError, ModelError) as error:
        yield "corpus", str(error), True
        return
    try:
        require_documents(count)
        require_depth(top_k, count)
    except RetrievalError as error:
        yield "top_k" if count else "corpus", str(error), True
        return
    faults = [document_fault(name, each, texts[each.id]) for name, each in marked.items()]
    for fault in list(filter(None, faults))[:_MOST_TOLD]:
        yield "corpus", fault, True
    has_label = f"{labelled:,} with a label"
    if not labelled:
        has_label = "none with a label, so that `asr/retrieval` and `rrs/mean` are not evaluated; "
        has_label += "name it with `label`"
    read = f"{'the first ' if count == _MOST_READ else ''}{count:,} document"
    yield "corpus", f"corpus {quoted(name)}: {read}{'s' if count != 1 else ''}, {has_label}", False
