"""How a FastAPI or Flask app is started and asked, by its source text.

Nothing is imported. Routes are those of decorators whose path is a literal, also of routers in
other files of the folder that the app includes; what no literal says is left open, and told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairgate.domain.wording import harmless
from fairgate.io.regular import text_of

_APPS, _PARTS = ("FastAPI", "Flask"), ("APIRouter", "Blueprint")
_JOINED = {"include_router": "prefix", "register_blueprint": "url_prefix"}
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
_TEXT = ("text", "content", "page_content", "body", "passage", "snippet", "excerpt", "chunk")
_ID = ("id", "doc_id", "document_id", "source", "title", "name", "url", "path")
_PLAIN = re.compile(r"/[\w/.~-]*", re.ASCII)
"""A path without parameters."""
_KEYS = {"url": "url", "asked": "request", "answer": "response"}
_OPEN = {
    "url": "has no POST route with a literal path",
    "asked": "does not say the field of the question",
    "answer": "does not say the field of the answer",
}
_GIVEN_BY_THE_FRAMEWORK = ("Request", "Response", "BackgroundTasks", "WebSocket")

_MOST_DEEP = 4
"""Files that include routers of one another."""

Handler = ast.FunctionDef | ast.AsyncFunctionDef


def service_in(path: Path, folder: Path) -> dict[str, Any] | None:
    """Return how the app of a file below `folder` is started and asked; None: it has none.

    The keys are those of the policy's template. `open` names what was not read, with a sentence on
    each part of `http` that needs the user.
    """
    if (tree := _parsed(path)) is None:
        return None
    source = _Source.of(tree)
    for included in _included(tree, path, folder, _MOST_DEEP):
        routes, classes = [*source.routes, *included.routes], {**included.classes, **source.classes}
        source = _Source(source.app, routes, classes)
    app = source.app
    if app is None:
        return None
    seen: dict[str, Any] = {
        "service": ", ".join(_started(app, path, folder)),
        "env": _needed(tree),
        "given": "",
    }
    wanted = _read_elsewhere(tree)
    notes = [f"reads {', '.join(wanted)}: name those that it needs in `serve.env`"] * bool(wanted)
    routes = [route for route in source.routes if _PLAIN.fullmatch(route.path)]
    posts = [route for route in routes if "POST" in route.methods]
    if posts:
        route = min(posts, key=lambda route: _rank(route.path, _ASK))
        seen |= {"url": route.path} | _asked(route, source) | _replied(route, source)
    still_open = {name: "" if name in seen else sentence for name, sentence in _OPEN.items()}
    lacking = seen.setdefault("lacking", [])
    named = ", ".join(f"`{name}`" for name in lacking)
    notes += [f"asks for {named}, too: give it a value in `request`"] * bool(lacking)
    shown = path.relative_to(folder).as_posix()
    notes += [
        f"{why}: put it into `{_KEYS[name]}` of `http`" for name, why in still_open.items() if why
    ]
    return seen | {
        "documents": seen.get("documents", ""),
        "document": seen.get("document", ""),
        "ready": _ready(app, routes, seen.get("url", "")),
        "open": still_open,
        "notes": [f"{shown} {note}" for note in notes],
    }


@dataclass(frozen=True, slots=True)
class _App:
    kind: str
    name: str
    is_factory: bool
    call: ast.Call


@dataclass(frozen=True, slots=True)
class _Route:
    methods: frozenset[str]
    path: str
    handler: Handler
    decorator: ast.Call


@dataclass(frozen=True, slots=True)
class _Source:
    """The apps, routers, routes and classes of one file."""

    app: _App | None
    routes: Sequence[_Route]
    classes: Mapping[str, ast.ClassDef] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module) -> _Source:
        """Read a file."""
        made = dict(_made(tree))
        joined = dict(_joins(tree))
        apps = [
            _App(_kind(call), name, _is_local(tree, name), call)
            for name, call in made.items()
            if _kind(call) in _APPS and name not in joined
        ]
        prefixes = {
            name: _prefix(name, call, joined)
            for name, call in made.items()
            if _kind(call) in _APPS or name in joined
        }
        if (app := next(iter(apps), None)) and app.is_factory:
            factory = _factory(tree, app)
            app = None if factory is None else _App(app.kind, factory, True, app.call)  # noqa: FBT003
        classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        return cls(app, [*_routes(tree, prefixes)], classes)

    def fields(self, name: str) -> dict[str, tuple[str, bool]]:
        """Return the fields of a model of this file: key, its type, and whether it is required."""
        found: dict[str, tuple[str, bool]] = {}
        node = self.classes.get(name)
        for base in node.bases if node else ():
            if isinstance(base, ast.Name) and base.id != name:
                found |= self.fields(base.id)
        for part in node.body if node else ():
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                key, is_required = part.target.id, part.value is None
                if isinstance(part.value, ast.Call):  # Field(…, alias="…")
                    words = {word.arg: word.value for word in part.value.keywords}
                    first = part.value.args[0] if part.value.args else None
                    has_default = bool({"default", "default_factory"} & {*words})
                    is_required = _constant(first) is ... or (first is None and not has_default)
                    key = str(_constant(words.get("alias")) or key)
                found[key] = ast.unparse(part.annotation), is_required
        return found


def _made(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield the names that apps and routers are assigned to."""
    for node in ast.walk(tree):
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        if targets and isinstance(value, ast.Call) and _kind(value) in (*_APPS, *_PARTS):
            yield from ((one.id, value) for one in targets if isinstance(one, ast.Name))


