"""Traces with OpenInference's spans as rows: question, answer, documents.

A trace is one question. What it was, what was answered and what was retrieved is taken from spans
with the attribute `openinference.span.kind`; others are passed over. Source: OpenInference's
semantic conventions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from fairgate.domain.errors import DataError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.tables import capped, read_json_objects

_MESSAGES = "llm.output_messages"
_QUESTION = ("query", "question", "input", "user_input", "text", "prompt")
_ANSWER = ("answer", "output", "response", "result", "text", "content")
"""Names of the one text that counts, where an input or output is a JSON object."""
_MOST_STEPS = 12
_ERROR = (2, "STATUS_CODE_ERROR")
Tree = dict[str, Any]


class Trace(NamedTuple):
    """What one trace tells; None where it does not."""

    place: str
    question: str | None
    answer: str | None
    """None also where the application failed, or where it is open which model's answer counts."""
    documents: list[Tree] | None
    """`id`, `text`, `label` and `score` of each as they were written, in rank order."""


class TraceSpan(NamedTuple):
    """One step of a trace."""

    id: str
    parent: str
    """Empty where there is none."""
    start: int
    """Nanoseconds; 0 where it is not known."""
    failed: bool
    tree: Tree
    """Attributes by the parts of their names; entries of lists by their positions."""

    @property
    def kind(self) -> str:
        """Return OpenInference's kind of the step; empty where it has none."""
        return str(at(self.tree, "openinference.span.kind") or "").upper()


def read_traces(path: str) -> list[Trace]:
    """Return the traces with OpenInference's spans, in the order of the file.

    The file is OTLP as JSON: an object with `resourceSpans`, or a line each as collectors write it.
    Raises DataError with the place for what is no OTLP or was cut off, and where no span is of
    OpenInference.
    """
    traces: dict[str, dict[str, TraceSpan]] = {}
    for location, resource in _resources(path):
        for scope in _list(resource, "scopeSpans", location):
            for written in _list(scope, "spans", location):
                name, span = written.get("traceId"), _span(written, location)
                if not isinstance(name, str) or not name or not span.id:
                    raise DataError(
                        f"{location}: a span has no `traceId` or `spanId`; expected OTLP-JSON"
                    )
                # An exporter that tried again wrote the same span twice.
                traces.setdefault(name, {}).setdefault(span.id, span)
    result = [
        _trace(f"{path}: trace {capped(name)}", spans)
        for name, spans in traces.items()
        if any(span.kind for span in spans.values())
    ]
    if not result:
        raise DataError(
            f"{path}: none of its {sum(map(len, traces.values())):,} spans has the attribute "
            "`openinference.span.kind`; expected the attributes of OpenInference: instrument the "
            "application with one of its packages, and export the traces as JSON"
        )
    return result


def at(tree: Any, name: str) -> Any:
    """Return the attribute of that dotted name; None where there is none."""
    for step in name.split("."):
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def entries(tree: Any) -> list[Any]:
    """Return the entries at 0, 1, 2, … in their order."""
    items = tree.items() if isinstance(tree, dict) else ()
    numbered = [(int(n), entry) for n, entry in items if n.isdecimal() and len(n) <= 6]
    return [entry for _, entry in sorted(numbered, key=lambda pair: pair[0])]


