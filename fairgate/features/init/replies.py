"""Where the reply of a web service in Python holds answer and documents, by its source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_ANSWER = ("answer", "reply", "response", "text", "message", "output", "content", "result")
_DOCUMENTS = (
    "documents", "sources", "contexts", "context", "docs", "references", "citations", "passages",
    "chunks", "hits", "results",
)  # fmt: skip
_TEXT = ("text", "content", "page_content", "body", "passage", "snippet", "excerpt", "chunk")
_ID = ("id", "doc_id", "document_id", "source", "title", "name", "url", "path")


def reply_of(text: str) -> dict[str, str]:
    """Name the fields of what a POST handler returns as a literal object; empty where none does.

    `answer` and `documents` are keys of the object, `document` says where a document has its text
    and its id, as a policy writes it, where these are not `text` and `id`.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    for reply in _objects(tree):
        keys = {
            key.value: value
            for key, value in zip(reply.keys, reply.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
        if (answer := _first(_ANSWER, [*keys])) and all(map(str.isidentifier, keys)):
            documents = _first(_DOCUMENTS, [key for key in keys if key != answer])
            document = _document(keys[documents]) if documents else ""
            return {"answer": answer, "documents": documents, "document": document}
    return {}


def _objects(tree: ast.Module) -> Iterator[ast.Dict]:
    """Yield the objects that POST handlers return, in the order of the file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        routes = (d.func for d in node.decorator_list if isinstance(d, ast.Call))
        if any(isinstance(route, ast.Attribute) and route.attr == "post" for route in routes):
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and isinstance(part.value, ast.Dict):
                    yield part.value


def _first(names: Sequence[str], keys: Sequence[str]) -> str:
    return next((name for name in names if name in keys), "")


def _document(value: ast.expr) -> str:
    """Say where a document has text and id: `text: $.content, id: $.title`."""
    if isinstance(value, ast.ListComp):
        element: ast.expr | None = value.elt
    else:
        element = value.elts[0] if isinstance(value, ast.List) and value.elts else None
    if not isinstance(element, ast.Dict):
        return ""
    keys = [key.value for key in element.keys if isinstance(key, ast.Constant)]
    names = [key for key in keys if isinstance(key, str) and key.isidentifier()]
    places = {"text": _first(_TEXT, names), "id": _first(_ID, names)}
    if all(place in ("", part) for part, place in places.items()):
        return ""
    return ", ".join(f"{part}: $.{place}" for part, place in places.items() if place)
