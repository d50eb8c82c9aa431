"""An application that is a Python function of the user's: `system: {python: "my_app.rag:ask"}`.

Called as the function can be called: with the query, and with `instruction`, `prompt`, `options`,
`documents`, `top_k`, `session` or `messages` where it names them. It may be a coroutine. Retrievers
of LangChain, LlamaIndex and Haystack, and documents of theirs in what is returned, are recognised
by their form, without importing them. The code runs in this process with all its rights, so it is
only imported where the person who starts FairGate allows it, never because a policy sets it.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag

from fairgate.domain.errors import ApplicationError, FailedQuestionError, UsageError
from fairgate.domain.executions import Execution, Question, usage_of
from fairgate.domain.schema import Access, ByShape, Strict, way_of
from fairgate.domain.wording import harmless, quoted
from fairgate.io.replies import ReplyPaths, reply_of
from fairgate.systems.application import ApplicationKind, EmbedderOfReplies
from fairgate.systems.budget import BudgetField, Meter
from fairgate.systems.labelling import LabelsField
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import RevisionField, resolved, revision_text
from fairgate.systems.service_fields import TAKES, OwnResponsePaths

if TYPE_CHECKING:
    import asyncio

_VERSION = "python-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_GIVEN = (
    *("instruction", "prompt", "options", "top_k", "documents"),
    *("changed", "session", "messages"),
)
Target = Annotated[str, Field(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$")]


FUNCTION = (
    "`module:function`, a retriever of LangChain, LlamaIndex or Haystack, or a mapping; needs "
    "`--allow-python`."
)


class PythonAsked(Strict):
    """What is imported and called."""

    call: Target = Field(description="`module:function`.")
    revision: RevisionField = None

    @property
    def accesses(self) -> list[Access]:
        """Return the code that is imported."""
        return [Access("imports", self.call, way=way_of(self))]

    @property
    def shown(self) -> str:
        """Return the function's name in reports."""
        return f"python {self.call}"

    def opened(self, paths: ReplyPaths, resources: Resources, meter: Meter) -> CallApplication:
        """Return the application, not imported yet. Raises UsageError where nobody allowed it."""
        if resources.runtime.confined and resources.runtime.tested is not None:
            raise UsageError(
                f"the policy's system calls {quoted(self.call)} in the process that judges, where "
                "code of a change could decide: on pull requests ask it by `command`, `http` or "
                "`serve`"
            )
        if not resources.runtime.allow_python:
            raise UsageError(
                f"the policy's system calls {quoted(self.call)}, which runs with all your rights; "
                "add --allow-python if you trust it"
            )
        runtime = resources.runtime.under_test
        return CallApplication(resolved(self, runtime), paths, runtime.root, meter)


class PythonPart(PythonAsked):
    """An application that is a function, and how its result is read."""

    response: OwnResponsePaths = Field(
        default_factory=OwnResponsePaths, description="The places of answer and documents."
    )
    takes: list[Literal["documents", "changed"]] = Field(
        default_factory=list,
        description=TAKES,
    )
    takes_turns: ClassVar[bool] = True
    """What it takes is known when it is called."""


class PythonPolicy(ApplicationKind):
    """An application that is a Python function; needs `--allow-python`."""

    id: ClassVar[str] = "python"
    keys: ClassVar[tuple[str, ...]] = ("python",)

    python: Annotated[
        Annotated[Target, Tag("<scalar>")] | Annotated[PythonPart, Tag("<mapping>")], ByShape
    ] = Field(description=FUNCTION)
    embedder: EmbedderOfReplies = None
    budget: BudgetField = None
    labels: LabelsField = None

    @property
    def part(self) -> PythonPart:
        """Return the mapping that a name alone stands for."""
        return PythonPart(call=self.python) if isinstance(self.python, str) else self.python


