"""A policy's text to a validated Policy, or all of its problems at once, each with its line.

pydantic's errors are put in plain words: where in the document, what was found, what is expected.
The expectation is read from the JSON Schema of the model, so words and schema cannot disagree.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.schema import NAME_PATTERN, is_branch
from fairgate.domain.wording import harmless, listed, nearest, shown, suggestion
from fairgate.policy.assembled import PolicyParts, policy_model
from fairgate.policy.checks import contradictions
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import Mark, YamlDocument, YamlFault, YamlPath, load_yaml
from fairgate.suites.catalogue import SUITE_KINDS

Model = TypeVar("Model", bound=BaseModel)
Schema = Mapping[str, Any]

_NAME_OF_VARIABLE = "the NAME of an environment variable, not its value"
"""Expected where somebody may have written a secret, which no message repeats."""
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
_ROUNDS = 8
"""Removing one thing may leave another without what it needs."""
_STAND_INS: Mapping[str, object] = {
    "version": 1,
    "name": "policy",
    "system": {"recorded": "answers.jsonl"},
    "suites": [{"id": "suite", "task": "sentiment", "sources": "sources.jsonl"}],
    "gates": [{"metric": "metric", "max": 0.5}],
}
"""Valid values of what every policy must have; what they name is not looked up."""
_WHOLE = ("gates", "waivers")
"""Lists whose entries say something else without one of their keys."""
_OPTIONAL = ("judge", "reference")
"""Parts that a policy may lack, of which nothing is looked up where one of their keys is wrong."""
_LEADING = ("relations", "task", "kind")
"""Keys of a suite that its others depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPolicy:
    """A valid policy with the line and column of each of its values."""

    policy: Policy
    document: YamlDocument
    stand_ins: frozenset[str] = frozenset()
    """Keys whose values could not be read, and are others here: only where not all is valid."""

    @property
    def path(self) -> str:
        """Return the file's name as messages show it."""
        return self.document.path

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the policy's text."""
        return hashlib.sha256(self.document.text.encode()).hexdigest()


def parse_policy(text: str, path: str, parts: PolicyParts) -> ParsedPolicy:
    """Return the policy that `text` declares; raises PolicyError with every problem found.

    `parts` are what `system` and `judge` may be, `path` is only shown. Names of files, models and
    metrics are not looked up here.
    """
    parsed, problems = readable_part(text, path, parts)
    if parsed is None or problems:
        raise PolicyError(problems)
    return parsed


def readable_part(
    text: str, path: str, parts: PolicyParts
) -> tuple[ParsedPolicy | None, list[Problem]]:
    """Return the policy without what is wrong in it, and every problem; None where nothing is left.

    What it names can be looked up all the same, so that all mistakes are told at once.
    """
    document = load_yaml(text, path)
    model = policy_model(parts)
    policy, problems = validated(document, model)
    faults = list(contradictions(document.data, parts.systems)) if document.complete else []
    problems += [document.problem(*path_and_sentence) for path_and_sentence in faults]
    if policy is not None and not problems:
        return ParsedPolicy(policy=policy, document=document), []
    problems = list(dict.fromkeys(problems))
    if not document.complete or not isinstance(document.data, dict):
        return None, problems
    return _remains(document, model, [path for path, _ in faults]), problems


def _remains(
    document: YamlDocument, model: type[Policy], wrong: Sequence[YamlPath]
) -> ParsedPolicy | None:
    """Return the policy without what stands at `wrong` and whatever else the model refuses."""
    data: Any = copy.deepcopy(document.data)
    marks = document.marks
    stand_ins: set[str] = set()
    for _ in range(_ROUNDS):
        # From the last to the first: the removal of one moves none that follows.
        for where in sorted(
            {_removed(data, place_of_fault) for place_of_fault in wrong}, key=_order, reverse=True
        ):
            if len(where) < 2 and (not where or where[0] in _STAND_INS):
                missing = where or [name for name in _STAND_INS if name not in data]
                for name in map(str, missing):
                    data[name] = copy.deepcopy(_STAND_INS[name])
                    stand_ins.add(name)
                continue
            if where in [(name,) for name in _OPTIONAL]:
                stand_ins.add(str(where[0]))
            inside = data
            for part in where[:-1]:
                inside = inside[part]
            del inside[where[-1]]
            marks = dict(_without(marks, where))
        try:
            policy = model.model_validate(data)
        except ValidationError as error:
            wrong = [where for where, _ in explain(error, model, data)]
            continue
        lost: dict[str, Any] = {name: [] for name in ("suites", "gates") if name in stand_ins}
        return ParsedPolicy(
            policy=policy.model_copy(update=lost),
            document=replace(document, marks=marks),
            stand_ins=frozenset(stand_ins),
        )
    return None


