"""How a FastAPI or Flask app is started and asked, by the text of its file.

Nothing is imported. Read are the routes of the app itself whose paths are literals, the models of
its file, and replies that are literals; what these do not say is left open, and told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate.domain.wording import harmless
from fairgate.io.regular import text_of

_FRAMEWORKS = ("FastAPI", "Flask")
_ASK = (
    "ask", "chat", "answer", "query", "question", "completions", "complete", "generate", "respond",
    "message", "messages", "reply", "rag", "predict", "classify", "invoke",
)  # fmt: skip
"""Last parts of paths at which systems are asked, the likelier first."""
_HEALTH = ("health", "healthz", "ready", "readyz", "livez", "live", "ping", "status")
_QUESTION = (
    "question", "query", "message", "prompt", "text", "input", "user_input", "user_message",
    "content", "q", "msg",
)  # fmt: skip
_ANSWER = (
    "answer", "reply", "response", "text", "message", "output", "content", "result", "label",
    "category", "intent", "decision", "prediction", "priority", "sentiment", "verdict",
)  # fmt: skip
_DOCUMENTS = (
    "documents", "sources", "contexts", "context", "docs", "references", "citations", "passages",
    "chunks", "hits", "results",
)  # fmt: skip
_PLAIN = re.compile(r"/[\w/.~-]*", re.ASCII)
"""A path without parameters."""
_KEYS = {"url": "url", "asked": "request", "answer": "response"}
_OPEN = {
    "url": "has no POST route with a literal path",
    "asked": "does not say the field of the question",
    "answer": "does not say the field of the answer",
}
_OF_A_REQUEST = re.compile(
    r"(?:request\.(?:json|get_json\([^()]*\))|await request\.json\(\)|"
    r"\b(?:data|body|payload))\)?(?:\[|\.get\()'(\w+)'"
)
Handler = ast.FunctionDef | ast.AsyncFunctionDef


def service_in(path: Path, folder: Path) -> dict[str, Any] | None:
    """Return how the app of a file below `folder` is started and asked; None: it has none.

    The keys are those of the policy's template. `open` names what was not read, with a sentence on
    each part of `http` that needs the user.
    """
    try:
        tree = ast.parse(text_of(path, "replace"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    app = _app(tree)
    if app is None:
        return None
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    routes = [route for route in _routes(tree, app.name) if _PLAIN.fullmatch(route.path)]
    needed = {name for name, needs in _variables(tree) if needs}
    others = sorted({name for name, _ in _variables(tree)} - needed)
    seen: dict[str, Any] = {
        "service": ", ".join(_started(app, path, folder)),
        "env": sorted(needed),
        "given": "",
        "documents": "",
        "lacking": [],
    }
    posts = [route for route in routes if "POST" in route.methods]
    if posts:
        route = min(posts, key=lambda route: _rank(route.path, _ASK))
        seen |= {"url": route.path} | _asked(route, classes) | _replied(route, classes)
    healthy = [
        route.path
        for route in routes
        if "GET" in route.methods and _rank(route.path, _HEALTH) < len(_HEALTH)
    ]
    # What takes only POST answers with status 405 to the question whether it runs.
    seen["ready"] = next(iter(healthy), seen.get("url", "/"))
    still_open = {name: "" if name in seen else sentence for name, sentence in _OPEN.items()}
    notes = [
        f"{why}: put it into `{_KEYS[name]}` of `http`" for name, why in still_open.items() if why
    ]
    if seen["lacking"]:
        named = ", ".join(f"`{name}`" for name in seen["lacking"])
        notes.append(f"asks for {named}, too: give it a value in `request`")
    if others:
        notes.append(f"reads {', '.join(others)}: name those that it needs in `serve.env`")
    relative_name = path.relative_to(folder).as_posix()
    return seen | {"open": still_open, "notes": [f"{relative_name} {note}" for note in notes]}


@dataclass(frozen=True, slots=True)
class _App:
    framework: str
    name: str
    factory: str
    """The function that makes it; empty where the module has it."""

    @property
    def target(self) -> str:
        return self.factory or self.name


@dataclass(frozen=True, slots=True)
class _Route:
    methods: frozenset[str]
    path: str
    handler: Handler
    decorator: ast.Call


def _app(tree: ast.Module) -> _App | None:
    """Return the first app that the module has, or that a function without arguments makes."""
    for node in tree.body:
        is_factory = isinstance(node, ast.FunctionDef) and not node.args.args
        for part in ast.walk(node) if is_factory else (node,):
            value, targets = getattr(part, "value", None), getattr(part, "targets", ())
            if isinstance(part, ast.AnnAssign):
                targets = [part.target]
            if isinstance(value, ast.Call) and _kind(value) in _FRAMEWORKS:
                for target in targets:
                    if isinstance(target, ast.Name):
                        factory = node.name if isinstance(node, ast.FunctionDef) else ""
                        return _App(_kind(value), target.id, factory)
    return None


def _routes(tree: ast.AST, app: str) -> Iterator[_Route]:
    """Yield the routes of the app's decorators, in the order of the file."""
    for node in ast.walk(tree):
        for call in node.decorator_list if isinstance(node, Handler) else ():
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            path, method = _constant(call.args[0]) if call.args else None, call.func.attr
            methods = {method.upper()}
            if method in ("route", "api_route"):
                listed = {word.arg: word.value for word in call.keywords}.get("methods")
                values = getattr(listed, "elts", ())
                methods = {str(_constant(value)).upper() for value in values} or {"GET"}
            if isinstance(path, str) and ast.unparse(call.func.value) == app:
                yield _Route(frozenset(methods), path, node, call)  # type: ignore[arg-type]


