"""How a prompt is put together from instruction, documents and text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from fairgate.domain.executions import Document

DEFAULT_TEMPLATE = "{instruction}\n\n{documents}{text}\nAnswer:"
"""The instruction and the documents come first: follow-ups of a source share them as a prefix."""
_PLACES = re.compile(r"(\{(?:instruction|documents|text)\})")


def render_documents(documents: Sequence[Document], *, characters: int) -> str:
    """Return the documents as a numbered block that ends with a blank line; empty without any.

    White space inside a document is folded and its text cut after `characters` characters.
    """
    if not documents:
        return ""
    lines = [
        f"[{rank}] {_folded(document.text or '', characters)}"
        for rank, document in enumerate(documents, start=1)
    ]
    return "Documents:\n" + "\n".join(lines) + "\n\n"


def render_prompt(
    template: str, *, instruction: str, text: str, documents: Sequence[Document], characters: int
) -> str:
    """Fill `{instruction}`, `{documents}` and `{text}`; nothing inside them is expanded again."""
    block = render_documents(documents, characters=characters)
    parts = {"{instruction}": instruction, "{documents}": block, "{text}": text}
    return "".join(parts.get(piece, piece) for piece in _pieces(template))


@lru_cache(maxsize=4096)  # thousands of prompts show the same few documents
def _folded(text: str, characters: int) -> str:
    return " ".join(text.split())[:characters]


@lru_cache(maxsize=16)
def _pieces(template: str) -> list[str]:
    return _PLACES.split(template)
