"""The page of a policy's keys, from its JSON schema: nested as they are written, each named once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources

SCHEMA: dict = json.loads(
    resources.files("fairgate").joinpath("data", "policy.schema.json").read_text("utf-8")
)
HEAD = """\
# Policy

Every key of a policy file, nested as it is written; an unknown one is an error. A key is shown with its
default; one without a default is optional unless *required*. What stands in several places has a section
of its own, to which its key leads. In brackets stands where a key is allowed, if not everywhere.
"""
SECTIONS: dict[str, tuple[str, Mapping[str, str]]] = {
    "The file": ("", {"": ""}),
    "`system`": (
        "Its kind is that of the key it has: `generator`, `recorded`, `http`, `command` or `python`.",
        {
            "generator": "LocalPolicy", "recorded": "RecordedPolicy", "http": "HttpPolicy",
            "command": "CommandPolicy", "python": "PythonPolicy",
        },
    ),
    "`retriever`": (
        "An index over `corpus`, or one of your own.",
        {"corpus": "RetrieverPolicy", "own": "OwnRetrieverPolicy"},
    ),
    "`generator`": (
        "A `model` that runs here, or an `endpoint`.",
        {"model": "GeneratorPolicy", "endpoint": "EndpointGeneratorPolicy"},
    ),
    "`endpoint`": (
        "", {"generator": "EndpointPart", "retrievers": "EndpointPolicy"},
    ),
    "`http`": ("", {"system": "HttpPart", "retriever": "HttpSearch"}),
    "`command`": ("", {"system": "CommandPart", "retriever": "CommandSearch"}),
    "`python`": ("", {"system": "PythonPart", "retriever": "PythonSearch"}),
    "`response`": (
        "Places in a reply or, under `columns`, in a row: JSONPath without filters.",
        {
            "system.http": "ResponsePaths", "system.command, system.python": "OwnResponsePaths",
            "retriever": "FoundPaths", "columns": "RowPaths",
        },
    ),
    "`embedder`": ("", {"": "EmbedderPolicy"}),
    "`labels`": ("", {"": "LabelsPolicy"}),
    "Classifiers": ("", {"": "ClassifierPolicy"}),
    "`serve`": ("", {"": "ServePart"}),
    "`budget`": ("", {"": "BudgetPart"}),
    "`revision`": ("Instead of a name, files whose content is the state.", {"": "RevisionFiles"}),
    "`suites`, of relations": ("For [question items](#suites-of-question-items) see below.", {"": "SuitePolicy"}),
    "`task`": ("", {"": "TaskPolicy"}),
    "`suites`, of question items": ("", {"": "BbqSuitePolicy"}),
    "Tables": (
        "Of documents and sources: a bundled name, a path, or a path with columns.",
        {"": "Columns"},
    ),
    "`judge`": ("", {"": "JudgePolicy"}),
    "`waivers`": ("", {"": "WaiverPolicy"}),
    "`gates`": ("", {"parity": "ParityPolicy", "metric": "GatePolicy"}),
}  # fmt: skip
"""Heading → what is said first, and the definitions whose keys stand there, by where each is used."""
OF_A_KIND = {
    ("RecordedPolicy", "recorded"), ("HttpPolicy", "http"), ("CommandPolicy", "command"),
    ("PythonPolicy", "python"),
}  # fmt: skip
"""Keys that a system of this kind must have: none of them is required of a system."""
KEY = re.compile(r"- \[?`.*?`(?:\]\(\S+\))?(?: \*required\*)?")
PLACES = {name: title for title, (_, names) in SECTIONS.items() for name in names.values()}


class PolicyPage:
    """The page, and the keys, as (definition, key), that it names and that are the same as a named one."""

    def __init__(self) -> None:
        self.named: list[tuple[str, str]] = []
        self.same: list[tuple[str, str]] = []
        self._sections: dict[str, str] = {}
        """Lines of a key → the section that has them."""
        self.text = HEAD + "".join(map(self._section, SECTIONS))

    def _section(self, title: str) -> str:
        first, definitions = SECTIONS[title]
        lines = [f"\n## {title}\n\n", *([f"{first}\n\n"] if first else [])]
        elsewhere: dict[str, list[str]] = {}
        for key in dict.fromkeys(key for name in definitions.values() for key in fields(name)):
            found: dict[str, list[str]] = {}
            for where, name in definitions.items():
                if key in fields(name):
                    text = "".join(entry(name, key))
                    is_new = text not in found and text not in self._sections
                    (self.named if is_new else self.same).extend(keys_below(name, key))
                    found.setdefault(text, []).append(where)
            for text, places in found.items():
                everywhere = len(places) == len(definitions) or key in places
                tag = "" if everywhere else f" ({listed(places)})"
                other = self._sections.setdefault(text, title)
                if other == title:
                    end = KEY.match(text).end()
                    lines.append(f"{text[:end]}{tag}{text[end:]}")
                else:
                    elsewhere.setdefault(other, []).append(f"`{key}`{tag}")
        lines += [
            f"- As under [{other}](#{anchor(other)}): {', '.join(keys)}.\n"
            for other, keys in elsewhere.items()
        ]
        return "".join(lines)


def entry(name: str, key: str, *, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a key: itself, and below it what stands nowhere else."""
    field = fields(name)[key]
    text = field.get("description", "").rstrip(".")
    inner, linked = targets_of(field)
    default = field.get("default")
    others = [value for value in values_of(field) if f"`{value}`" not in text and value != default]
    others = [] if isinstance(default, list) else [f"`{value}`" for value in others]
    shown = f"`{written_key(name, key)}`"
    shown = f"[{shown}](#{anchor(linked)})" if linked else shown
    is_required = key in definition(name).get("required", []) and (name, key) not in OF_A_KIND
    shown += " *required*" if is_required else ""
    if others and default is not None:
        shown += f" or {', '.join(others)}"
    elif others:
        text += f": {', '.join(others)}"
    each = "; of each" if inner and "items" in json.dumps(field) else ""
    yield f"{'    ' * depth}- {shown}: {text}{each}{':' if inner else '.'}\n"
    for target in inner:
        for below in fields(target):
            yield from entry(target, below, depth=depth + 1)


