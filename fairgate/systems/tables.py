"""Tables by the names that policies give them: embedded, a path, or a dataset on the hub."""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.runtime import Runtime
from fairgate.io.dataset_hub import fetch_table, hub_table
from fairgate.io.embedded_names import find


def find_table(kind: str, name: str, runtime: Runtime) -> Path:
    """Return the file of a corpus, sources or items. What exists here is never looked up elsewhere.

    Raises DataError.
    """
    hub = named_on_hub(name, runtime)
    if hub is not None:
        return fetch_table(*hub)
    return find(kind, name, runtime.root, confined=runtime.confined)


def named_on_hub(name: str, runtime: Runtime) -> tuple[str, str] | None:
    """Return dataset and file where `name` is a Hugging Face id and no file of ours."""
    hub = hub_table(name)
    if hub is None:
        return None
    # `data/texts.csv` has the form of an id too: a folder that exists here makes it a path.
    first = runtime.root / name.split("/", 1)[0]
    looks_like_file = Path(hub[0]).suffix.lower() in {".csv", ".tsv", ".jsonl", ".parquet"}
    return None if first.exists() or looks_like_file else hub