def _kind(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _constant(node: ast.AST | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _rank(path: str, words: Sequence[str]) -> int:
    last = path.rstrip("/").rpartition("/")[2].lower()
    return words.index(last) if last in words else len(words)


def _started(app: _App, path: Path, folder: Path) -> Iterator[str]:
    """Yield the words of the command that starts an app, as YAML writes them."""
    yield from ("python", "-m")
    if app.framework == "Flask":
        place = path.relative_to(folder).with_suffix("").as_posix()
        yield from ("flask", "--app", f'"{place}:{app.target}"', "run")
        return
    module, package = path.stem, path.parent
    while package != folder and (package / "__init__.py").is_file():
        module, package = f"{package.name}.{module}", package.parent
    yield from ("uvicorn", *(["--factory"] if app.factory else []), f'"{module}:{app.target}"')
    if package != folder:
        yield from ("--app-dir", package.relative_to(folder).as_posix())


def _variables(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the environment variables that a file reads, and whether it fails without them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            name, needs = _constant(node.slice), isinstance(node.ctx, ast.Load)
        elif (
            isinstance(node, ast.Call) and len(node.args) == 1 and _kind(node) in ("get", "getenv")
        ):
            is_read = ast.unparse(node.func).endswith(("environ.get", "getenv"))
            name, needs = _constant(node.args[0]) if is_read else None, False
        else:
            continue
        if isinstance(name, str) and _is_key(name):
            yield name, needs


def _fields(name: str, classes: Mapping[str, ast.ClassDef]) -> dict[str, tuple[str, bool]]:
    """Return the fields of a model: key, its type, and whether it is required."""
    fields: dict[str, tuple[str, bool]] = {}
    for part in classes[name].body if name in classes else ():
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            key, is_required = part.target.id, part.value is None
            if isinstance(part.value, ast.Call):  # Field(…, alias="…")
                words = {word.arg: word.value for word in part.value.keywords}
                key = str(_constant(words.get("alias")) or key)
                is_required = bool(part.value.args) and _constant(part.value.args[0]) is ...
            fields[key] = ast.unparse(part.annotation), is_required
    return fields


def _asked(route: _Route, classes: Mapping[str, ast.ClassDef]) -> dict[str, Any]:
    """Return the field of a question in what a handler takes, and of documents that it is given."""
    kinds = [ast.unparse(each.annotation) for each in route.handler.args.args if each.annotation]
    for kind in kinds:
        fields = _fields(kind, classes)
        plain = {name: kind for name, (kind, _) in fields.items() if _is_key(name)}
        texts = [name for name, kind in plain.items() if re.match(r"(?:Optional\[)?str\b", kind)]
        lists = [name for name, kind in plain.items() if kind.lower().startswith("list[")]
        asked = _first(_QUESTION, texts) or _first(("messages",), lists)
        given = _first(_DOCUMENTS, lists)
        if asked:
            required = [name for name, (_, is_required) in fields.items() if is_required]
            lacking = [harmless(name) for name in required if name not in (asked, given)]
            return {"asked": asked, "given": given, "lacking": lacking}
    # What the handler takes from the JSON of a request.
    names = [*dict.fromkeys(_OF_A_REQUEST.findall(ast.unparse(route.handler)))]
    asked = _first(_QUESTION, names) or _first(("messages",), names)
    return {"asked": asked} if asked else {}


def _is_key(name: str) -> bool:
    """Whether a key may stand in a policy as it is: an alias may be any text."""
    return name.isidentifier() and name.isascii() and name.lower() not in ("null", "true", "false")


def _replied(route: _Route, classes: Mapping[str, ast.ClassDef]) -> dict[str, str]:
    """Name the fields of what a handler returns; empty where no object or model says them."""
    for keys in _replies(route, classes):
        if (answer := _first(_ANSWER, keys)) and all(map(_is_key, keys)):
            others = [key for key in keys if key != answer]
            return {"answer": answer, "documents": _first(_DOCUMENTS, others)}
    return {}


def _replies(route: _Route, classes: Mapping[str, ast.ClassDef]) -> Iterator[list[str]]:
    """Yield the keys of each reply."""
    for node in ast.walk(route.handler):
        value = node.value if isinstance(node, ast.Return) else None
        if isinstance(value, ast.Tuple) and value.elts:  # with a status
            value = value.elts[0]
        if isinstance(value, ast.Call) and _kind(value) in ("jsonify", *classes):
            yield [word.arg for word in value.keywords if word.arg]
            value = value.args[0] if value.args else None
        if isinstance(value, ast.Dict):
            yield [str(name) for key in value.keys if (name := _constant(key)) is not None]
    words = {word.arg: word.value for word in route.decorator.keywords}
    for annotation in (route.handler.returns, words.get("response_model")):
        if annotation is not None:
            yield list(_fields(ast.unparse(annotation), classes))


def _first(names: Sequence[str], keys: Iterable[str]) -> str:
    there = {*keys}
    return next((name for name in names if name in there), "")