def keys_below(name: str, key: str) -> Iterator[tuple[str, str]]:
    """Yield a key and those that are nested below it, as (definition, key)."""
    yield name, key
    for target in targets_of(fields(name)[key])[0]:
        for below in fields(target):
            yield from keys_below(target, below)


def targets_of(field: Mapping) -> tuple[list[str], str]:
    """Return the definitions nested below a field, and the section that it leads to."""
    targets = list(dict.fromkeys(references(field)))
    sections = [PLACES[target] for target in targets if target in PLACES]
    return [target for target in targets if target not in PLACES], (sections or [""])[0]


def definition(name: str) -> dict:
    """Return a definition of the schema; the policy itself has no name."""
    return SCHEMA["$defs"][name] if name else SCHEMA


def fields(name: str) -> dict:
    """Return the keys of a definition."""
    return definition(name)["properties"]


def written_key(name: str, key: str) -> str:
    """Return a key with its default, as it is written."""
    field = fields(name)[key]
    default = field.get("const", field.get("default"))
    if default is None or (isinstance(default, list) and isinstance(default[0], dict)):
        return key
    return f"{key}: {written(default)}"


def written(value: object) -> str:
    """Return a default as YAML has it; a text that needs quotation marks has them."""
    if isinstance(value, str) and re.fullmatch(r"[a-z][\w-]*", value):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value)


def values_of(field: Mapping) -> list[object]:
    """Return the only values that a field, or one of its forms, may have."""
    forms = (field, field.get("items", {}), *field.get("anyOf", ()))
    forms = (*forms, *(form.get("items", {}) for form in field.get("anyOf", ())))
    return list(dict.fromkeys(value for form in forms for value in form.get("enum", ())))


def references(field: Mapping) -> Iterator[str]:
    """Yield the definitions that a field, or the items of its list, may be."""
    if "$ref" in field:
        yield field["$ref"].rpartition("/")[2]
    for form in (*field.get("anyOf", ()), *field.get("oneOf", ())):
        yield from references(form)
    if isinstance(field.get("items"), dict):
        yield from references(field["items"])


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def listed(places: list[str]) -> str:
    """Return where a key is allowed."""
    return ", ".join(f"`{place}`" for place in ", ".join(places).split(", "))


def keys_of_the_schema() -> set[tuple[str, str]]:
    """Return every key that a policy may have, as (definition, key)."""
    names = ("", *SCHEMA["$defs"])
    return {(name, key) for name in names for key in fields(name)}
