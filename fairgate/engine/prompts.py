"""How a prompt is put together from instruction, documents and text."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.executions import Document

DEFAULT_TEMPLATE = "{instruction}\n\n{documents}{text}\nAnswer:"
"""The instruction and the documents come first: follow-ups of a source share them as a prefix."""


def render_documents(documents: Sequence[Document], *, characters: int) -> str:
    """Return the documents as a numbered block that ends with a blank line; empty without any.

    White space inside a document is folded and its text cut after `characters` characters.
    """
    if not documents:
        return ""
    lines = [
        f"[{rank}] {' '.join((document.text or '').split())[:characters]}"
        for rank, document in enumerate(documents, start=1)
    ]
    return "Documents:\n" + "\n".join(lines) + "\n\n"


def render_prompt(
    template: str, *, instruction: str, text: str, documents: Sequence[Document], characters: int
) -> str:
    """Fill `{instruction}`, `{documents}` and `{text}`; nothing inside them is expanded again."""
    block = render_documents(documents, characters=characters)
    parts = {"{instruction}": instruction, "{documents}": block, "{text}": text}
    pieces: list[str] = []
    rest = template
    while rest:
        found = [(rest.find(name), name) for name in parts if name in rest]
        if not found:
            pieces.append(rest)
            break
        at, name = min(found)
        pieces += [rest[:at], parts[name]]
        rest = rest[at + len(name) :]
    return "".join(pieces)
