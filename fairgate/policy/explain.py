"""pydantic's errors in plain words: where in the document, what was found, what is expected.

The expectation is read from the JSON Schema of the model, so words and schema cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fairgate.domain.schema import NAME_PATTERN, is_branch
from fairgate.domain.wording import harmless, listed, nearest, shown, suggestion
from fairgate.policy.yaml_text import Where
from fairgate.suites.catalogue import SUITE_KINDS

Schema = Mapping[str, Any]

_TYPE_WORDS = {
    "string": "text",
    "boolean": "`true` or `false`",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_SWITCHES = dict.fromkeys(("yes", "on", "true"), "true") | dict.fromkeys(
    ("no", "off", "false"), "false"
)
_PERCENT = re.compile(r"\s*([0-9]{1,9}(?:[.,][0-9]{1,9})?)\s*%\s*")
_NUMERIC = re.compile(r"\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*")


def explain(
    error: ValidationError, model: type[BaseModel], data: object
) -> list[tuple[Where, str]]:
    """Return each defect of `data` as the place and the sentence about it."""
    root: Schema = model.model_json_schema()
    found = error.errors(include_url=False)
    mistyped = [
        details["loc"]
        for details in found
        if details["type"] == "extra_forbidden" and isinstance(details["loc"][-1], str)
    ]
    return [
        _sentence(details, root, data) for details in found if not _is_mistyped(details, mistyped)
    ]


def _is_mistyped(details: ErrorDetails, mistyped: Sequence[Sequence[str | int]]) -> bool:
    """Return whether what is missing stands there under a name like its own, and is told there."""
    *parent, key = details["loc"] or ("",)
    return details["type"] == "missing" and any(
        [*around] == parent and nearest(str(name), [str(key)]) for *around, name in mistyped
    )


def dotted(where: Where) -> str:
    """Return a place in the usual notation: `gates[1].max`; positions count from 0."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    return harmless(text.removeprefix(".")[:200])


def _sentence(details: ErrorDetails, root: Schema, data: object) -> tuple[Where, str]:
    # Branches of unions are tagged "<…>" (domain/fields.py) and are no part of the document; what
    # an unknown key is called is, even if it looks like a tag.
    *parents, last = details["loc"] or ("<mapping>",)
    own = [last] if details["type"] == "extra_forbidden" or not is_branch(last) else []
    where: Where = (*(step for step in parents if not is_branch(step)), *own)
    name = f"{dotted(where)}: " if where else ""
    match details["type"]:
        case "union_tag_not_found":
            found = shown(details["input"].get("kind"))
            at = (*where, "kind")
            return at, f"{dotted(at)}: found {found}, expected {listed(SUITE_KINDS.ids)}"
        case "missing":
            return where, _missing(where, root, data)
        case "extra_forbidden":
            return where, _unknown(where, root, data)
        case "value_error":
            return where, name + harmless(details["msg"].removeprefix("Value error, "))
        case _:
            node = _branch(_at(root, where, data), root, details["input"])
            value = details["input"]
            found = f"found {shown(value)}, expected {_expectation(node, root)}"
            return where, f"{name}{found}{_hint(value, node)}"


def _missing(where: Where, root: Schema, data: object) -> str:
    parent = f"{dotted(where[:-1])}: " if where[:-1] else ""
    node = _at(root, where, data)
    about = str(node.get("description", "")).rstrip(".")
    if "const" in node:
        return f"{parent}`{where[-1]}` is missing; add it: `{where[-1]}: {node['const']}`"
    expected = _expectation(node, root)
    return f"{parent}`{where[-1]}` is missing; add it: {about or expected}"


def _unknown(where: Where, root: Schema, data: object) -> str:
    name = str(where[-1])
    node, value = _at(root, where[:-1], data), data
    for step in where[:-1]:
        value = value[step]  # type: ignore[index]  # pydantic came along here
    known = list(_properties(_branch(node, root, value), root))
    parent = f" in `{dotted(where[:-1])}`" if where[:-1] else ""
    sentence = f"unknown key `{harmless(name[:60])}`{parent}; "
    kinds = [
        own
        for branch in _branches(node, root)
        if name in (keys := branch.get("properties", {}))
        and (own := keys.get("kind", {}).get("const"))
    ]
    if kinds and not nearest(name, known):
        return f"{sentence}it is one of kind {listed(kinds, last='or')}"
    owners = list(dict.fromkeys(owner for owner, keys in _owners(root) if name in keys))
    if not nearest(name, known) and owners:
        return f"{sentence}it belongs in {listed(owners)}"
    return sentence + suggestion(name, known)


def _owners(root: Schema) -> Iterator[tuple[str, list[str]]]:
    """Yield every key that holds a mapping, with the keys of that mapping."""
    for schema in (root, *root.get("$defs", {}).values()):
        for name, child in schema.get("properties", {}).items():
            keys = _properties(child, root)
            if keys:
                yield name, keys