class CallApplication:
    """A port `Application`: a call a question."""

    def __init__(
        self, function: PythonAsked, paths: ReplyPaths, folder: Path, meter: Meter
    ) -> None:
        """Take the function's name, found from `folder` or among what is installed.

        Nothing is imported yet.
        """
        self.name = f"the function {quoted(function.call)}"
        self.revision = revision_text(function.revision)
        self._named = function
        self._paths = paths
        self._folder = folder
        self._meter = meter

    @property
    def fingerprint(self) -> str:
        """Identify the function, the mapping and the revision."""
        part = self._named
        parts = (_VERSION, part.call, repr(self._paths), self.revision)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Execution], None, None]:
        """Yield `(position in questions, reply)` in order.

        Raises ApplicationError where the function cannot be imported, raises or returns no reply.
        """
        import asyncio

        with asyncio.Runner() as runner:
            for position, question in enumerate(questions):
                replies: list[Execution] = []
                for turn in question.turns(replies):
                    about = f"{self.name}, asked {question.named(replies)}"
                    replies.append(self._reply(question, turn, runner, about))
                yield position, replies[-1]

    def _reply(
        self, question: Question, turn: Question, runner: asyncio.Runner, about: str
    ) -> Execution:
        if question.before and {"session", "messages"}.isdisjoint(self._parameters[1:]):
            raise ApplicationError(
                f"{self.name} is asked in conversations and takes neither `session` nor "
                "`messages`, so that it would not know the earlier turns; give it one of these "
                "parameters"
            )
        value = self._called(turn, question, runner, about)
        self._meter.add(usage_of(value))
        try:
            return reply_of(value, self._paths)
        except ApplicationError as error:
            raise FailedQuestionError(f"{about}: {error}", question) from None

    def _called(
        self, turn: Question, question: Question, runner: asyncio.Runner, about: str
    ) -> Any:
        """Call the function; return JSON values as far as its result can be read as such."""
        fields = turn.as_dict()
        lists = {name: list(value) for name, value in fields.items() if isinstance(value, tuple)}
        wanted = [name for name in _GIVEN if name in self._parameters[1:]]
        keywords = {name: (fields | lists).get(name) for name in wanted}
        if question.changed is not None and "changed" not in wanted:
            raise ApplicationError(
                f"{self.name} has no parameter `changed`, so it would search the corpus as it is; "
                "add one, or leave it out of `takes`"
            )
        did = "raised"
        try:
            value = self._function(turn.query, **keywords)
            if inspect.isawaitable(value):
                value = runner.run(_awaited(value))
            did = f"what it returned ({quoted(type(value).__name__)}) cannot be read:"
            return _plain(value)
        except (Exception, SystemExit) as error:
            words = f"{type(error).__name__}: {harmless(_words(error))}"
            raise FailedQuestionError(
                f"{about}: {did} {words}; --debug shows where", question, type(error).__name__
            ) from error

    @cached_property
    def _parameters(self) -> list[str]:
        try:
            return list(inspect.signature(self._function).parameters)
        except (TypeError, ValueError):
            return []

    @cached_property
    def _function(self) -> Callable[..., Any]:
        module_name, _, name = self._named.call.partition(":")
        folder = str(self._folder.resolve())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            value: Any = importlib.import_module(module_name)
            for part in name.split("."):
                value = getattr(value, part)
        except (Exception, SystemExit) as error:
            raise ApplicationError(
                f"{self.name} cannot be imported ({type(error).__name__}: "
                f"{harmless(_words(error))}); expected `module:function`, found from "
                f"{quoted(folder)} or installed beside FairGate"
            ) from error
        return _callable(value, self.name)


def _callable(value: Any, name: str) -> Callable[..., Any]:
    """Return a function, or the method by which a retriever of a framework is asked."""
    if not inspect.isroutine(value) and not isinstance(value, type):
        for method in ("invoke", "retrieve"):  # LangChain; LlamaIndex
            if callable(getattr(value, method, None)):
                asking = getattr(value, method)
                # Its own signature has settings of the framework's that are not ours to give.
                return lambda query: asking(query)  # noqa: PLW0108
        if callable(getattr(value, "run", None)):  # Haystack
            return lambda query: value.run(query=query)
    if not callable(value):
        raise UsageError(f"{name} is no function; expected `module:function`")
    function: Callable[..., Any] = value
    return function


async def _awaited(value: Any) -> Any:
    return await value


def _plain(value: Any) -> Any:
    """Read a function's result as JSON values: a text alone, documents alone, or a mapping."""
    if isinstance(value, str):
        return {"answer": value}
    return {"documents": _values(value)} if isinstance(value, list | tuple) else _values(value)


def _values(value: Any) -> Any:
    """Return mappings, lists and the objects of frameworks as plain values."""
    if isinstance(value, Mapping):
        return {str(name): _values(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_values(inner) for inner in value]
    if (document := _document(value)) is not None:
        return document
    if is_dataclass(value) and not isinstance(value, type):
        # Not `asdict`: it copies what a mapping never reads, such as locks and connections.
        return {field.name: _values(getattr(value, field.name)) for field in fields(value)}
    return value


def _document(value: Any) -> dict[str, Any] | None:
    """Return a document of LangChain, LlamaIndex or Haystack, recognised by its attributes."""
    if hasattr(value, "page_content"):  # LangChain
        metadata, text = getattr(value, "metadata", None), value.page_content
        name = getattr(value, "id", None)
        score = metadata.get("score") if isinstance(metadata, Mapping) else None
    elif hasattr(value, "node") and hasattr(value, "get_content"):  # LlamaIndex
        metadata, text = getattr(value.node, "metadata", None), value.get_content()
        name, score = getattr(value.node, "node_id", None), getattr(value, "score", None)
    elif hasattr(value, "content") and hasattr(value, "meta"):  # Haystack
        metadata, text = value.meta, value.content
        name, score = getattr(value, "id", None), getattr(value, "score", None)
    else:
        return None
    about = metadata if isinstance(metadata, Mapping) else {}
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