def _resources(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entries of `resourceSpans` in one object or a line each, with their places."""
    for line, value in read_json_objects(path):
        location = f"{path}:{line}"
        if "scopeSpans" in value:
            yield location, value
            continue
        if value.get("resourceSpans") is None:
            raise DataError(
                f"{location}: no object with `resourceSpans`; expected OTLP-JSON as "
                "OpenTelemetry's collector writes it"
            )
        yield from ((location, entry) for entry in _list(value, "resourceSpans", location))


def _span(span: Mapping[str, Any], location: str) -> TraceSpan:
    tree: Tree = {}
    for attribute in _list(span, "attributes", location):
        name = attribute.get("key")
        if isinstance(name, str):
            _grow(tree, name, _value(attribute.get("value")))
    status, start = span.get("status"), str(span.get("startTimeUnixNano"))
    return TraceSpan(
        id=str(span.get("spanId") or ""),
        parent=str(span.get("parentSpanId") or ""),
        start=int(start) if start.isascii() and start.isdecimal() and len(start) <= 20 else 0,
        failed=isinstance(status, Mapping) and status.get("code") in _ERROR,
        tree=tree,
    )


def _list(value: Mapping[str, Any], name: str, location: str) -> list[Mapping[str, Any]]:
    if (entries := value.get(name)) is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise DataError(f"{location}: `{name}` is {capped(entries)}; expected a list of objects")
    return entries


def _value(value: Any) -> Any:
    """Return an attribute's value: OTLP names its type beside it."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "arrayValue" | "kvlistValue":
            inner = content.get("values") if isinstance(content, Mapping) else None
            listed = inner if isinstance(inner, list) else []
            if kind == "arrayValue":
                return {str(n): _value(entry) for n, entry in enumerate(listed)}
            tree: Tree = {}
            for entry in listed:
                if isinstance(entry, Mapping) and isinstance(entry.get("key"), str):
                    _grow(tree, entry["key"], _value(entry.get("value")))
            return tree
        case "intValue":  # 64 bits: a text in JSON
            is_whole = isinstance(content, str) and content.removeprefix("-").isdecimal()
            return int(content) if is_whole and len(content) <= 20 else content
        case "stringValue" | "doubleValue" | "boolValue":
            return content
    return None


def _grow(tree: Tree, name: str, value: Any) -> None:
    """Put a value at the place that its dotted name says; what is there already stays."""
    *steps, last = name.split(".")[:_MOST_STEPS]
    for step in steps:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    present = tree.setdefault(last, value)
    if present is not value and isinstance(present, dict) and isinstance(value, dict):
        present |= value


def _trace(location: str, spans: Mapping[str, TraceSpan]) -> Trace:
    ordered = sorted((span for span in spans.values() if span.kind), key=lambda span: span.start)
    tops = [span for span in ordered if not any(outer.kind for outer in _around(span, spans))]
    retrievers = [span for span in ordered if span.kind == "RETRIEVER"]
    questions = (_text_of(span, "input", _QUESTION) for span in (*tops, *retrievers))
    # What the outermost span gave is the answer, else what the only model did.
    models = [span for span in ordered if span.kind == "LLM"]
    only = models[0] if len(models) == 1 else None
    whole = tops[0] if len(tops) == 1 else only
    answer = None
    if whole is not None and not whole.failed:
        answer = _output_of(whole)
        if answer is None and only is not None and not only.failed:
            answer = _output_of(only)
    return Trace(
        place=location,
        question=next((text for text in questions if text is not None), None),
        answer=answer,
        documents=_documents(ordered, retrievers),
    )


def _around(span: TraceSpan, spans: Mapping[str, TraceSpan]) -> Iterator[TraceSpan]:
    """Yield the spans around this one, the nearest first."""
    seen = {span.id}
    while (outer := spans.get(span.parent)) is not None and outer.id not in seen:
        yield outer
        seen.add(outer.id)
        span = outer


def _output_of(span: TraceSpan) -> str | None:
    """Return a model's message, else the text of a span's output."""
    messages = [at(message, "message.content") for message in entries(at(span.tree, _MESSAGES))]
    texts = [text for text in messages if isinstance(text, str)]
    return texts[0] if texts else _text_of(span, "output", _ANSWER)


def _text_of(span: TraceSpan, side: str, names: tuple[str, ...]) -> str | None:
    """Return the text of a span's input or output; of an object, the one that counts."""
    value = at(span.tree, f"{side}.value")
    if not isinstance(value, str):
        return None
    if at(span.tree, f"{side}.mime_type") != "application/json":
        return value
    try:
        content = read_json(value, strict=False)
    except JsonError:  # an attribute that a limit cut off
        return None
    if isinstance(content, dict):
        texts = {name: text for name, text in content.items() if isinstance(text, str)}
        preferred = [texts[name] for name in names if name in texts]
        only = list(texts.values()) if len(texts) == 1 else []
        content = next(iter(preferred or only), None)
    return content if isinstance(content, str) else None


def _documents(ordered: Iterable[TraceSpan], retrievers: Iterable[TraceSpan]) -> list[Tree] | None:
    """Return the last reranker's documents, else the retrievers', each once."""
    rerankers = [span for span in ordered if span.kind == "RERANKER"]
    reranked = [entries(at(span.tree, "reranker.output_documents")) for span in rerankers]
    retrieved = [entries(at(span.tree, "retrieval.documents")) for span in retrievers]
    documents: dict[tuple[bool, str], Tree] = {}
    for entry in chain.from_iterable([listed for listed in reranked if listed][-1:] or retrieved):
        about = at(entry, "document.metadata")
        with contextlib.suppress(JsonError):
            about = read_json(about, strict=False) if isinstance(about, str) else about
        document = {
            "id": at(entry, "document.id"),
            "text": at(entry, "document.content"),
            "label": about.get("label") if isinstance(about, dict) else None,
            "score": at(entry, "document.score"),
        }
        is_named = document["id"] is not None
        documents.setdefault(
            (is_named, str(document["id"] if is_named else document["text"])), document
        )
    return list(documents.values()) or None


def traced_rows(path: str, notices: list[str]) -> Iterator[tuple[str, Tree]]:
    """Yield place and row of traces that answer a question; add a notice of those that do not."""
    traces = read_traces(path)
    for trace in traces:
        if trace.question is not None and trace.answer is not None:
            yield trace.place, trace._asdict()
    for lacking in ("question", "answer"):
        without = [trace for trace in traces if getattr(trace, lacking) is None]
        if without:
            notices.append(
                f"{without[0].place}: has no {lacking}, as {len(without):,} of {len(traces):,} "
                "traces; a trace that was cut off or failed answers nothing: record it again"
            )
