"""A corpus in memory, and a small one in a file."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.io.named_files import find
from fairgate.retrieval.corpus import CorpusFile


def write_demo_documents(folder: Path, count: int) -> None:
    """Write the first documents of the demo corpus as `corpus.jsonl`: its index takes less time."""
    demo = CorpusFile(CorpusSpec(path=str(find("corpora", "demo", folder))))
    rows = [
        {"id": document.id, "text": document.text, "label": document.label}
        for document in islice(demo.documents(), count)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "corpus.jsonl").write_text(text)


class ListCorpus:
    """Documents from a list of texts or of documents; counts how often they are read."""

    def __init__(self, documents: Sequence[str | CorpusDocument], fingerprint: str = "c1") -> None:
        self._documents = [
            CorpusDocument(id=f"d{i}", text=item, label="l") if isinstance(item, str) else item
            for i, item in enumerate(documents)
        ]
        self.fingerprint = fingerprint
        self.read = 0

    def documents(self) -> Iterator[CorpusDocument]:
        self.read += 1
        yield from self._documents
