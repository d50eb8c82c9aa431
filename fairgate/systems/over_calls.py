"""An application that is a Python function of the user's: `my_app.rag:ask`.

Called as the function can be called: with the query, and with `instruction`, `prompt`, `options`,
`documents` or `top_k` where it names them; or in promptfoo's form, `call_api(prompt, options,
context)`. It may be a coroutine. Retrievers of LangChain, LlamaIndex and Haystack, and documents of
theirs in what is returned, are recognised by their form, without importing them. The code runs in
this process with all its rights, so it is only imported where the person who starts FairGate allows
it, never because a policy sets it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairgate.domain.applications import Question, Reply, Used, not_counted, usage_of
from fairgate.domain.errors import ApplicationError, UsageError
from fairgate.domain.wording import harmless, quoted
from fairgate.io.replies import ReplyPaths, json_path, reply_of

_VERSION = "python-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_PROMPTFOO = ("prompt", "options", "context")
_PROMPTFOO_PATHS = ReplyPaths(answer=json_path("$.output"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What is imported, and how it is read."""

    target: str
    """`module:function`, found from `folder` or among what is installed."""
    folder: Path
    paths: ReplyPaths
    revision: str | None = None


class CallApplication:
    """A port `Application`: a call a question."""

    def __init__(self, function: Function, *, used: Used = not_counted) -> None:
        """Take the function's name; nothing is imported yet."""
        self._named = function
        self._used = used

    @property
    def name(self) -> str:
        """Say what is called."""
        return f"the function {quoted(self._named.target)}"

    @property
    def revision(self) -> str | None:
        """Return what the user changes when the function changes."""
        return self._named.revision

    @property
    def fingerprint(self) -> str:
        """Identify the function, the mapping and the revision."""
        named = self._named
        parts = (_VERSION, named.target, repr(named.paths), named.revision)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply], None, None]:
        """Yield `(position in questions, reply)` in order.

        Raises ApplicationError where the function cannot be imported, raises or returns no reply.
        """
        with asyncio.Runner() as runner:
            for position, question in enumerate(questions):
                value = self._called(question, runner)
                self._used(usage_of(value))
                try:
                    reply = reply_of(value, self._paths(value))
                except ApplicationError as error:
                    about = f"asked the question {quoted(question.query)}"
                    raise ApplicationError(f"{self.name}, {about}: {error}") from None
                yield position, reply

    def _called(self, question: Question, runner: asyncio.Runner) -> Any:
        """Return what the function returns, as JSON values as far as it can be read as such."""
        arguments = self._arguments(question)
        did = "raised"
        try:
            value = self._function(*arguments[0], **arguments[1])
            if inspect.isawaitable(value):
                value = runner.run(_awaited(value))
            did = f"what it returned ({quoted(type(value).__name__)}) cannot be read:"
            return _plain(value)
        except (Exception, SystemExit) as error:
            raise ApplicationError(
                f"{self.name}, asked the question {quoted(question.query)}: {did} "
                f"{type(error).__name__}: {harmless(_words(error))}; --debug shows where"
            ) from error

    def _arguments(self, question: Question) -> tuple[list[Any], dict[str, Any]]:
        if self._is_promptfoo:
            context = {"vars": {**asdict(question)}}
            return [question.prompt, {}, context], {}
        known = {
            "instruction": question.instruction,
            "prompt": question.prompt,
            "options": list(question.options),
            "top_k": question.top_k,
            "documents": None
            if question.documents is None
            else [asdict(document) for document in question.documents],
        }
        wanted = {name: value for name, value in known.items() if name in self._parameters[1:]}
        return [question.query], wanted

    @cached_property
    def _parameters(self) -> list[str]:
        try:
            return list(inspect.signature(self._function).parameters)
        except (TypeError, ValueError):
            return []

    @property
    def _is_promptfoo(self) -> bool:
        return tuple(self._parameters[:3]) == _PROMPTFOO

    def _paths(self, value: Any) -> ReplyPaths:
        """Return where the answer is: promptfoo calls it `output`, a text alone is the answer."""
        if isinstance(value, Mapping) and "output" in value and "answer" not in value:
            return _PROMPTFOO_PATHS
        return self._named.paths

    @cached_property
    def _function(self) -> Callable[..., Any]:
        module_name, _, name = self._named.target.partition(":")
        folder = str(self._named.folder.resolve())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            found: Any = importlib.import_module(module_name)
            for part in name.split("."):
                found = getattr(found, part)
        except (Exception, SystemExit) as error:
            raise ApplicationError(
                f"{self.name} cannot be imported ({type(error).__name__}: "
                f"{harmless(_words(error))}); expected `module:function`, found from "
                f"{quoted(folder)} or installed beside FairGate"
            ) from error
        return _callable(found, self.name)


def _callable(found: Any, name: str) -> Callable[..., Any]:
    """Return a function, or the method by which a retriever of a framework is asked."""
    if not inspect.isroutine(found) and not isinstance(found, type):
        for method in ("invoke", "retrieve"):  # LangChain; LlamaIndex
            if callable(getattr(found, method, None)):
                asking = getattr(found, method)
                # Its own signature has settings of the framework's that are not ours to give.
                return functools.partial(_first_argument_alone, asking)
        if callable(getattr(found, "run", None)):  # Haystack
            return lambda query: found.run(query=query)
    if not callable(found):
        raise UsageError(f"{name} is no function; expected `module:function`")
    function: Callable[..., Any] = found
    return function


def _first_argument_alone(asking: Callable[[str], Any], query: str) -> Any:
    return asking(query)


async def _awaited(value: Any) -> Any:
    return await value


def _plain(value: Any) -> Any:
    """Return what was returned as JSON values: a text alone, documents alone, or a mapping."""
    if isinstance(value, str):
        return {"answer": value}
    if isinstance(value, list | tuple):
        return {"documents": _values(value)}
    return _values(value)


def _values(value: Any) -> Any:
    """Return mappings, lists and the objects of frameworks as plain values."""
    if isinstance(value, Mapping):
        return {str(name): _values(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_values(inner) for inner in value]
    document = _document(value)
    if document is not None:
        return document
    if is_dataclass(value) and not isinstance(value, type):
        # Not `asdict`: it copies what a mapping never reads, such as locks and connections.
        return {field.name: _values(getattr(value, field.name)) for field in fields(value)}
    return value


def _document(value: Any) -> dict[str, Any] | None:
    """Return a document of LangChain, LlamaIndex or Haystack, recognised by its attributes."""
    if hasattr(value, "page_content"):  # LangChain
        kept, text = getattr(value, "metadata", None), value.page_content
        name = getattr(value, "id", None)
        score = kept.get("score") if isinstance(kept, Mapping) else None
    elif hasattr(value, "node") and hasattr(value, "get_content"):  # LlamaIndex
        kept, text = getattr(value.node, "metadata", None), value.get_content()
        name, score = getattr(value.node, "node_id", None), getattr(value, "score", None)
    elif hasattr(value, "content") and hasattr(value, "meta"):  # Haystack
        kept, text = value.meta, value.content
        name, score = getattr(value, "id", None), getattr(value, "score", None)
    else:
        return None
    about = kept if isinstance(kept, Mapping) else {}
    return {
        "id": name if name is not None else about.get("id"),
        "text": text,
        "label": about.get("label"),
        "score": score,
    }


def _words(error: BaseException) -> str:
    """Return the beginning of an error's text, which is code of the user's too."""
    try:
        return str(error)[:300]
    except Exception:  # noqa: BLE001  # whatever it is: the words of an error of the user's
        return "without a text"
