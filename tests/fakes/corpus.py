"""A corpus in memory."""

from collections.abc import Iterator, Sequence

from fairgate.domain.executions import CorpusDocument


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
