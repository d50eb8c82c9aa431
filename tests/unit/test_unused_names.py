"""Every name that a module of the package defines is used: what went took its constants with it."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "fairgate").rglob("*.py"))
READERS = [*MODULES, *(ROOT / "fairgate").rglob("*.j2"), *(ROOT / ".github").rglob("*.py")]


def defined(tree):
    """Yield what stands at the top of a module, but for what a decorator hands to somebody else."""
    for node in tree.body:
        is_function = isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.ClassDef) or (is_function and not node.decorator_list):
            yield node.name
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            yield from (one.id for one in ast.walk(target or ast.Pass()) if hasattr(one, "id"))


def unused(source, elsewhere):
    """Return the names of a module that neither it nor, for public ones, another file names."""
    own = Counter(re.findall(r"\w+", source))
    return [
        name
        for name in defined(ast.parse(source))
        if not name.startswith("__")
        and own[name] == 1
        and (name.startswith("_") or elsewhere[name] == own[name])
    ]


def test_every_name_is_used():
    sources = {path: path.read_text() for path in READERS}
    everywhere = Counter(re.findall(r"\w+", "\n".join(sources.values())))
    found = {str(path): unused(sources[path], everywhere) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


def test_names_that_nobody_uses_are_found():
    source = "_A = 1\nB = 2\nC: int = 3\n\ndef _d(): ...\n\nclass E: ...\n\nprint(C)\n"
    assert unused(source, Counter(B=1, C=2, E=3)) == ["_A", "B", "_d"]