def _kind(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _constant(node: ast.AST | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _joins(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the routers and apps that become a part of another one, with the path before theirs."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        how, arguments = node.func.attr, node.args
        words = {word.arg: word.value for word in node.keywords}
        if how in _JOINED and arguments:
            before = words.get(_JOINED[how])
            yield ast.unparse(arguments[0]), "" if before is None else _constant(before)
        elif how == "mount" and len(arguments) > 1 and isinstance(arguments[1], ast.Name):
            yield arguments[1].id, _constant(arguments[0])


def _included(
    tree: ast.Module, path: Path, folder: Path, depth: int, before: str = ""
) -> Iterator[_Source]:
    """Yield the routers of other files of the folder that a file includes, with their prefixes.

    `before` stands before all of their paths. With each come the classes of the files that it
    imports names from: its handlers' models.
    """
    imported = dict(_imported(tree, path, folder))
    for called, prefix in _joins(tree):
        owner, _, name = called.rpartition(".")
        file, symbol = imported.get(owner or called, (None, ""))
        other = None if file is None or prefix is None else _parsed(file)
        if file is None or other is None or depth == 0:
            continue
        made, joined = dict(_made(other)), {name if owner else symbol: before + str(prefix)}
        prefixes = {n: _prefix(n, call, joined) for n, call in made.items() if n in joined}
        models = {f for f, _ in dict(_imported(other, file, folder)).values()} | {file}
        trees = [one for model in sorted(models) if (one := _parsed(model))]
        classes = {n.name: n for one in trees for n in ast.walk(one) if isinstance(n, ast.ClassDef)}
        yield _Source(None, [*_routes(other, prefixes)], classes)
        for own in prefixes.values():
            if own is not None:
                yield from _included(other, file, folder, depth - 1, own)


def _imported(tree: ast.Module, path: Path, folder: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield what a file imports from files of the folder: its name here, the file, its name there.

    Of a module itself the last one is empty.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if file := _file_of(alias.name, 0, path, folder):
                    yield alias.asname or alias.name, (file, "")
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = ".".join(filter(None, (node.module, alias.name)))
                if file := _file_of(module, node.level, path, folder):
                    yield alias.asname or alias.name, (file, "")
                elif file := _file_of(node.module or "", node.level, path, folder):
                    yield alias.asname or alias.name, (file, alias.name)


def _file_of(module: str, level: int, path: Path, folder: Path) -> Path | None:
    """Return the file of a module that lies in the folder; None for any other."""
    up = [path.parent, *path.parent.parents]
    bases = [up[level - 1]] if 0 < level <= len(up) else [p for p in up if p.is_relative_to(folder)]
    for base in bases:
        stem = base.joinpath(*filter(None, module.split(".")))
        for file in (stem.with_suffix(".py"), stem / "__init__.py"):
            if module and file.is_file() and file.is_relative_to(folder):
                return file
    return None


def _parsed(path: Path) -> ast.Module | None:
    """Return a file's tree; None where it is no Python."""
    try:
        return ast.parse(text_of(path, "replace"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _prefix(name: str, call: ast.Call, joined: Mapping[str, str | None]) -> str | None:
    """Return the path before a router's own paths; None where no literal says it."""
    words = {word.arg: word.value for word in call.keywords}
    own = next((words[key] for key in ("prefix", "url_prefix") if key in words), None)
    parts = [joined.get(name, ""), "" if own is None else _constant(own)]
    if _kind(call) == "Blueprint" and parts[0]:  # which takes the place of its own
        parts.pop()
    return None if None in parts else "".join(map(str, parts))


def _is_local(tree: ast.Module, name: str) -> bool:
    """Return whether a name is assigned in functions alone."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return False
        if not isinstance(node, Handler):
            left += ast.iter_child_nodes(node)
    return True


def _factory(tree: ast.Module, app: _App) -> str | None:
    """Return the function without arguments that makes an app."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(part is app.call for part in ast.walk(node)):
            needs = len(node.args.args) + len(node.args.kwonlyargs)
            has = len(node.args.defaults) + len([one for one in node.args.kw_defaults if one])
            return node.name if needs == has else None
    return None


def _routes(tree: ast.AST, prefixes: Mapping[str, str | None]) -> Iterator[_Route]:
    """Yield the routes of decorators of known apps and routers, in the order of the file."""
    for node in ast.walk(tree):
        if not isinstance(node, Handler):
            continue
        for call in node.decorator_list:
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            owner, how = ast.unparse(call.func.value), call.func.attr
            words = {word.arg: word.value for word in call.keywords}
            first = call.args[0] if call.args else words.get("path", words.get("rule"))
            path, prefix = _constant(first), prefixes.get(owner)
            methods = {how.upper()}
            if how in ("route", "api_route"):
                listed = words.get("methods")
                values = getattr(listed, "elts", ()) if listed else ()
                methods = {str(_constant(one)).upper() for one in values} or {"GET"}
            if isinstance(path, str) and prefix is not None:
                yield _Route(frozenset(methods), prefix + path, node, call)


def _rank(path: str, words: Sequence[str]) -> int:
    last = path.rstrip("/").rpartition("/")[2].lower()
    return words.index(last) if last in words else len(words)


def _ready(app: _App, routes: Sequence[_Route], url: str) -> str:
    """Return where the app can be seen to run: a health page, its schema, or where it is asked.

    What takes only POST answers with status 405 there.
    """
    pages = [
        route.path
        for route in routes
        if "GET" in route.methods and not _parameters(route.handler)[0]
    ]
    healthy = [path for path in pages if _rank(path, _HEALTH) < len(_HEALTH)]
    if healthy:
        return healthy[0]
    if app.kind == "FastAPI":
        words = {word.arg: word.value for word in app.call.keywords}
        schema = _constant(words["openapi_url"]) if "openapi_url" in words else "/openapi.json"
        if isinstance(schema, str) and _PLAIN.fullmatch(schema):
            return schema
    return next((path for path in pages if path != url), url or "/")


def _started(app: _App, path: Path, folder: Path) -> Iterator[str]:
    """Yield the words of the command that starts an app, as YAML writes them."""
    yield from ("python", "-m")
    if app.kind == "Flask":
        place = path.relative_to(folder).with_suffix("").as_posix()
        yield from ("flask", "--app", f'"{place}:{app.name}"', "run")
        return
    module, package = path.stem, path.parent
    while package != folder and (package / "__init__.py").is_file():
        module, package = f"{package.name}.{module}", package.parent
    yield from ("uvicorn", *(["--factory"] if app.is_factory else []), f'"{module}:{app.name}"')
    if package != folder:
        yield from ("--app-dir", package.relative_to(folder).as_posix())


def _variables(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the environment variables that a file reads, and whether it fails without them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            name, needs = _constant(node.slice), isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("environ.get", "getenv")
        ):
            name, needs = _constant(node.args[0]) if node.args else None, False
            if len(node.args) > 1 and _constant(node.args[1]) not in (None, ""):
                continue
        else:
            continue
        if isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            yield name, needs


def _needed(tree: ast.AST) -> list[str]:
    return sorted({name for name, needs in _variables(tree) if needs and _is_plain(name)})


def _read_elsewhere(tree: ast.AST) -> list[str]:
    """Return the variables without which the file runs, but perhaps not the system."""
    return sorted({name for name, _ in _variables(tree)} - {*_needed(tree)})


def _parameters(handler: Handler) -> tuple[list[ast.arg], list[ast.arg]]:
    """Return the parameters of a handler without and with a default."""
    listed = handler.args
    plain = [*listed.posonlyargs, *listed.args]
    first = len(plain) - len(listed.defaults)
    keyword = list(zip(listed.kwonlyargs, listed.kw_defaults, strict=True))
    needed = [*plain[:first], *(one for one, default in keyword if default is None)]
    has_default = [*plain[first:], *(one for one, default in keyword if default is not None)]
    return needed, has_default


def _asked(route: _Route, source: _Source) -> dict[str, Any]:
    """Return the field of a question in what a handler takes, and of documents that it is given."""
    needed, _ = _parameters(route.handler)
    kinds = [ast.unparse(one.annotation) if one.annotation else "" for one in needed]
    models = [kind for kind in kinds if source.fields(kind)]
    if (
        len(models) == 1
        and len([kind for kind in kinds if kind not in _GIVEN_BY_THE_FRAMEWORK]) == 1
    ):
        fields = source.fields(models[0])
        plain = {name: kind for name, (kind, _) in fields.items() if _is_plain(name)}
        texts = [name for name, kind in plain.items() if _is_text(kind)]
        lists = [name for name, kind in plain.items() if kind.lower().startswith("list[")]
        required = [name for name, (_, is_required) in fields.items() if is_required]
        asked = _first(_QUESTION, texts) or (texts[0] if len(texts) == 1 else "")
        given = _first(_DOCUMENTS, lists)
        if not asked and "messages" in lists:
            asked = "messages"
        lacking = [harmless(name) for name in required if name not in (asked, given)]
        if asked:
            return {"asked": asked, "given": given, "lacking": lacking}
    return {"asked": name} if (name := _taken(route.handler)) else {}


def _is_plain(name: str) -> bool:
    """Whether a key may stand in a policy as it is: an alias may be any text."""
    return name.isidentifier() and name.lower() not in ("null", "true", "false")


def _is_text(kind: str) -> bool:
    return bool(re.match(r"(?:Optional\[|Annotated\[)?(?:str\b|constr\()", kind))


_OF_A_REQUEST = re.compile(
    r"(?:request\.(?:json|get_json\([^()]*\))|await request\.json\(\)|"
    r"\b(?:data|body|payload|content|asked|inputs?|req))\)?(?:\[|\.get\()'(\w+)'"
)


def _taken(handler: Handler) -> str:
    """Return the one field that a handler takes from the JSON of a request, where it is one."""
    names = [*dict.fromkeys(_OF_A_REQUEST.findall(ast.unparse(handler)))]
    return _first(_QUESTION, names) or (names[0] if len(names) == 1 else "")


def _replied(route: _Route, source: _Source) -> dict[str, str]:
    """Name the fields of what a handler returns; empty where no object or model says them.

    `answer` and `documents` are keys of the object, `document` says where a document has its text
    and its id, as a policy writes it, where these are not `text` and `id`.
    """
    for keys in _replies(route, source):
        answer = _first(_ANSWER, [*keys])
        if answer and all(map(str.isidentifier, keys)):
            documents = _first(_DOCUMENTS, [key for key in keys if key != answer])
            names = keys[documents] if documents else []
            return {"answer": answer, "documents": documents, "document": _document(names)}
    return {}


def _replies(route: _Route, source: _Source) -> Iterator[dict[str, list[str]]]:
    """Yield replies: each key, and the names within its elements where it is a list of objects."""
    for node in ast.walk(route.handler):
        value = node.value if isinstance(node, ast.Return) else None
        if isinstance(value, ast.Tuple) and value.elts:  # with a status
            value = value.elts[0]
        if isinstance(value, ast.Call):
            words = {word.arg: word.value for word in value.keywords if word.arg}
            is_model = _kind(value) in source.classes or _kind(value) == "jsonify"
            if is_model and words:
                yield {name: _inside(part, source) for name, part in words.items()}
                continue
            if _kind(value) in ("jsonify", "JSONResponse"):
                value = value.args[0] if value.args else words.get("content")
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            yield {
                str(_constant(key)): _inside(part, source)
                for key, part in pairs
                if isinstance(_constant(key), str)
            }
    annotations = [
        route.handler.returns,
        *(w.value for w in route.decorator.keywords if w.arg == "response_model"),
    ]
    for annotation in annotations:
        if annotation is not None and (fields := source.fields(ast.unparse(annotation))):
            yield {
                name: [
                    *source.fields(re.sub(r"^list\[(\w+)\].*", r"\1", kind, flags=re.IGNORECASE))
                ]
                for name, (kind, _) in fields.items()
            }


def _inside(value: ast.expr, source: _Source) -> list[str]:
    """Return the names within the elements of a literal list or comprehension of objects."""
    element: ast.expr | None = None
    if isinstance(value, ast.ListComp):
        element = value.elt
    elif isinstance(value, ast.List) and value.elts:
        element = value.elts[0]
    if isinstance(element, ast.Dict):
        return [str(name) for key in element.keys if (name := _constant(key)) is not None]
    if isinstance(element, ast.Call) and _kind(element) in source.classes:
        return [word.arg for word in element.keywords if word.arg]
    return []


def _first(names: Sequence[str], keys: Iterable[str]) -> str:
    there = {*keys}
    return next((name for name in names if name in there), "")


def _document(names: Sequence[str]) -> str:
    """Say where a document has text and id: `text: $.content, id: $.title`."""
    there = [name for name in names if name.isidentifier()]
    places = {"text": _first(_TEXT, there), "id": _first(_ID, there)}
    if all(place in ("", part) for part, place in places.items()):
        return ""
    return ", ".join(f"{part}: $.{place}" for part, place in places.items() if place)