def _removed(data: Any, wrong: YamlPath) -> YamlPath:
    """Return the path to remove: as much of `wrong` as exists, or the entry around it."""
    path: YamlPath = ()
    for part in wrong:
        inside = isinstance(data, dict) and part in data
        if not inside and not (isinstance(data, list) and part in range(len(data))):
            break
        path, data = (*path, part), data[part]
    if path[:1] in [(name,) for name in _OPTIONAL]:
        return path[:1]
    is_leading = path[:1] == ("suites",) and len(path) > 2 and path[2] in _LEADING
    return path[:2] if is_leading or path[:1] in [(name,) for name in _WHOLE] else path


def _order(where: YamlPath) -> list[tuple[bool, int, str]]:
    return [(isinstance(p, int), p if isinstance(p, int) else 0, str(p)) for p in where]


def _without(marks: Mapping[YamlPath, Mark], removed: YamlPath) -> Iterator[tuple[YamlPath, Mark]]:
    """Yield the paths that stay when one is removed, as they are then."""
    *around, last = removed
    level = len(around)
    for path, mark in marks.items():
        if len(path) <= level or [*path[:level]] != around:
            yield path, mark
        elif isinstance(last, int) and isinstance(own := path[level], int) and own > last:
            yield (*around, own - 1, *path[level + 1 :]), mark
        elif path[level] != last:
            yield path, mark


def problem(parsed: ParsedPolicy, where: YamlPath, message: str) -> Problem:
    """Return `message` as a problem at `where`, for checks that come after parsing."""
    return parsed.document.problem(where, message)


def validated(document: YamlDocument, model: type[Model]) -> tuple[Model | None, list[Problem]]:
    """Return the document as `model` (None where it is not one) and all problems known so far.

    Where reading stopped early the model is not validated: missing keys may follow later.
    """
    problems = list(document.problems)
    if not document.complete:
        return None, problems
    if not isinstance(document.data, dict):
        content = "the file is empty" if document.data is None else f"found {shown(document.data)}"
        fields = model.model_fields.items()
        keys = ", ".join(f"`{name}`" for name, field in fields if field.is_required())
        return None, [*problems, document.problem((), f"{content}, expected a mapping with {keys}")]
    try:
        return model.model_validate(document.data), problems
    except ValidationError as error:
        faults = explain(error, model, document.data)
        return None, [*problems, *(document.problem(*fault) for fault in faults)]


def explain(error: ValidationError, model: type[BaseModel], data: object) -> list[YamlFault]:
    """Return each defect of `data` as the path and the sentence about it."""
    root = _schema(model)
    errors = error.errors(include_url=False)
    unknown = [details["loc"] for details in errors if details["type"] == "extra_forbidden"]

    def is_mistyped(details: ErrorDetails) -> bool:
        """Return whether a missing key stands there under a similar name, reported as unknown."""
        *parent, key = details["loc"] or ("",)
        return details["type"] == "missing" and any(
            [*around] == parent and nearest(str(name), [str(key)]) for *around, name in unknown
        )

    return [_sentence(details, root, data) for details in errors if not is_mistyped(details)]


@lru_cache(maxsize=8)
def _schema(model: type[BaseModel]) -> Schema:
    return model.model_json_schema()


_MOST_KEYS = 8
_SYNONYMS = {
    **dict.fromkeys(("threshold", "limit", "bound", "value", "target"), ("max", "min")),
    **dict.fromkeys(("upper", "at_most"), ("max",)),
    **dict.fromkeys(("lower", "at_least"), ("min",)),
    **dict.fromkeys(("tolerance", "delta"), ("regression",)),
    **dict.fromkeys(("dataset", "data", "cases", "tests", "questions"), ("sources", "items")),
    **dict.fromkeys(("rules", "checks", "metrics", "assertions"), ("gates",)),
    **dict.fromkeys(("sut", "target", "model", "application", "provider"), ("system",)),
}
"""Words of other tools, and the keys that they mean."""


