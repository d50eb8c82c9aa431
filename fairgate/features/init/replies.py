"""Where the reply of a web service in Python holds answer and documents, by its source text."""

from __future__ import annotations

import ast
import re
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
    for handler, _ in _handlers(text):
        for reply in _objects(handler):
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


def flask_of(text: str) -> dict[str, str]:
    """Say where a Flask app is asked, with which field, and what it replies.

    `ready` is where it can be seen to run: a page of its own, else the same place (status 405).
    """
    for handler, url in _handlers(text):
        if not re.fullmatch(r"/[\w/.-]*", url):
            continue
        asked = _ASKED.search(ast.unparse(handler))
        pages = (page for page in _PAGE.findall(text) if page != url)
        field = {"asked": asked[1]} if asked else {}
        return {"url": url, "ready": next(pages, url), **field, **reply_of(text)}
    return {}


_ASKED = re.compile(
    r"(?:request\.(?:json|get_json\([^()]*\))|\b(?:data|body|payload|content))(?:\[|\.get\()'(\w+)'"
)
_PAGE = re.compile(r"""\.(?:route|get)\(["'](/[\w/.-]*)["']\)""")


def _handlers(text: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield the functions that take POST requests with their paths, in the order of the file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for route in node.decorator_list:
            if not (isinstance(route, ast.Call) and isinstance(route.func, ast.Attribute)):
                continue
            is_post = route.func.attr == "post" or (
                route.func.attr == "route" and "'POST'" in ast.unparse(route)
            )
            first = route.args[0] if route.args else None
            if is_post:
                yield node, str(first.value) if isinstance(first, ast.Constant) else ""


def _objects(handler: ast.AST) -> Iterator[ast.Dict]:
    """Yield the objects that a handler returns, as they are or by `jsonify`."""
    for part in ast.walk(handler):
        if not isinstance(part, ast.Return):
            continue
        value = part.value
        if isinstance(value, ast.Tuple) and value.elts:  # with a status
            value = value.elts[0]
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("jsonify"):
            named = [keyword for keyword in value.keywords if keyword.arg]
            if named:
                keys: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in named]
                value = ast.Dict(keys, [keyword.value for keyword in named])
            else:
                value = value.args[0] if value.args else None
        if isinstance(value, ast.Dict):
            yield value


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