def _at(schema: Schema, where: Where, data: object) -> Schema:
    """Return the part of the schema that describes `where`, along the branches that `data` took."""
    root, node, value = schema, schema, data
    for step in where:
        branch = _branch(node, root, value)
        if isinstance(step, int):
            node = branch.get("items", {})
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            extra = branch.get("additionalProperties")
            fallback = extra if isinstance(extra, dict) else {}
            node = branch.get("properties", {}).get(step, fallback)
            value = value.get(step) if isinstance(value, dict) else None
    return node


def _branches(node: Schema, root: Schema) -> list[Schema]:
    """Return the alternatives that a schema offers, references resolved, `null` left out."""
    if "$ref" in node:
        return _branches(root["$defs"][node["$ref"].rsplit("/", 1)[-1]], root)
    options = node.get("anyOf") or node.get("oneOf")
    if options is None:
        return [] if node.get("type") == "null" else [node]
    return [branch for option in options for branch in _branches(option, root)]


def _branch(node: Schema, root: Schema, value: object) -> Schema:
    """Return the alternative of the value's own kind; all of them where there is none."""
    branches = _branches(node, root)
    if len(branches) == 1:
        return branches[0]
    kind = {dict: "object", list: "array", bool: "boolean", str: "string"}.get(type(value))
    fitting = [branch for branch in branches if branch.get("type") == kind]
    if len(fitting) > 1 and isinstance(value, dict):
        return max(fitting, key=lambda branch: _likeness(branch, value))
    return fitting[0] if fitting else node


def _likeness(branch: Schema, value: Mapping[str, object]) -> tuple[bool, int]:
    """Return how well a mapping fits `branch`: by the kind it names, then by the keys it uses."""
    properties = branch.get("properties", {})
    own = properties.get("kind", {}).get("const")
    return own == value.get("kind", SUITE_KINDS.ids[0]), sum(key in properties for key in value)


def _properties(node: Schema, root: Schema) -> list[str]:
    return [key for branch in _branches(node, root) for key in branch.get("properties", {})]


def _expectation(node: Schema, root: Schema) -> str:
    branches = _branches(node, root)
    if len(branches) != 1:
        return " or ".join(dict.fromkeys(_expectation(branch, root) for branch in branches))
    schema = branches[0]
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return listed(str(value) for value in schema["enum"])
    match schema.get("type", ""):
        case "number":
            words = f"a number{_range(schema)}"
        case "integer":
            words = f"a whole number{_range(schema)}"
        case "array":
            words = _list_words(schema, root)
        case "string" if schema.get("pattern") == NAME_PATTERN:
            words = "a name of at most 64 lower-case letters, digits, `.`, `_` and `-`"
        case kind:
            words = _TYPE_WORDS.get(kind, "another value")
    return words


def _list_words(schema: Schema, root: Schema) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    items = schema.get("items", {})
    text = all(branch.get("type") == "string" for branch in _branches(items, root))
    of = " of texts" if text else ""
    if most is not None and most == least:
        return f"a list of {least} values, each {_expectation(items, root)}"
    entries = "entry" if least == 1 else "entries"
    return f"a list{of} with at least {least} {entries}" if least else f"a list{of}"


def _range(schema: Schema) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None and high < 2**53:
        return f" between {low:g} and {high:g}"
    words = [
        f"{phrase} {bound:g}"
        for phrase, bound in (
            ("of at least", low),
            ("above", above),
            ("at most", high),
            ("below", below),
        )
        if bound is not None and abs(bound) < 2**53
    ]
    return f" {' and '.join(words)}" if words else ""


def _hint(value: object, node: Schema) -> str:
    """Return the next step for a common mistake, with the punctuation before it."""
    kind = node.get("type")
    if kind == "string" and isinstance(value, int | float):
        return "; put it in quotes"
    if not isinstance(value, str):
        return ""
    hint = ""
    if not value.strip():
        hint = "; it must not be blank"
    elif kind in {"number", "integer"} and _NUMERIC.fullmatch(value[:100]):
        hint = "; write it without quotes"
    elif kind == "number" and (percent := _PERCENT.fullmatch(value[:100])):
        hint = f"; rates are fractions: write {float(percent[1].replace(',', '.')) / 100:g}"
    elif kind == "boolean" and value.lower() in _SWITCHES:
        hint = f"; write `{_SWITCHES[value.lower()]}`"
    elif "enum" in node:
        close = nearest(value, [str(option) for option in node["enum"]])
        hint = f"; did you mean {listed(close[:1])}?" if close else ""
    elif kind == "array":
        hint = "; write it in brackets: `[…]`"
    return hint
