"""A retriever of the user's, asked as applications are asked: it finds, and answers nothing."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.applications import Question
from fairgate.domain.errors import FairGateError, PartlyRetrievedError, RetrievalError
from fairgate.domain.executions import Document
from fairgate.domain.ports import Application, Vectors
from fairgate.domain.wording import quoted


class AskedRetriever:
    """A port `Retriever`: documents in the order in which they came, at most as many as asked for.

    It may find fewer, and the same text for another query twice. Has no vectors.
    """

    at_once = 64
    """Few: each may be an endpoint's work that somebody pays."""

    def __init__(self, application: Application) -> None:
        """Take what is asked; its replies hold documents."""
        self._application = application

    @property
    def fingerprint(self) -> str:
        """Identify what is asked, and its revision."""
        return f"asked/1:{self._application.fingerprint}"

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query its first `top_k` documents.

        Raises RetrievalError where it returns nothing; PartlyRetrievedError, with what was found
        until then, where it cannot be asked any more or returns a document without its text.
        """
        questions = [
            Question(query=query, text=query, instruction="", prompt=query, top_k=top_k)
            for query in queries
        ]
        found: dict[int, list[Document]] = {}
        try:
            for position, reply in self._application.ask(questions):
                documents = list(reply.documents or ())[:top_k]
                if any(document.text is None for document in documents):
                    raise RetrievalError(
                        f"{self._application.name}, asked for {quoted(queries[position])}: a "
                        "document has an id and no text, so the prompt could not show it; name "
                        "the place of the text (`response.document.text`, in a vector store `text`)"
                    )
                found[position] = documents
        except FairGateError as error:
            raise PartlyRetrievedError(error, found) from error
        if len(found) < len(questions):
            raise RetrievalError(
                f"{self._application.name} found nothing for {len(questions) - len(found)} of "
                f"{len(questions)} queries; expected a list for each, if only an empty one"
            )
        return [found[position] for position in range(len(questions))]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return None: what it embeds with is not known."""
        del document_ids
        return None
