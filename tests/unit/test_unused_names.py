"""Every name that a module of the package defines is used: what went took its constants with it."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "fairgate").rglob("*.py"))
READERS = [*MODULES, *(ROOT / ".github").rglob("*.py")]
TEMPLATES = [*(ROOT / "fairgate").rglob("*.j2")]
IMPORT = re.compile(r"from (fairgate[\w.]*) import (\([^)]*\)|[^\n]*)")
ELSEWHERE = re.compile(r"\.\w+|\"[^\"\n{]*\"")
"""Attributes, and texts of one line: a table of names, say."""


def defined(tree):
    """Yield what stands at the top of a module, but for what a decorator hands to somebody else."""
    for node in tree.body:
        is_function = isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.ClassDef) or (is_function and not node.decorator_list):
            yield node.name
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            yield from (one.id for one in ast.walk(target or ast.Pass()) if hasattr(one, "id"))


def uses(source):
    """Yield `(module, name)` of what is imported, and `("", name)` of what is named otherwise.

    A constant of the same name in another module is no use of this one.
    """
    for module, names in IMPORT.findall(source):
        yield from ((module, name) for name in re.findall(r"\w+", names))
    for text in ELSEWHERE.findall(source):
        yield from (("", word) for word in re.findall(r"\w+", text))


def unused(source, module, elsewhere):
    """Return the names of a module that neither it nor, for public ones, another file uses."""
    own = Counter(re.findall(r"\w+", source))
    return [
        name
        for name in defined(ast.parse(source))
        if not name.startswith("__")
        and own[name] == 1
        and (name.startswith("_") or elsewhere.isdisjoint({(module, name), ("", name)}))
    ]


def test_every_name_is_used():
    sources = {path: path.read_text() for path in READERS}
    everywhere = {use for source in sources.values() for use in uses(source)}
    words = re.findall(r"\w+", "\n".join(path.read_text() for path in TEMPLATES))
    everywhere |= {("", word) for word in words}
    found = {}
    for path in MODULES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[module] = unused(sources[path], module, everywhere)
    assert {path: names for path, names in found.items() if names} == {}


def test_names_that_nobody_uses_are_found():
    source = "_A = 1\nB = 2\nC: int = 3\nD = 4\n\ndef _d(): ...\n\nclass E: ...\n\nprint(C)\n"
    elsewhere = {*uses("from fairgate.m import D\nfrom fairgate.other import B\nx.E\n")}
    assert unused(source, "fairgate.m", elsewhere) == ["_A", "B", "_d"]