def dotted(where: YamlPath) -> str:
    """Return a path in the usual notation: `gates[1].max`; positions count from 0."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    return harmless(text.removeprefix(".")[:200])


def _sentence(details: ErrorDetails, root: Schema, data: object) -> YamlFault:
    # Branches of unions are tagged "<…>" (domain/schema.py) and are no part of the document; what
    # an unknown key is called is, even if it looks like a tag.
    *parents, last = details["loc"] or ("<mapping>",)
    own = [last] if details["type"] == "extra_forbidden" or not is_branch(last) else []
    where: YamlPath = (*(step for step in parents if not is_branch(step)), *own)
    name = f"{dotted(where)}: " if where else ""
    match details["type"]:
        case "union_tag_not_found":
            finding = shown(details["input"].get("kind"))
            kind_path = (*where, "kind")
            expected = listed(SUITE_KINDS.ids)
            return kind_path, f"{dotted(kind_path)}: found {finding}, expected {expected}"
        case "missing":
            return where, _missing(where, root, data)
        case "extra_forbidden":
            return where, _unknown(where, root, data)
        case "value_error":
            return where, name + harmless(details["msg"].removeprefix("Value error, "))
        case _:
            node = _branch(_schema_at(root, where, data), root, details["input"])
            value = details["input"]
            expected = _expectation(node, root)
            input_text = "what is no name" if expected == _NAME_OF_VARIABLE else shown(value)
            finding = f"found {input_text}, expected {expected}"
            if value is None and (keys := _deciding(node, root) or _properties(node, root)):
                return where, f"{name}{finding} with {listed(keys[:_MOST_KEYS])}"
            return where, f"{name}{finding}{_hint(value, node)}"


def _deciding(node: Schema, root: Schema) -> list[str]:
    """Return the keys of which a mapping needs one, where each of its kinds needs another one."""
    needed = [branch.get("required", ()) for branch in _branches(node, root)]
    return [keys[0] for keys in needed] if len(needed) > 1 and all(map(len, needed)) else []


def _missing(where: YamlPath, root: Schema, data: object) -> str:
    parent = f"{dotted(where[:-1])}: " if where[:-1] else ""
    around = _branches(_schema_at(root, where[:-1], data), root)
    asking = [branch for branch in around if where[-1] in branch.get("required", ())]
    node = asking[0]["properties"][where[-1]] if asking else _schema_at(root, where, data)
    wanted = str(node.get("description", "")).rstrip(".") or _expectation(node, root)
    if "const" in node:
        wanted = f"`{where[-1]}: {node['const']}`"
    return f"{parent}`{where[-1]}` is missing; add it: {wanted}"


def _unknown(where: YamlPath, root: Schema, data: object) -> str:
    name = str(where[-1])
    node, value = _schema_at(root, where[:-1], data), data
    for step in where[:-1]:
        value = value[step]  # type: ignore[index]  # pydantic came along here
    names = list(_properties(_branch(node, root, value), root))
    parent = f" in `{dotted(where[:-1])}`" if where[:-1] else ""
    sentence = f"unknown key `{harmless(name[:60])}`{parent}; "
    kinds = [
        own
        for branch in _branches(node, root)
        if name in (keys := branch.get("properties", {}))
        and (own := keys.get("kind", {}).get("const"))
    ]
    if kinds and not nearest(name, names):
        return f"{sentence}it is one of kind {listed(kinds, last='or')}"
    synonyms = [key for key in _SYNONYMS.get(name.lower(), ()) if key in names]
    if synonyms and not nearest(name, names):
        return f"{sentence}write {listed(synonyms)}"
    owners = dict.fromkeys(
        owner
        for schema in (root, *root.get("$defs", {}).values())
        for owner, child in schema.get("properties", {}).items()
        if name in _properties(child, root)
    )
    if not nearest(name, names) and owners:
        return f"{sentence}it belongs in {listed(owners)}"
    return sentence + suggestion(name, names)


def _schema_at(schema: Schema, where: YamlPath, data: object) -> Schema:
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
        kind_named = value.get("kind", SUITE_KINDS.ids[0])

        def likeness(branch: Schema) -> tuple[bool, int, int]:
            """Return how well it fits: by the kind it names, its own keys, then by all it uses."""
            properties = branch.get("properties", {})
            own = properties.get("kind", {}).get("const")
            required = sum(key in value for key in branch.get("required", ()))
            return own == kind_named, required, sum(key in properties for key in value)

        return max(fitting, key=likeness)
    return fitting[0] if fitting else node


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
        case "string" if schema.get("pattern", "").startswith("^https?://"):
            words = "an address, `http://HOST:PORT/PATH`, without credentials"
        case "string" if schema.get("pattern") == "^[A-Za-z_][A-Za-z0-9_]*$":
            words = _NAME_OF_VARIABLE
        case "string" if "[0-9]{4}-" in schema.get("pattern", ""):
            words = "a date, YYYY-MM-DD"
        case "string" if "maxLength" in schema:
            words = f"a text of at most {schema['maxLength']:,} characters"
        case kind:
            words = _TYPE_WORDS.get(kind, "another value")
    return words


def _list_words(schema: Schema, root: Schema) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    items = schema.get("items", {})
    text = all(branch.get("type") == "string" for branch in _branches(items, root))
    kind = " of texts" if text else ""
    if most is not None and most == least:
        return f"a list of {least} values, each {_expectation(items, root)}"
    entries = "entry" if least == 1 else "entries"
    return f"a list{kind} with at least {least} {entries}" if least else f"a list{kind}"


def _range(schema: Schema) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None and high < 2**53:
        return f" between {low:g} and {high:g}"
    limits = ("of at least", low), ("above", above), ("at most", high), ("below", below)
    words = [
        f"{phrase} {bound:g}"
        for phrase, bound in limits
        if bound is not None and abs(bound) < 2**53
    ]
    return f" {' and '.join(words)}" if words else ""


def _hint(value: object, node: Schema) -> str:
    """Return the next step for a common mistake, with the punctuation before it."""
    kind = node.get("type")
    if "const" in node and not isinstance(value, str):
        return f"; write {node['const']}, this FairGate reads no other"
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
